"""Symmetric matrices factorised where they are: one triangle is the matrix's, one the factor's."""

import numpy as np
from scipy.linalg import lapack

from fastml._native.cholesky import factorise_panel, scaled_mirror
from fastml._runtime.callbacks import Task
from fastml._runtime.threads import n_threads

WHOLE = 8192  # rows of a matrix that LAPACK factorises in less than a second


def panels(n: int) -> list[tuple[int, int]]:
    """First row and width of the panels, each a fraction of a second of work."""
    width = max(n, 1) if n <= WHOLE else min(512, max(128, 2**22 // n // 64 * 64))
    return [(begin, min(width, n - begin)) for begin in range(0, n, width)]


def factorise(K: np.ndarray, task: Task) -> bool:
    """Turn what is on and above the diagonal of `K` into R with RᵀR = K, if there is such.

    K is in C order. What is below its diagonal stays as it is. Returns whether R is of any use: a
    pivot that is rounding alone makes it worthless.
    """
    largest = K.diagonal().max(initial=0)
    for begin, width in panels(len(K)):
        with task.subtask("panel"):
            if not factorise_panel(K, begin, width):
                return False
    return bool((K.diagonal() ** 2).min(initial=np.inf) > 4 * np.finfo(K.dtype).eps * largest)


def solve(R: np.ndarray, B: np.ndarray) -> np.ndarray:
    """(RᵀR)⁻¹ B, B in the dtype of R."""
    potrs = lapack.dpotrs if R.dtype == np.float64 else lapack.spotrs
    return potrs(R.T, B, lower=1)[0]


def restore(K: np.ndarray, diagonal: np.ndarray) -> None:
    """Copy what is below the diagonal of `K` to above it, and put back the diagonal."""
    if len(K):
        scaled_mirror(K, diagonal, np.ones_like(diagonal), 0.0, 0.0, n_threads())
