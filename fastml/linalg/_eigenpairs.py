"""Eigenpairs of largest magnitude, by products alone."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state

from fastml.linalg._krylov import Eigenpairs, Product, Progress, by_magnitude, floor_of, leading
from fastml.linalg._orthonormal import qr
from fastml.linalg._rows import Rows


def eigenpairs(
    A: Any,
    k: int = 1,
    *,
    method: Literal["krylov", "subspace", "power"] = "krylov",
    gram: bool = False,
    centre: bool = False,
    tol: float = 1e-8,
    max_iter: int = 1000,
    random_state: Any = None,
    progress: Progress | None = None,
) -> Eigenpairs:
    """Find the eigenpairs of largest magnitude of a symmetric matrix, or of X'X.

    They come with a certificate: for a symmetric matrix and a unit vector v, an eigenvalue is no
    farther from v'Av than the norm of Av - (v'Av)v. Each iteration reads the matrix once: the
    product X'(Xv) is made of rows while they are in cache, X'X never.

    Parameters
    ----------
    A : array-like or sparse matrix of shape (n, n), or (n, d) with `gram`
        The matrix. Float32 and float64 are computed in; a memory map is read where it lies.

    k : int, default=1
        How many eigenpairs.

    method : {"krylov", "subspace", "power"}, default="krylov"
        "krylov" takes the best of all that was multiplied so far (block Lanczos with restarts): the
        fewest iterations by far. "subspace" multiplies k + 8 vectors again and again, and keeps no
        others. "power" multiplies one vector; the next eigenpair is found by the same after the
        last has been peeled off. It does not tell eigenvalues of one magnitude and two signs apart.

    gram : bool, default=False
        Whether to take the matrix as X, and find the eigenpairs of X'X.

    centre : bool, default=False
        Whether to subtract from X the mean of its rows, which is never formed. Only with `gram`.

    tol : float, default=1e-8
        The residual of each pair, in units of the eigenvalue of largest magnitude, at which to
        stop. What is below rounding is taken for rounding.

    max_iter : int, default=1000
        The most iterations; for "power" of each eigenpair.

    random_state : int, RandomState instance or None, default=None
        Of the vectors to start from.

    progress : callable, default=None
        Called with the number of iterations and the residuals after each. If it returns something
        true, the search ends with what there is.

    Returns
    -------
    Eigenpairs
        values (k,), those of largest magnitude first, with their signs; vectors (n, k); residuals
        (k,), the norms of Av - (v'Av)v; n_iter; converged.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.linalg import eigenpairs
    >>> A = np.diag([1.0, -5.0, 3.0])
    >>> found = eigenpairs(A, k=2, random_state=0)
    >>> found.values.round(6)
    array([-5.,  3.])
    >>> X = np.random.default_rng(0).normal(size=(1000, 20)) + 7
    >>> value = eigenpairs(X, gram=True, centre=True, random_state=0).values[0]
    >>> bool(np.isclose(value, np.linalg.eigvalsh(999 * np.cov(X.T))[-1]))
    True
    """
    rows = as_rows(A, centre)
    n = rows.shape[1]
    if centre and not gram:
        raise ValueError("centre=True is of the rows of X: it goes with gram=True")
    if not gram:
        _check_symmetric(rows)
    if not 1 <= k <= n:
        raise ValueError(f"k={k} eigenpairs of a matrix of order {n}: it must be from 1 to {n}")
    if method not in _METHODS:
        raise ValueError(f"method={method!r} is none of {', '.join(map(repr, _METHODS))}")
    found = _METHODS[method](
        rows.gram if gram else rows.times,
        n,
        k,
        dtype=rows.dtype,
        tol=tol,
        max_iter=max_iter,
        random_state=random_state,
        progress=progress,
    )
    if not found.converged and progress is None:
        warn_of(found.residuals)
    return found


def as_rows(X: Any, centre: bool) -> Rows:
    X = check_array(X, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32))
    mean = X.mean(axis=0, dtype=np.float64) if centre else None
    return Rows(X, np.asarray(mean).ravel() if centre else None)


def warn_of(residuals: np.ndarray) -> None:
    warnings.warn(
        f"Iterations ended with residuals up to {residuals.max():.3g}, above tol. Increase "
        "max_iter or tol.",
        ConvergenceWarning,
        stacklevel=3,
    )


def _check_symmetric(rows: Rows) -> None:
    """By Ax = A'x of one random x, which tells with certainty and takes no memory."""
    n, d = rows.shape
    if n != d:
        raise ValueError(
            f"a matrix of shape {rows.shape} has no eigenvectors: X'X does, by gram=True"
        )
    x = np.random.RandomState(0).normal(size=(n, 1)).astype(rows.dtype)
    one, other = rows.times(x), rows.transposed(x)
    scale = max(np.linalg.norm(one), np.linalg.norm(other))
    if np.linalg.norm(one - other) > 100 * n * np.finfo(rows.dtype).eps * scale:
        raise ValueError("the matrix is not symmetric: pass (A + A.T) / 2, or gram=True for A'A")


def _subspace(
    apply: Product,
    n: int,
    k: int,
    *,
    dtype: Any,
    tol: float,
    max_iter: int,
    random_state: Any,
    progress: Progress | None,
) -> Eigenpairs:
    """Block power iterations with a Rayleigh-Ritz step each."""
    size = min(n, k + 8)
    V, _ = qr(check_random_state(random_state).normal(size=(n, size)).astype(dtype))
    tol = max(tol, floor_of(dtype, n))
    for n_iter in range(1, max_iter + 1):
        W = apply(V)
        values, S = by_magnitude(V.T @ W)
        V, W = V @ S, W @ S
        residuals = np.linalg.norm(W[:, :k] - V[:, :k] * values[:k], axis=0)
        converged = bool((residuals <= tol * abs(values[0])).all())
        stop = progress is not None and progress(n_iter, residuals)
        if converged or stop or n_iter == max_iter:
            break
        V, _ = qr(W)
    return Eigenpairs(values[:k], V[:, :k], residuals, n_iter, converged)


def _peeled(
    apply: Product,
    n: int,
    k: int,
    *,
    dtype: Any,
    tol: float,
    max_iter: int,
    random_state: Any,
    progress: Progress | None,
) -> Eigenpairs:
    """The power method, each eigenpair orthogonal to those before."""
    random = check_random_state(random_state)
    tol = max(tol, floor_of(dtype, n))
    U = np.zeros((n, k), dtype)
    values, residuals = np.zeros(k), np.zeros(k)
    total, converged, stop = 0, True, False
    for j in range(k):
        v = random.normal(size=(n, 1)).astype(dtype)
        for last in range(max_iter - 1, -1, -1):
            v -= U[:, :j] @ (U[:, :j].T @ v)
            v /= linalg.norm(v)
            w = apply(v)
            total += 1
            # Not the norm of Av, which has no sign.
            values[j] = np.vdot(v, w)
            residuals[j] = linalg.norm(w - values[j] * v)
            enough = residuals[j] <= tol * max(abs(values).max(), np.finfo(dtype).tiny)
            stop = progress is not None and progress(total, residuals[: j + 1])
            if enough or stop or not last:
                break
            v = w
        U[:, j] = v[:, 0]
        converged &= bool(enough)
        if stop:
            return Eigenpairs(values[: j + 1], U[:, : j + 1], residuals[: j + 1], total, False)
    order = np.argsort(-abs(values), kind="stable")
    return Eigenpairs(
        values[order].astype(dtype), U[:, order], residuals[order].astype(dtype), total, converged
    )


_METHODS: dict[str, Any] = {"krylov": leading, "subspace": _subspace, "power": _peeled}
