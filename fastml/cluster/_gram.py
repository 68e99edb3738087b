"""The Gram matrix of kernel k-means: kept, or computed again as it is needed."""

from typing import Any

import numpy as np
from scipy.sparse import issparse

from fastml._native import kernel_kmeans as native
from fastml._runtime.threads import n_threads
from fastml.metrics._kernel_function import KernelFunction


class Gram:
    """A Gram matrix in memory."""

    def __init__(self, K: np.ndarray) -> None:
        self.K = K
        self.n, self.dtype = len(K), K.dtype
        self.diagonal = K.diagonal().astype(np.float64)

    def is_finite(self) -> bool:
        """Whether its values are, as far as they are known."""
        with np.errstate(over="ignore", invalid="ignore"):
            return bool(np.isfinite(self.K.sum()) or np.isfinite(self.K).all())

    def rows(self, index: Any) -> np.ndarray:
        return self.K[index].astype(np.float64)

    def move(
        self,
        rows: np.ndarray,
        source: np.ndarray | None,
        target: np.ndarray,
        w: np.ndarray,
        sums: np.ndarray,
    ) -> None:
        """Add rows, times their weights, to the sums of `target`; take them from `source`."""
        native.move_rows(self.K, rows, source, target, w, sums, n_threads())


class StreamedGram(Gram):
    """One that is never formed."""

    def __init__(self, kernel: KernelFunction, X: Any, dtype: np.dtype) -> None:
        self.kernel, self.X = kernel, X
        self.n, self.dtype = X.shape[0], dtype
        self.diagonal = kernel.diagonal(X)

    def is_finite(self) -> bool:
        return bool(np.isfinite(self.diagonal).all())

    def rows(self, index: Any) -> np.ndarray:
        return np.asarray(self.kernel(self.X[index], self.X), dtype=np.float64)

    def move(self, rows, source, target, w, sums):
        V = np.zeros((len(rows), len(sums)))
        V[np.arange(len(rows)), target] = w
        if source is not None:
            V[np.arange(len(rows)), source] = -w
        entering = self.X if len(rows) == self.n else self.X[rows]
        sums += self.kernel.apply(self.X, entering, V).T


def gram_of(kernel: KernelFunction, X: Any, max_mb: float | None) -> Gram:
    """The Gram matrix of the rows of X, kept in their precision if that takes no more memory."""
    single = getattr(X, "dtype", None) == np.float32
    dtype = np.dtype(np.float32 if single else np.float64)
    if max_mb is not None and X.shape[0] ** 2 * dtype.itemsize > max_mb * 2**20:
        return StreamedGram(kernel, X, dtype)
    K = kernel(X, X)
    return Gram(np.require(K.toarray() if issparse(K) else K, dtype, ["C", "A"]))
