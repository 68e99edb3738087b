"""Truncated singular value decompositions of matrices that are only multiplied with."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy import linalg
from sklearn.utils import check_random_state

from fastml.linalg._krylov import Progress, leading
from fastml.linalg._orthonormal import condition, qr, scaled, tall_svd
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
    progress: Progress | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, s, Vt of rank k, from a random block and `n_iter` powers of it.

    The random numbers and what each argument means are those of scikit-learn's function, and so
    are U, s and Vt, but for rounding and for signs: those are the caller's. The powers end as soon
    as progress(n_iter, None) is true.
    """
    n, d = rows.shape
    if n_iter == "auto":
        n_iter = 7 if k < 0.1 * min(n, d) else 4
    wide = n < d
    forth, back = (rows.transposed, rows.times) if wide else (rows.times, rows.transposed)
    twice = rows.outer_gram if wide else rows.gram
    Q = check_random_state(random_state).normal(size=(min(n, d), k + n_oversamples))
    Q = Q.astype(rows.dtype, copy=False)
    if power_iteration_normalizer == "auto":
        power_iteration_normalizer = "none" if n_iter <= 2 else "LU"
    spread = np.inf
    for done in range(1, n_iter + 1):
        # Only the range is wanted: any normalizer will do, and none is needed between A and A'
        # where the singular values are not too far apart for the precision of the products.
        if power_iteration_normalizer == "none":
            Q = twice(Q)
        elif spread**2 < np.finfo(Q.dtype).eps ** -0.3:
            Q, R = _basis(twice(Q))
            spread = condition(R) ** 0.5
        else:
            Q, R = _basis(forth(Q))
            Q, S = _basis(back(Q))
            spread = max(condition(R), condition(S))
        if progress is not None and progress(done, None):
            break
    Q, _ = qr(forth(Q))
    P, s, Wt = tall_svd(back(Q))
    U, Vt = Rows(Q).times(Wt[:k].T), P[:, :k].T
    return (Vt.T, s[:k], U.T) if wide else (U, s[:k], Vt)


def _basis(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A well conditioned basis of the columns of Y and the factor that was left out."""
    found = scaled(Y)
    return linalg.lu(Y, permute_l=True, check_finite=False) if found is None else found


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
    where A has more columns than rows): s_i^2 is that near to an eigenvalue. Ends where all are
    below tol * s_0^2, after max_iter iterations, or as soon as progress(n_iter, residuals) is true.
    """
    n, d = rows.shape
    wide = n < d
    pairs = leading(
        rows.outer_gram if wide else rows.gram,
        min(n, d),
        k,
        dtype=rows.dtype,
        tol=tol,
        max_iter=max_iter,
        random_state=random_state,
        progress=progress,
    )
    P, s, Wt = tall_svd((rows.transposed if wide else rows.times)(pairs.vectors))
    W = Rows(pairs.vectors).times(Wt.T)
    U, Vt = (W, P.T) if wide else (P, W.T)
    return U, s, Vt, pairs.n_iter, pairs.residuals
