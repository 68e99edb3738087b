"""Machines of the linear kernel with many more rows than columns: from their hyperplane.

Where classes overlap, two-variable steps take long to find out which rows are on the wrong side of
their margins. The method of multipliers finds the hyperplane in a time that hardly depends on the
data. It tells at which bound the variables of all rows are but of those on a margin, hardly more
than there are columns, and these are what makes up the hyperplane with the others. The solver goes
on from there, and with nothing left to do it ends at once; what it takes for a solution does not
depend on where it starts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import lsq_linear

from fastml._native import linear_svm as native
from fastml._native.rows import Rows
from fastml._runtime.threads import n_threads
from fastml.svm._kernels import OfNamed
from fastml.svm._problems import Problem

# Variables a column from which on it pays, and the most columns.
LEAST_EACH, MOST_COLUMNS = 20, 300
# Two-variable steps in the time of the method's on so many multiply-adds; a few take none.
STEP_WORK, FEW_STEPS = 10_000, 300
# Of the objective; and steps, of which a hundred are enough if anything is.
GAP, MOST_STEPS = 1e-12, 300
# The constant column stands for an intercept that costs nothing if it is so large. At most it may
# be so large, for its square and what is left of that.
CONSTANT, LARGEST = 1e3, 1e12
# How near to a margin rows are said to be on it, at first and at most.
NEAR, NOT_NEAR = 1e-6, 1e-3
# Rounds of a search for variables within bounds, where several could make up the hyperplane.
MOST_ROUNDS = 50


def pays(values: Any, problems: list[Problem]) -> bool:
    """Whether the method is worth its time where two-variable steps do not soon end."""
    if not isinstance(values, OfNamed) or values.kernel.name != "linear":
        return False
    d = values.X.shape[1]
    return d <= MOST_COLUMNS and all(
        p.start is None and len(p.rows) >= LEAST_EACH * (d + 1) and np.isfinite(p.upper).all()
        for p in problems
    )


def patience(values: Any, problems: list[Problem]) -> int:
    """Two-variable steps that take about as long as the method."""
    n, d = max(len(p.rows) for p in problems), values.X.shape[1]
    return FEW_STEPS + n * d * d // STEP_WORK


def started(
    values: Any, problem: Problem, regression: bool, stopped: Callable[[], bool]
) -> Problem:
    """The problem with its solution as the start, if it is found and nobody stops the search."""
    X, y = values.X, problem.signs.astype(np.float64)
    epsilon, C, rows = 0.0, problem.upper, problem.rows
    if regression:  # each row twice; linear is epsilon - y, then epsilon + y
        rows, C = np.split(rows, 2)[0], np.split(C, 2)[0]
        first, second = np.split(problem.linear, 2)
        y, epsilon = (second - first) / 2, float((first + second).mean()) / 2
    if len(rows) < X.shape[0] or (np.diff(rows) < 0).any():
        X = X[rows]
    hyperplane = _hyperplane(X, y, np.ascontiguousarray(C), epsilon, regression, stopped)
    return problem if hyperplane is None else _variables(X, problem, *hyperplane)


def _hyperplane(
    X: Any,
    y: np.ndarray,
    C: np.ndarray,
    epsilon: float,
    regression: bool,
    stopped: Callable[[], bool],
) -> tuple[np.ndarray, float] | None:
    """Its weights and intercept; None where rounding is in the way."""
    size = max(1.0, float(abs(X).max()))
    constant = CONSTANT * size * max(1.0, float(C.min()) ** -0.5)
    if not constant <= LARGEST:
        return None
    problem = (Rows(X), constant, y, C, epsilon, regression, False, GAP, MOST_STEPS, 0)
    solver = native.solver("augmented", *problem)
    while not (solver.done or stopped()):
        native.advance([solver], False, n_threads())
    w = np.empty(X.shape[1] + 1)
    solver.coef(w)
    if not (solver.converged and np.isfinite(w).all()):
        return None
    return w[:-1], w[-1] * constant


def _variables(X: Any, problem: Problem, w: np.ndarray, intercept: float) -> Problem:
    """The problem, starting from the variables of a hyperplane."""
    n = X.shape[0]
    times = len(problem.rows) // n
    f = X @ w + intercept
    # What a variable gains by rising: up to its bound, or down to it, but on the margins.
    gain = -(problem.linear + problem.signs * np.tile(f, times))
    near, scale = NEAR, 1 + float(abs(f).mean())
    while near <= NOT_NEAR:
        on_margin = np.flatnonzero(abs(gain) <= near * scale)
        if len(on_margin) > 4 * (len(w) + 16):
            break
        alpha = np.where(gain > 0, problem.upper, 0.0)
        alpha[on_margin] = 0
        beta = (alpha * problem.signs).reshape(times, n).sum(axis=0)
        missing = np.append(w - X.T @ beta, -beta.sum())
        found = _made_up(X, problem, on_margin, missing, near)
        if found is not None:
            alpha[on_margin] = found
            return problem._replace(start=alpha)
        near *= 10
    return problem


def _made_up(
    X: Any, problem: Problem, index: np.ndarray, missing: np.ndarray, near: float
) -> np.ndarray | None:
    """Variables of some rows whose sum, with a constant column, is `missing`."""
    if not len(index):
        return None
    rows = X[index % X.shape[0]]
    rows = rows.toarray() if hasattr(rows, "toarray") else rows
    signs, upper = problem.signs[index].astype(np.float64), problem.upper[index]
    # A unit of the constant column is one of the sum, which has to be right.
    size = max(1.0, float(abs(rows).max()))
    A = np.vstack([rows.T.astype(np.float64), np.full(len(index), size)]) * signs
    b = np.append(missing[:-1], missing[-1] * size)
    alpha = upper / 2 + np.linalg.lstsq(A, b - A @ upper / 2)[0]
    least = 1e-6 * upper
    if ((alpha < -least) | (alpha > upper + least)).any():
        alpha = lsq_linear(A, b, (0, upper), method="bvls", max_iter=MOST_ROUNDS).x
    alpha = np.clip(alpha, 0, upper)
    # What is left of the sum goes where there is room for it.
    rest = signs @ alpha - missing[-1]
    room = np.where(signs * rest > 0, alpha, upper - alpha)
    widest = int(np.argmax(room))
    if abs(rest) > room[widest]:
        return None
    alpha[widest] -= signs[widest] * rest
    lost = A[:-1] @ alpha - b[:-1]
    return alpha if np.linalg.norm(lost) * size <= near else None
