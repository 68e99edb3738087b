"""Which solver for which linear problem, and the loop over its rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import blas
from scipy.sparse import issparse

from fastml._native import linear_svm as native
from fastml._native.rows import Rows
from fastml._runtime.callbacks import Task
from fastml._runtime.threads import n_threads

# Columns of which a Hessian is formed and factorised.
_MOST_COLUMNS, _MOST_SPARSE_COLUMNS = 2_048, 1_024
# The same of all classes together, which are few enough for a set of them to be a number.
_MOST_WEIGHTS, _MOST_CLASSES = 1_024, 64
# Rows of which a Gram matrix is formed: 16 MB.
_MOST_GRAM_ROWS = 2_048
# Multiply-adds of a step from which on one problem occupies all threads.
_LARGE_STEP = 5e8
# Problems at a time, and numbers that those may hold: ten a row and problem.
_FEW_PROBLEMS, _MOST_NUMBERS = 8, 5e7


class Machine(NamedTuple):
    """The parameters of a fit."""

    squared: bool
    regression: bool
    epsilon: float
    bias: float
    lasso: bool
    tol: float
    max_iter: int
    seed: int


class Solution(NamedTuple):
    """weights: (problems, d + 1), that of the constant column last."""

    weights: np.ndarray
    n_iter: int
    gap: float
    converged: bool
    method: str


Problem = tuple[np.ndarray, np.ndarray]  # targets, costs


def method_for(machine: Machine, X: Any) -> str:
    """What is quickest for the shape; the optimum is that of all."""
    n, d = X.shape
    sparse = issparse(X)
    if d < max(n, 128) and d < (_MOST_SPARSE_COLUMNS if sparse else _MOST_COLUMNS):
        return "newton" if machine.squared else "augmented"
    if not sparse and n <= _MOST_GRAM_ROWS:
        return "gram_descent"
    return "descent"


def solve(
    machine: Machine,
    X: Any,
    problems: Iterable[Problem],
    task: Task,
    fitted: Callable[[Solution], dict[str, Any]],
) -> Solution:
    """Solve problems on the same rows, several at a time."""
    rows = Rows(X)
    if machine.lasso:
        from fastml.svm._lasso import solve_lasso

        parts = [solve_lasso(machine, rows, *problem, task) for problem in problems]
        return _joined(parts)
    method = method_for(machine, X)
    K = None
    if method == "gram_descent":
        K = _gram(X, machine.bias)
        if not np.isfinite(K).all():
            method, K = "descent", None
    more: dict[str, Any] = {} if K is None else {"K": K}
    at_once = max(_FEW_PROBLEMS, int(_MOST_NUMBERS / (10 * X.shape[0])))
    remaining, parts = iter(problems), []
    while batch := list(islice(remaining, at_once)):
        more["alone"] = not parts and len(batch) == 1
        solvers = [solver_of(method, machine, rows, *problem, **more) for problem in batch]
        newton = method in ("newton", "augmented")
        apart = not (newton and float(X.shape[0]) * X.shape[1] ** 2 > _LARGE_STEP)
        parts.append(run(solvers, rows.d + 1, method, apart, task, fitted))
    return _joined(parts)


def _gram(X: np.ndarray, bias: float) -> np.ndarray:
    """All products of rows, rounded to float32: descent looks at the rows again before it ends."""
    with np.errstate(over="ignore"):
        X = X.astype(np.float32, copy=False)
    # What is below its diagonal, in C order.
    K = blas.ssyrk(1.0, X.T, trans=1).T
    n, step = len(X), 256
    for i in range(0, n, step):
        end = i + step
        K[i:end, end:] = K[end:, i:end].T
        block = K[i:end, i:end]
        block += np.tril(block, -1).T
    K += np.float32(bias**2)
    return K


def solve_jointly(
    machine: Machine,
    X: Any,
    codes: np.ndarray,
    C: np.ndarray,
    n_classes: int,
    task: Task,
) -> Solution:
    """Crammer and Singer's problem of all classes."""
    method = joint_method(X, n_classes)
    rows = Rows(X)
    tol = tolerance(method, machine.tol)
    solver = native.joint_solver(
        method, rows, machine.bias, codes, C, n_classes, tol, machine.max_iter, machine.seed
    )
    if method == "augmented":
        one = run([solver], n_classes * (rows.d + 1), method, True, task, None)
        return one._replace(weights=one.weights.reshape(n_classes, -1))
    stride = -(-n_classes // 8) * 8
    one = run([solver], (rows.d + 1) * stride, method, True, task, None)
    weights = one.weights.reshape(rows.d + 1, stride)[:, :n_classes].T
    return one._replace(weights=weights)


def joint_method(X: Any, n_classes: int) -> str:
    """What is quickest for Crammer and Singer's problem; see `method_for`."""
    n, d = X.shape
    few = n_classes <= _MOST_CLASSES and (n_classes - 1) * (d + 1) <= _MOST_WEIGHTS
    return "augmented" if few and d < max(n, 128) else "descent"


def solver_of(
    method: str, machine: Machine, rows: Rows, b: np.ndarray, C: np.ndarray, **more: Any
) -> native.Solver:
    """One problem's solver; see csrc/linear_svm/linear_svm.h."""
    return native.solver(
        method,
        rows,
        machine.bias,
        b,
        C,
        machine.epsilon,
        machine.regression,
        machine.squared,
        tolerance(method, machine.tol),
        machine.max_iter,
        machine.seed,
        **more,
    )


def tolerance(method: str, tol: float) -> float:
    """`tol` as the method has it: of violations, or of the gap relative to the objective.

    A relative gap is about the square of what liblinear compares; Newton's last step goes from a
    part of a thousandth to nothing anyway.
    """
    if method == "newton":
        return max(1e-6 * tol, 1e-14)
    return max(1e-3 * tol, 1e-12) if method in ("augmented", "lasso") else tol


def run(
    solvers: list[native.Solver],
    width: int,
    method: str,
    apart: bool,
    task: Task,
    fitted: Callable[[Solution], dict[str, Any]] | None,
) -> Solution:
    """Go on until all are done, or a callback has enough."""

    def reached() -> Solution:
        weights = np.empty((len(solvers), width))
        for solver, row in zip(solvers, weights, strict=True):
            solver.coef(row)
        return Solution(
            weights,
            max(solver.n_iter for solver in solvers),
            max(solver.gap for solver in solvers),
            all(solver.converged for solver in solvers),
            method,
        )

    while not all(solver.done for solver in solvers):
        with task.subtask("round") as step:
            native.advance(solvers, apart, n_threads())
            if fitted is not None:
                step.attributes = lambda: fitted(reached())
        if step.stop:
            break
    return reached()


def _joined(parts: list[Solution]) -> Solution:
    if len(parts) == 1:
        return parts[0]
    return Solution(
        np.concatenate([part.weights for part in parts]),
        max(part.n_iter for part in parts),
        max(part.gap for part in parts),
        all(part.converged for part in parts),
        parts[0].method,
    )
