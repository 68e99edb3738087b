"""Probabilities of pairs of classes: Platt's sigmoids, fitted to decisions on held-out rows.

The rows are dealt out as libsvm deals them, so that a seed means the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastml.svm._problems import greedy, share

N_FOLDS = 5
CLOSEST = 1e-7  # to 0 and 1 that a probability may be


class Fold(NamedTuple):
    """A part of a pair's rows, and the problem of the others (None: they are of one class)."""

    pair: int
    held: np.ndarray
    problem: Any
    otherwise: float


def folds_of(problems: list, seed: int, nu: float | None) -> list[Fold]:
    folds: list[Fold] = []
    draw = None
    for p, problem in enumerate(problems):
        if problem is None:
            continue
        if draw is None:
            draw = np.random.RandomState(seed)._bit_generator.random_raw
        order = _shuffled(len(problem.rows), draw)
        here = [_fold(problem, p, order, f, nu) for f in range(N_FOLDS)]
        folds += here
        if any(fold.problem is not None for fold in here):
            draw = None  # each training seeds the generator anew
    return folds


def _shuffled(n: int, draw: Any) -> np.ndarray:
    order = np.arange(n)
    for i in range(n):
        j = i + _below(n - i, draw)
        order[i], order[j] = order[j], order[i]
    return order


def _below(n: int, draw: Any) -> int:
    """A number in [0, n), by multiplication (Lemire, 2019)."""
    product = int(draw()) * n
    while product & 0xFFFFFFFF < (1 << 32) % n:
        product = int(draw()) * n
    return product >> 32


def _fold(problem: Any, pair: int, order: np.ndarray, f: int, nu: float | None) -> Fold:
    begin, end = f * len(order) // N_FOLDS, (f + 1) * len(order) // N_FOLDS
    held, rest = order[begin:end], np.concatenate([order[:begin], order[end:]])
    signs = problem.signs[rest]
    if not len(rest) or (signs == signs[0]).all():
        return Fold(pair, held, None, float(signs[0]) if len(rest) else 0.0)
    upper, start = problem.upper[rest], None
    if nu is not None:
        start = np.zeros(len(rest))
        for sign in (1, -1):
            start[signs == sign] = greedy(upper[signs == sign], share(upper, nu) / 2)
    part = type(problem)(problem.rows[rest], signs, problem.linear[rest], upper, start)
    return Fold(pair, held, part, 0.0)


def sigmoids(
    values: Any, problems: list, folds: list[Fold], found: list
) -> tuple[np.ndarray, np.ndarray]:
    """Slopes and offsets for each pair, from the (coefficients, rho) that folds were solved by."""
    decisions = [None if p is None else np.zeros(len(p.rows)) for p in problems]
    rest = iter(found)
    for fold in folds:
        if fold.problem is None:
            decisions[fold.pair][fold.held] = fold.otherwise
            continue
        coefficients, rho = next(rest)
        used = coefficients != 0
        held, support = problems[fold.pair].rows[fold.held], fold.problem.rows[used]
        decisions[fold.pair][fold.held] = values.apply(held, support, coefficients[used]) - rho
    fits = [
        (0.0, 0.0) if p is None else _sigmoid(d, p.signs > 0)
        for p, d in zip(problems, decisions, strict=True)
    ]
    A, B = np.array(fits).T.copy()
    return A, B


def _loss(z: np.ndarray, t: np.ndarray) -> float:
    return float(np.sum(np.where(z >= 0, t, t - 1) * z + np.log1p(np.exp(-abs(z)))))


def _sigmoid(f: np.ndarray, positive: np.ndarray) -> tuple[float, float]:
    """A and B of 1 / (1 + exp(A f + B)) by Newton's method (Lin, Lin and Weng, 2007)."""
    n_positive = np.count_nonzero(positive)
    n_negative = len(f) - n_positive
    t = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    A, B = 0.0, float(np.log((n_negative + 1) / (n_positive + 1)))
    loss = _loss(f * A + B, t)
    for _ in range(100):
        z = f * A + B
        small = np.exp(-abs(z))
        p = np.where(z >= 0, small, 1.0) / (1 + small)
        d = p * (1 - p)
        d1 = t - p
        g1, g2 = float(f @ d1), float(d1.sum())
        if abs(g1) < 1e-5 and abs(g2) < 1e-5:
            break
        h11, h22, h21 = float(f * f @ d) + 1e-12, float(d.sum()) + 1e-12, float(f @ d)
        det = h11 * h22 - h21 * h21
        dA, dB = -(h22 * g1 - h21 * g2) / det, -(h11 * g2 - h21 * g1) / det
        slope, step = g1 * dA + g2 * dB, 1.0
        while step >= 1e-10:
            after = _loss(f * (A + step * dA) + B + step * dB, t)
            if after < loss + 1e-4 * step * slope:
                A, B, loss = A + step * dA, B + step * dB, after
                break
            step /= 2
        else:
            break
    return A, B


def probabilities(decisions: np.ndarray, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Of the first class of each pair."""
    z = decisions * A + B
    small = np.exp(-abs(z))
    return np.clip(np.where(z >= 0, small, 1.0) / (1 + small), CLOSEST, 1 - CLOSEST)
