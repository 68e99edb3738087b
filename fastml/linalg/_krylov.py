"""Leading eigenpairs of a symmetric operator, from a block Krylov space that restarts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from sklearn.utils import check_random_state

Product = Callable[[np.ndarray], np.ndarray]
Progress = Callable[[int, np.ndarray | None], Any]


class Eigenpairs(NamedTuple):
    """values (k,), vectors (n, k), and what certifies them."""

    values: np.ndarray
    vectors: np.ndarray
    n_iter: int
    residuals: np.ndarray
    converged: bool


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
    block_size: int | None = None,
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
    block = min(n, block_size or min(max(k // 4, 4), 16))
    most = min(n, max(2 * k, k + 6 * block))
    V = np.empty((n, 0), dtype)
    A = np.empty((n, 0), dtype)
    fresh = orthonormal_rest(random.normal(size=(n, block)).astype(dtype), V)
    for n_iter in range(1, max_iter + 1):
        V, A = np.hstack([V, fresh]), np.hstack([A, apply(fresh)])
        H = V.T @ A
        values, S = linalg.eigh((H + H.T) / 2, check_finite=False)
        order = np.argsort(-abs(values), kind="stable")
        values, S = values[order], S[:, order]
        m = min(k, len(values))
        ritz, image = V @ S[:, : m + block], A @ S[:, : m + block]
        rest = image - ritz * values[: m + block]
        residuals = np.linalg.norm(rest, axis=0)
        stop = progress is not None and progress(n_iter, residuals[:m])
        open_ = residuals > max(tol, 10 * np.finfo(dtype).eps) * abs(values[0])
        converged = m == k and not open_[:m].any()
        if converged or stop or V.shape[1] == n:
            break
        if V.shape[1] + block > most:
            V, A = ritz, image
        # The leading ones that are not there yet are what the next block is for.
        wanted = np.argsort(~open_, kind="stable")[:block]
        fresh = orthonormal_rest(rest[:, wanted], V)
        if fresh.shape[1] < min(block, n - V.shape[1]):
            more = random.normal(size=(n, block - fresh.shape[1])).astype(dtype)
            fresh = np.hstack([fresh, orthonormal_rest(more, np.hstack([V, fresh]))])
    return Eigenpairs(values[:m], ritz[:, :m], n_iter, residuals[:m], bool(converged))
