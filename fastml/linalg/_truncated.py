"""Leading singular values and vectors."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.utils.extmath import svd_flip

from fastml.linalg._eigenpairs import as_rows, warn_of
from fastml.linalg._krylov import Progress, floor_of
from fastml.linalg._rows import Rows
from fastml.linalg._svd import power_svd, randomized_svd
from fastml.linalg._units import exponent_of, in_units, total_square


class SingularTriplets(NamedTuple):
    """Singular values and vectors, and what certifies them.

    Attributes
    ----------
    U : ndarray of shape (n, k)
        Left singular vectors.

    s : ndarray of shape (k,)
        Singular values, the largest first.

    Vt : ndarray of shape (k, d)
        Right singular vectors, as rows.

    residuals : ndarray of shape (k,)
        The norms of X'Xv - s^2 v, or of XX'u - s^2 u where X has more columns than rows. An
        eigenvalue of X'X is no farther from s^2.

    n_iter : int
        The number of iterations.

    converged : bool
        Whether the residuals are below the tolerance.
    """

    U: np.ndarray
    s: np.ndarray
    Vt: np.ndarray
    residuals: np.ndarray
    n_iter: int
    converged: bool


def truncated_svd(
    X: Any,
    k: int,
    *,
    method: Literal["krylov", "randomized"] = "krylov",
    centre: bool = False,
    tol: float = 1e-8,
    max_iter: int = 300,
    n_oversamples: int = 10,
    n_iter: int | Literal["auto"] = "auto",
    random_state: Any = None,
    progress: Progress | None = None,
) -> SingularTriplets:
    """Find the leading singular values and vectors of a matrix.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        The matrix. Float32 and float64 are computed in; a memory map is read where it lies.

    k : int
        How many.

    method : {"krylov", "randomized"}, default="krylov"
        "krylov" iterates until `tol` is reached. "randomized" makes `n_iter` power iterations of
        k + `n_oversamples` random vectors, those of scikit-learn's `randomized_svd`, and says how
        good the result is.

    centre : bool, default=False
        Whether to subtract from X the mean of its rows; the difference is never formed.

    tol : float, default=1e-8
        The residual, in units of the largest squared singular value, at which to stop.

    max_iter : int, default=300
        The most iterations, for "krylov".

    n_oversamples : int, default=10
        How many random vectors more than k, for "randomized".

    n_iter : int or "auto", default="auto"
        The number of power iterations, for "randomized": if "auto" 7 for few vectors, else 4.

    random_state : int, RandomState instance or None, default=None
        Of the vectors to start from.

    progress : callable, default=None
        Called with the number of iterations and the residuals (None for "randomized") after each.
        If it returns something true, the search ends with what there is.

    Returns
    -------
    SingularTriplets
        U (n, k), s (k,), Vt (k, d), residuals (k,), n_iter, converged. In each row of Vt the entry
        of largest magnitude is positive.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.linalg import truncated_svd
    >>> X = np.random.default_rng(0).normal(size=(500, 40)) @ np.diag(0.8 ** np.arange(40))
    >>> found = truncated_svd(X, 3, random_state=0)
    >>> bool(np.allclose(found.s, np.linalg.svd(X)[1][:3]))
    True
    >>> found.converged
    True
    """
    rows = as_rows(X, centre)
    if exponent := exponent_of(total_square(rows.X), rows.X):
        mean = None if rows.mean is None else np.ldexp(rows.mean, -exponent)
        rows = Rows(in_units(rows.X, exponent), mean)
    smaller = min(rows.shape)
    if not 1 <= k <= smaller:
        raise ValueError(f"k={k} of a matrix of shape {rows.shape}: it must be from 1 to {smaller}")
    if method == "krylov":
        U, s, Vt, done, residuals = power_svd(
            rows, k, tol=tol, max_iter=max_iter, random_state=random_state, progress=progress
        )
    elif method == "randomized":
        done = n_iter if n_iter != "auto" else 7 if k < 0.1 * smaller else 4
        U, s, Vt = randomized_svd(
            rows,
            k,
            n_oversamples=n_oversamples,
            n_iter=done,
            random_state=random_state,
            progress=progress,
        )
        W, turned = (U, rows.outer_gram) if rows.shape[0] < rows.shape[1] else (Vt.T, rows.gram)
        residuals = np.linalg.norm(turned(W) - W * s**2, axis=0)
    else:
        raise ValueError(f"method={method!r} is neither 'krylov' nor 'randomized'")
    U, Vt = svd_flip(U, Vt, u_based_decision=False)
    limit = max(tol, floor_of(rows.dtype, smaller)) * s[0] ** 2
    converged = bool((residuals <= limit).all())
    with np.errstate(over="ignore"):  # which squares may
        s, residuals = np.ldexp(s, exponent), np.ldexp(residuals, 2 * exponent)
    if not converged and method == "krylov" and progress is None:
        warn_of(residuals)
    return SingularTriplets(U, s, Vt, residuals, done, converged)
