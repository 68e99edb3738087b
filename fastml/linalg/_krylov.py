"""Leading eigenpairs of a symmetric operator, from a block Krylov space that restarts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from sklearn.utils import check_random_state

Product = Callable[[np.ndarray], np.ndarray]
Progress = Callable[[int, np.ndarray | None], Any]

PATIENCE = 40  # iterations without progress, after which rounding is all that is left


class Eigenpairs(NamedTuple):
    """Eigenvalues and eigenvectors of a symmetric matrix, and what certifies them.

    Attributes
    ----------
    values : ndarray of shape (k,)
        The eigenvalues v'Av, those of largest magnitude first.

    vectors : ndarray of shape (n, k)
        Orthonormal eigenvectors.

    residuals : ndarray of shape (k,)
        The norms of Av - (v'Av)v: an eigenvalue is no farther from v'Av.

    n_iter : int
        The number of iterations.

    converged : bool
        Whether the residuals are below the tolerance.
    """

    values: np.ndarray
    vectors: np.ndarray
    residuals: np.ndarray
    n_iter: int
    converged: bool


def floor_of(dtype: Any, n: int) -> float:
    """The relative residual that rounding leaves."""
    return float(np.finfo(dtype).eps * max(10.0, n**0.5))


def by_magnitude(H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All eigenpairs of a small symmetric matrix, of which rounding has left an asymmetric one."""
    values, S = linalg.eigh((H + H.T) / 2, check_finite=False)
    order = np.argsort(-abs(values), kind="stable")
    return values[order], S[:, order]


def orthonormal_rest(W: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the columns of W less their part in the orthonormal `basis`.

    What is in it up to rounding is left out. Twice is enough (Kahan and Parlett).
    """
    scale = np.linalg.norm(W, axis=0)
    W = W[:, scale > 0] / scale[scale > 0]
    for _ in range(2):
        W = W - basis @ (basis.T @ W)
        if W.shape[1] == 0:
            return W
        W, R, _ = linalg.qr(W, mode="economic", pivoting=True, check_finite=False)
        kept = abs(np.diag(R)) > 10 * W.shape[0] ** 0.5 * np.finfo(W.dtype).eps
        W = W[:, : len(kept)][:, kept]
    return W


def leading(
    apply: Product,
    n: int,
    k: int,
    *,
    dtype: Any,
    tol: float,
    max_iter: int,
    random_state: Any = None,
    progress: Progress | None = None,
) -> Eigenpairs:
    """The k eigenvalues of largest magnitude of the symmetric n x n operator `apply`.

    Each iteration applies it to one block. Rayleigh-Ritz in all blocks together; where they have
    become too many, the best Ritz vectors stand for them (Stewart's Krylov-Schur, Wu and Simon's
    thick restart, in blocks). Both the basis and its image are kept, so that residuals are those of
    the vectors returned and not an estimate.
    """
    random = check_random_state(random_state)
    block = min(n, min(max(k // 4, 4), 16))
    most = min(n, max(2 * k, k + 6 * block))
    tol = max(tol, floor_of(dtype, n))
    V = np.empty((n, 0), dtype)
    A = np.empty((n, 0), dtype)
    fresh = orthonormal_rest(random.normal(size=(n, block)).astype(dtype), V)
    best, best_iter = np.inf, 0
    for n_iter in range(1, max_iter + 1):
        V, A = np.hstack([V, fresh]), np.hstack([A, apply(fresh)])
        values, S = by_magnitude(V.T @ A)
        m = min(k, len(values))
        values = values[: m + block]
        ritz, image = V @ S[:, : m + block], A @ S[:, : m + block]
        rest = image - ritz * values
        residuals = np.linalg.norm(rest, axis=0)
        if m == k and residuals[:k].max() < 0.9 * best:
            best, best_iter = residuals[:k].max(), n_iter
        unfinished = residuals > tol * abs(values[0])
        converged = m == k and not unfinished[:m].any()
        stop = progress is not None and progress(n_iter, residuals[:m])
        stalled = m == k and n_iter - best_iter > PATIENCE
        if converged or stop or stalled or V.shape[1] == n:
            break
        if V.shape[1] + block > most:
            V, A = ritz, image
        # The leading ones that are not there yet are what the next block is for.
        wanted = np.argsort(~unfinished, kind="stable")[:block]
        fresh = orthonormal_rest(rest[:, wanted], V)
        lacking = min(block, n - V.shape[1]) - fresh.shape[1]
        if lacking > 0:
            more = random.normal(size=(n, lacking)).astype(dtype)
            fresh = np.hstack([fresh, orthonormal_rest(more, np.hstack([V, fresh]))])
    return Eigenpairs(values[:m], ritz[:, :m], residuals[:m], n_iter, bool(converged))
