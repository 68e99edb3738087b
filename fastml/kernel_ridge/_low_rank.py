"""A Gram matrix of low rank in the place of a large one: what iterative solvers start from."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, solve_triangular

from fastml._runtime.eigen import eigenpairs

BLOCK = 64  # pivots that are chosen at once


def pivoted_cholesky(
    rows: Callable[[np.ndarray], Any], diagonal: np.ndarray, rank: int
) -> np.ndarray:
    """F (n, r) with F Fᵀ near the Gram matrix that has these `rows`; r is at most `rank`.

    Pivots are drawn by what the diagonal still lacks, many at once: randomly pivoted Cholesky
    (Chen, Epperly, Tropp and Webber, 2023), always with the same draws.
    """
    left, n, random_state = diagonal, len(diagonal), np.random.RandomState(0)
    F = np.empty((n, min(rank, n)), order="F")
    enough = 8 * np.finfo(np.float64).eps * left.max(initial=0)
    r = 0
    while r < F.shape[1] and left.max() > enough:
        p = np.where(left > enough, left, 0)
        count = min(BLOCK, F.shape[1] - r, int((p > 0).sum()))
        pivots = np.sort(random_state.choice(n, count, replace=False, p=p / p.sum()))
        columns = np.array(rows(pivots), dtype=np.float64).T
        columns -= F[:, :r] @ F[pivots, :r].T
        core = columns[pivots]
        # Pivots may be nearly dependent; what this adds is small beside what they leave out.
        core.flat[:: count + 1] += 1e-10 * max(core.trace(), enough)
        try:
            L = cho_factor(core, lower=True)[0]
        except np.linalg.LinAlgError:  # the kernel is not positive definite
            break
        F[:, r : r + count] = solve_triangular(L, columns.T, lower=True).T
        left = np.maximum(left - (F[:, r : r + count] ** 2).sum(axis=1), 0)
        left[pivots] = 0
        r += count
    return F[:, :r]


class Deflation:
    """The inverse of F Fᵀ + alpha, times alpha + the least eigenvalue that F Fᵀ has: near one
    where F tells nothing (Frangella, Tropp and Udell, 2023)."""

    def __init__(self, F: np.ndarray) -> None:
        values, vectors = eigenpairs(F.T @ F)
        kept = values > np.finfo(np.float64).eps * values.max(initial=0)
        self.values = values[kept]
        self.U = F @ (vectors[kept].T / np.sqrt(self.values))

    def __call__(self, B: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """Times B; alpha is a number for each of its columns."""
        if not len(self.values):
            return B.copy()
        inside = self.U.T @ B
        scale = (self.values.min() + alpha) / (self.values[:, None] + alpha) - 1
        return B + self.U @ (scale * inside)
