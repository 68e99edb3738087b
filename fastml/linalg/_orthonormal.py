"""Orthonormal bases of tall blocks of vectors."""

from __future__ import annotations

import numpy as np
from scipy import linalg


def qr(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Q (n, m) with orthonormal columns and R (m, k) such that Q R = Y, m = min(n, k).

    By Cholesky factors of the Gram matrix, twice (Yamamoto et al. 2015), which is all matrix
    products; by Householder reflections where the columns are too near to dependent.
    """
    first = scaled(Y)
    second = None if first is None else scaled(first[0])
    if first is None or second is None:
        return linalg.qr(Y, mode="economic", check_finite=False)
    return second[0], second[1] @ first[1]


def tall_svd(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, s, Vt of a block with no more columns than rows, or few more."""
    Q, R = qr(Y)
    U, s, Vt = linalg.svd(R, full_matrices=False, check_finite=False)
    return Q @ U, s, Vt


def scaled(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Q with nearly orthonormal columns and R of Q R = Y, or None if there might be none.

    The columns of Q are orthonormal up to the square of the condition of Y.
    """
    n, k = Y.shape
    if n < k:
        return None
    potrf, trsm = (
        linalg.get_lapack_funcs("potrf", (Y,)),
        linalg.get_blas_funcs("trsm", (Y,)),
    )
    R, info = potrf(Y.T @ Y, lower=False, clean=True)
    if info or not condition(R) < 0.1 * np.finfo(Y.dtype).eps ** -0.5:
        return None
    # R' Q' = Y', whose memory is Y's as Fortran has it.
    return trsm(1.0, R, np.ascontiguousarray(Y).T, trans_a=True).T, R


def condition(R: np.ndarray) -> float:
    """About the condition of a triangular factor whose columns are scaled as their norms are."""
    sizes = abs(np.diag(R))
    return float(sizes.max() / sizes.min()) if sizes.min() > 0 else np.inf
