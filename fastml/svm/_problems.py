"""Machines as quadratic problems for the solver, and its solutions as coefficients.

A problem is min ½αᵀQα + linearᵀα, Q = signs signsᵀ ∘ K, in the box 0 <= α <= upper and with
signsᵀα kept as it is at the start; for the ν-machines the sum of α too. Its decision function is
Σ α signs K - rho.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from fastml._native.smo import Problem


class Members(NamedTuple):
    """The rows that count, class by class.

    order: the indices of the rows, those of the first class first.
    starts: where the classes begin in it, and where the last one ends.
    weights: of the rows, in this order.
    """

    order: np.ndarray
    starts: np.ndarray
    weights: np.ndarray

    def __getitem__(self, c: int) -> slice:
        return slice(int(self.starts[c]), int(self.starts[c + 1]))

    def pairs(self) -> list[tuple[slice, slice]]:
        return list(combinations([self[c] for c in range(len(self.starts) - 1)], 2))


def members_of(codes: np.ndarray, n_classes: int, weights: np.ndarray | None) -> Members:
    order = np.argsort(codes, kind="stable")
    if weights is None:
        weights = np.ones(len(codes))
    else:
        order = order[weights[order] > 0]
    counts = np.bincount(codes[order], minlength=n_classes)
    starts = np.concatenate([[0], np.cumsum(counts)])
    return Members(order, starts, weights[order])


def share(upper: np.ndarray, nu: float) -> float:
    """The sum of nu times upper, rounded as libsvm's, which may leave a variable free."""
    return float(np.cumsum(nu * upper)[-1])


def greedy(upper: np.ndarray, total: float) -> np.ndarray:
    """As much as fits into each box in turn, `total` in all."""
    before = np.cumsum(upper) - upper
    return np.clip(total - before, 0.0, upper)


def _both(members: Members, a: slice, b: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows of two classes, their signs and their weights."""
    rows = np.concatenate([members.order[a], members.order[b]])
    signs = np.ones(len(rows), np.int8)
    signs[a.stop - a.start :] = -1
    return rows, signs, np.concatenate([members.weights[a], members.weights[b]])


def c_classification(members: Members, a: slice, b: slice, C_a: float, C_b: float) -> Problem:
    rows, signs, weights = _both(members, a, b)
    upper = weights * np.where(signs > 0, C_a, C_b)
    return Problem(rows, signs, np.full(len(rows), -1.0), upper, None)


def nu_classification(members: Members, a: slice, b: slice, nu: float) -> Problem:
    rows, signs, upper = _both(members, a, b)
    half, n = share(upper, nu) / 2, a.stop - a.start
    start = np.concatenate([greedy(upper[:n], half), greedy(upper[n:], half)])
    return Problem(rows, signs, np.zeros(len(rows)), upper, start)


def one_class(rows: np.ndarray, weights: np.ndarray, nu: float) -> Problem:
    m = len(rows)
    start = greedy(weights, share(weights, nu))
    return Problem(rows, np.ones(m, np.int8), np.zeros(m), weights, start)


def epsilon_regression(
    rows: np.ndarray, y: np.ndarray, upper: np.ndarray, epsilon: float
) -> Problem:
    linear = np.concatenate([epsilon - y, epsilon + y])
    return _twice(rows, linear, upper, None)


def nu_regression(rows: np.ndarray, y: np.ndarray, upper: np.ndarray, nu: float) -> Problem:
    start = greedy(upper, share(upper, nu) / 2)
    return _twice(rows, np.concatenate([-y, y]), upper, np.concatenate([start, start]))


def _twice(
    rows: np.ndarray, linear: np.ndarray, upper: np.ndarray, start: np.ndarray | None
) -> Problem:
    """Variables above the targets, and below."""
    signs = np.repeat(np.array([1, -1], np.int8), len(rows))
    return Problem(np.tile(rows, 2), signs, linear, np.tile(upper, 2), start)


class Fitted(NamedTuple):
    """Support vectors and what they count, in scikit-learn's form.

    support: int32 indices, class by class, ascending within.
    n_support: of each class (regression: all, twice).
    """

    support: np.ndarray
    n_support: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray


def assemble_pairs(
    members: Members, coefficients: list[np.ndarray | None], intercept: np.ndarray
) -> Fitted:
    """Of the coefficients of each pair; None for a pair of which one class has no rows."""
    k = len(members.starts) - 1
    coef = np.zeros((k - 1, len(members.order)))
    pairs = zip(combinations(range(k), 2), members.pairs(), coefficients, strict=True)
    for (i, j), (a, b), found in pairs:
        if found is not None:
            coef[j - 1, a] = found[: a.stop - a.start]
            coef[i, b] = found[a.stop - a.start :]
    used = coef.any(axis=0) if k > 2 else coef[0] != 0
    n_support = [np.count_nonzero(used[members[c]]) for c in range(k)]
    return Fitted(
        members.order[used].astype(np.int32),
        np.array(n_support, dtype=np.int32),
        np.ascontiguousarray(coef[:, used]),
        intercept,
    )


def assemble_one(rows: np.ndarray, coefficients: np.ndarray, intercept: np.ndarray) -> Fitted:
    used = coefficients != 0
    count = np.count_nonzero(used)
    return Fitted(
        rows[used].astype(np.int32),
        np.array([count, count], dtype=np.int32),
        coefficients[used][np.newaxis],
        intercept,
    )


class Certificate(NamedTuple):
    """How far a solution may be from the best: see `certificate`. NaN: the kernel is not finite."""

    gap: float
    violation: float
    margin: float


def certificate(problem: Problem, solution: Any) -> Certificate:
    """The duality gap, the violation of the KKT conditions, and the margin 1 / |w|.

    With the multipliers of the equality constraints, rho and r, the gap is a sum over variables:
    α g where g > 0, and (α - upper) g where g < 0, g the gradient less the multipliers. A hard
    margin that rows miss by rounding has no such sum: its hyperplane is scaled to satisfy them.
    """
    alpha, signs = solution.alpha, problem.signs
    g = solution.gradient - solution.r - signs * solution.rho
    norm = squared_norm(problem, solution)
    if np.isinf(problem.upper).all() and (problem.linear == -1).all():
        missed = max(0.0, -float(g.min()))
        gap = float(alpha @ g) + norm / 2 * (1 / (1 - missed) ** 2 - 1) if missed < 1 else np.inf
    else:
        gap = float((alpha - np.where(g < 0, problem.upper, 0.0)) @ g)
    margin = 1 / np.sqrt(norm) if norm > 0 else np.inf
    violation = max(solution.gap, 0.0) if np.isfinite(solution.gradient).all() else np.nan
    return Certificate(gap, violation, float(margin))


def squared_norm(problem: Problem, solution: Any) -> float:
    """|w|², which is αᵀQα."""
    return 2 * float(solution.objective - solution.alpha @ problem.linear)
