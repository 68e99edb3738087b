"""The Gram matrix as Newton's method uses it: kept, or computed again as it is needed."""

from typing import Any

import numpy as np
from scipy.linalg import blas, cho_factor, cho_solve

from fastml._native.cholesky import scaled_mirror
from fastml._runtime.callbacks import NO_TASK
from fastml._runtime.threads import n_threads
from fastml.kernel_logistic._loss import OneScore
from fastml.kernel_ridge._cholesky import factorise, solve
from fastml.kernel_ridge._low_rank import pivoted_cholesky
from fastml.metrics._kernel_function import (
    KernelFunction,
    dtype_of_gram,
    function_of,
    in_precision,
    is_precomputed,
    own_gram,
)


class KeptGram:
    """One in memory. What is on and above its diagonal is for the preconditioner to use."""

    def __init__(self, K: np.ndarray) -> None:
        self.K, self.n, self.dtype = K, len(K), K.dtype
        self.diagonal = K.diagonal().copy()

    def rows(self, index: np.ndarray) -> np.ndarray:
        return self.K[index]

    def product(self, V: np.ndarray) -> np.ndarray:
        """K V, V (n, k) in double."""
        K, V = self.K, V.astype(self.dtype, order="F")
        above = K.diagonal().copy()
        K.flat[:: self.n + 1] = self.diagonal
        double = self.dtype == np.float64
        # In the order of columns, as BLAS reads K, what is below its diagonal is above.
        if V.shape[1] == 1:
            out = (blas.dsymv if double else blas.ssymv)(1.0, K.T, V[:, 0])[:, None]
        else:
            out = (blas.dsymm if double else blas.ssymm)(1.0, K.T, V)
        K.flat[:: self.n + 1] = above
        return out.astype(np.float64, copy=False)


class StreamedGram:
    """One that is never formed."""

    def __init__(self, kernel: KernelFunction, X: Any, dtype: np.dtype) -> None:
        self.kernel, self.X, self.dtype, self.n = kernel, X, dtype, X.shape[0]
        self.diagonal = kernel.diagonal(X)

    def rows(self, index: np.ndarray) -> np.ndarray:
        return self.kernel(self.X[index], self.X)

    def product(self, V: np.ndarray) -> np.ndarray:
        return self.kernel.apply(self.X, self.X, V).astype(np.float64, copy=False)


def gram_of(estimator: Any, X: Any, keep: bool | None) -> KeptGram | StreamedGram:
    """Kept, or not; None: if it is given, or takes no more than `max_gram_mb`."""
    dtype, given = dtype_of_gram(estimator.kernel, X), is_precomputed(estimator.kernel)
    if keep is None:
        n, most = X.shape[0] if hasattr(X, "shape") else len(X), estimator.max_gram_mb
        keep = most is None or n**2 * dtype.itemsize <= most * 2**20
    if keep or given:
        return KeptGram(own_gram(estimator, X, dtype))
    return StreamedGram(function_of(estimator), in_precision(X, dtype), dtype)


class Factor:
    """The inverse of 1 + S (K + constant) S, S² = diag(weight), in K's memory."""

    def __init__(self, gram: KeptGram) -> None:
        self.gram = gram

    def prepare(self, slope: OneScore, constant: float) -> None:
        gram, shift, weight = self.gram, 1.0, slope.weight()[:, 0]
        scale = np.sqrt(weight).astype(gram.dtype)
        rounding = 10 * np.finfo(gram.dtype).eps * float(weight @ (abs(gram.diagonal) + constant))
        for _ in range(4):
            scaled_mirror(gram.K, gram.diagonal, scale, constant, shift, n_threads())
            if factorise(gram.K, NO_TASK):
                return
            # What rounding took from the least eigenvalues: the factor only guides the search.
            shift, rounding = shift + rounding, 100 * rounding
        raise ValueError("The kernel is not positive definite, or C is too large for its dtype.")

    def __call__(self, V: np.ndarray) -> np.ndarray:
        V = V.astype(self.gram.dtype, order="F")
        return solve(self.gram.K, V).astype(np.float64, copy=False)


class LowRank:
    """The inverse of 1 + Eᵀ (F Fᵀ + constant) E, H = E Eᵀ, for any number of classes.

    `size`: of what is factorised a step, about: the rank of F Fᵀ times the scores of a row.
    """

    def __init__(self, gram: KeptGram | StreamedGram, size: int, n_scores: int) -> None:
        self.n_scores = n_scores
        self.F = pivoted_cholesky(gram.rows, gram.diagonal, max(1, size // n_scores))

    def prepare(self, slope: OneScore, constant: float) -> None:
        constants = np.full((len(self.F), 1), np.sqrt(constant))
        self.B, self.slope = np.hstack([self.F, constants]), slope
        r, k = self.B.shape[1], self.n_scores
        core = np.empty((k, r, k, r))
        for a in range(k):
            for b in range(a + 1):
                core[a, :, b] = core[b, :, a] = self.B.T @ (slope.entry(a, b)[:, None] * self.B)
        core = core.reshape(k * r, k * r)
        core.flat[:: k * r + 1] += 1
        self.core = cho_factor(core, overwrite_a=True, check_finite=False)

    def __call__(self, V: np.ndarray) -> np.ndarray:
        inner = self.B.T @ self.slope.spread(V)
        found = cho_solve(self.core, inner.ravel(order="F"), check_finite=False)
        return V - self.slope.gather(self.B @ found.reshape(inner.shape, order="F"))
