"""Orthonormal bases of tall blocks of vectors."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from fastml._native import power
from fastml._runtime.forks import unforked
from fastml.linalg._rows import Rows


@unforked()
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


@unforked()
def tall_svd(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, s, Vt of a block with no more columns than rows, or few more."""
    Q, R = qr(Y)
    U, s, Vt = linalg.svd(R, full_matrices=False, check_finite=False)
    return Rows(Q).times(U), s, Vt


def scaled(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Q with nearly orthonormal columns and R of Q R = Y, or None if there might be none.

    The columns of Q are orthonormal up to the square of the condition of Y.
    """
    n, k = Y.shape
    if n < k:
        return None
    rows = Rows(Y)
    G = rows.transposed(Y).astype(np.float64, copy=False)
    R, inverse = np.empty_like(G), np.empty_like(G)
    found = power.factorise(G, R, inverse)
    if not found or not condition(R) < 0.1 * np.finfo(Y.dtype).eps ** -0.5:
        return None
    return rows.times(inverse), R.astype(Y.dtype, copy=False)


def condition(R: np.ndarray) -> float:
    """About the condition of a triangular factor whose columns are scaled as their norms are."""
    sizes = abs(np.diag(R))
    return float(sizes.max() / sizes.min()) if sizes.min() > 0 else np.inf
