"""Linear machines with the penalty |w|_1, on the columns that matter."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from fastml._native import linear_svm as native
from fastml._native.rows import Rows
from fastml._runtime.callbacks import Task
from fastml._runtime.threads import n_threads
from fastml.svm._linear_solvers import Machine, Solution, run, solver_of, tolerance

# So many columns are taken all at once.
_FEW_COLUMNS = 256
_FIRST_COLUMNS = 64
# The part of the objective that the gap may be where rounding keeps that from falling.
_OF_ROUNDING = 1e-7


def solve_lasso(machine: Machine, rows: Rows, b: np.ndarray, C: np.ndarray, task: Task) -> Solution:
    """One problem: on all columns, or on those that break the optimality conditions, and more.

    A column whose weight is zero stays out while its product with the dual point is within
    [-1, 1]; only that takes a pass over all columns.
    """
    if rows.d <= _FEW_COLUMNS:
        solver = solver_of("lasso", machine, rows, b, C)
        return run([solver], rows.d + 1, "lasso", False, task, None)
    weights, n_iter = np.zeros((1, rows.d + 1)), 0
    chosen, before = np.empty(0, np.intp), np.inf
    while True:
        a, loss = _dual_point(machine, rows, weights[0], b, C)
        products = np.empty(rows.d + 1)
        native.combine(rows, machine.bias, a, products, n_threads())
        largest = max(1.0, abs(products).max())
        primal = abs(weights).sum() + loss
        gap = primal - (b @ a / largest - loss / largest**2)
        converged = gap <= tolerance("lasso", machine.tol) * primal
        if converged or n_iter >= machine.max_iter or not primal < before or not np.isfinite(gap):
            rounded = n_iter < machine.max_iter and gap <= max(machine.tol, _OF_ROUNDING) * primal
            return Solution(weights, n_iter, gap, converged or rounded, "lasso")
        before = primal
        support = np.flatnonzero(weights[0, :-1])
        chosen = _worst(products[:-1], support, max(_FIRST_COLUMNS, 2 * len(support)))
        part = _columns(rows.X, chosen)
        left = machine._replace(max_iter=machine.max_iter - n_iter)
        solver = solver_of("lasso", left, Rows(part), b, C, start=weights[0, [*chosen, -1]])
        inner = run([solver], len(chosen) + 1, "lasso", False, task, None)
        weights = np.zeros_like(weights)
        weights[:, [*chosen, -1]] = inner.weights
        n_iter += inner.n_iter


def _dual_point(
    machine: Machine, rows: Rows, w: np.ndarray, b: np.ndarray, C: np.ndarray
) -> tuple[np.ndarray, float]:
    z = np.empty((rows.n, 1))
    native.scores(rows, w[None, :-1], machine.bias * w[-1:], z, n_threads())
    v = np.maximum(1 - b * z[:, 0], 0)
    return 2 * C * v * b, float(C @ v**2)


def _worst(products: np.ndarray, support: np.ndarray, count: int) -> np.ndarray:
    """The support, and the columns with the largest products."""
    if count < len(products):
        worst = np.argpartition(-abs(products), count)[:count]
    else:
        worst = np.arange(len(products))
    return np.union1d(support, worst)


def _columns(X: Any, chosen: np.ndarray) -> Any:
    return X[:, chosen] if issparse(X) else np.take(X, chosen, axis=1)
