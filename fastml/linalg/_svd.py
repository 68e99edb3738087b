"""Truncated singular value decompositions of matrices that are only multiplied with."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy import linalg
from sklearn.utils import check_random_state

from fastml.linalg._krylov import Progress, leading
from fastml.linalg._rows import Rows

__all__ = ["Rows", "power_svd", "randomized_svd"]

Normalizer = Literal["auto", "QR", "LU", "none"]


def randomized_svd(
    rows: Rows,
    k: int,
    *,
    n_oversamples: int = 10,
    n_iter: int | Literal["auto"] = "auto",
    power_iteration_normalizer: Normalizer = "auto",
    random_state: Any = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, s, Vt of rank k, from a random block and `n_iter` powers of it.

    The random numbers and what each argument means are those of scikit-learn's function, and so
    are U, s and Vt, but for rounding and for signs: those are the caller's.
    """
    n, d = rows.shape
    if n_iter == "auto":
        n_iter = 7 if k < 0.1 * min(n, d) else 4
    wide = n < d
    forth, back = (rows.transposed, rows.times) if wide else (rows.times, rows.transposed)
    Q = check_random_state(random_state).normal(size=(min(n, d), k + n_oversamples))
    Q = Q.astype(rows.dtype, copy=False)
    if power_iteration_normalizer == "auto":
        power_iteration_normalizer = "none" if n_iter <= 2 else "LU"
    for _ in range(n_iter):
        Q = _normalized(
            back(_normalized(forth(Q), power_iteration_normalizer)), power_iteration_normalizer
        )
    Q = _normalized(forth(Q), "QR")
    U, s, Vt = linalg.svd(back(Q).T, full_matrices=False, check_finite=False)
    U = Q @ U
    if wide:
        return Vt[:k].T, s[:k], U[:, :k].T
    return U[:, :k], s[:k], Vt[:k]


def _normalized(Q: np.ndarray, normalizer: Normalizer) -> np.ndarray:
    if normalizer == "none":
        return Q
    if normalizer == "LU":
        return linalg.lu(Q, permute_l=True, check_finite=False)[0]
    return linalg.qr(Q, mode="economic", check_finite=False)[0]


def power_svd(
    rows: Rows,
    k: int,
    *,
    tol: float = 1e-6,
    max_iter: int = 300,
    random_state: Any = None,
    progress: Progress | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int, np.ndarray]:
    """U, s, Vt of rank k to a residual, the number of passes over X, and the residuals.

    residuals[i] = |A'A v_i - s_i^2 v_i| of the right singular vectors (of A A' and the left ones
    where A has more columns than rows): s_i^2 is that near to an eigenvalue. Ends where all are below
    tol * s_0^2, after max_iter iterations, or as soon as progress(n_iter, residuals) is true.
    """
    n, d = rows.shape
    wide = n < d
    if wide:
        pairs = leading(
            lambda U: rows.times(rows.transposed(U)),
            n,
            k,
            dtype=rows.dtype,
            tol=tol,
            max_iter=max_iter,
            random_state=random_state,
            progress=progress,
        )
        Q, R = linalg.qr(rows.transposed(pairs.vectors), mode="economic", check_finite=False)
        A, s, Bt = linalg.svd(R, check_finite=False)
        return pairs.vectors @ Bt.T, s, (Q @ A).T, pairs.n_iter, pairs.residuals
    pairs = leading(
        rows.gram,
        d,
        k,
        dtype=rows.dtype,
        tol=tol,
        max_iter=max_iter,
        random_state=random_state,
        progress=progress,
    )
    Q, R = linalg.qr(rows.times(pairs.vectors), mode="economic", check_finite=False)
    A, s, Bt = linalg.svd(R, check_finite=False)
    return Q @ A, s, Bt @ pairs.vectors.T, pairs.n_iter, pairs.residuals
