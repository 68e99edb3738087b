"""A matrix as an operator on blocks of vectors."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import issparse

from fastml._native import power
from fastml._runtime.sparse import with_short_indices
from fastml._runtime.threads import n_threads


class Rows:
    """X (n, d), dense or sparse, less its mean row where one is given, which is never formed.

    Parameters
    ----------
    X : ndarray, CSR or CSC matrix of float32 or float64
        Kept as it is; a memory map is read where it lies. Of a sparse matrix a copy in the other
        orientation is made when products with it are first wanted.

    mean : array-like of shape (d,), default=None
        Subtracted from every row, in the dtype of X.
    """

    def __init__(self, X: Any, mean: Any = None) -> None:
        if not issparse(X):
            X = np.require(X, requirements="A")
        self.X = X
        self.mean = None if mean is None else np.ascontiguousarray(mean, dtype=X.dtype)
        self.shape: tuple[int, int] = X.shape
        self.dtype = X.dtype
        self.sparse = issparse(X)

    def times(self, V: np.ndarray) -> np.ndarray:
        """(X - 1 mean') V, (n, k)."""
        V = self._block(V)
        if self.sparse:
            return _product(self._by_rows, V, None if self.mean is None else self.mean @ V)
        out = np.empty((self.shape[0], V.shape[1]), self.dtype)
        if out.size:
            power.times(self.X, self.mean, V, out, n_threads())
        return out

    def transposed(self, U: np.ndarray) -> np.ndarray:
        """(X - 1 mean')' U, (d, k)."""
        U = self._block(U)
        if self.sparse:
            out = _product(self._by_columns, U, None)
            if self.mean is not None:
                out -= np.outer(self.mean, U.sum(axis=0, dtype=np.float64)).astype(self.dtype)
            return out
        out = np.empty((self.shape[1], U.shape[1]), self.dtype)
        if out.size:
            power.transposed(self.X, self.mean, U, out, n_threads())
        return out

    def gram(self, V: np.ndarray) -> np.ndarray:
        """(X - 1 mean')' (X - 1 mean') V, (d, k), in one pass over a dense X."""
        V = self._block(V)
        if self.sparse and V.shape[1] == 1 and self.mean is None:
            out = np.empty(self.shape[1], self.dtype)
            X = self._by_rows
            power.sparse_gram(X.data, X.indices, X.indptr, V[:, 0], 0.0, out, n_threads())
            return out[:, None]
        if self.sparse:
            return self.transposed(self.times(V))
        out = np.empty(V.shape, self.dtype)
        if out.size:
            power.gram(self.X, self.mean, V, out, n_threads())
        return out

    def outer_gram(self, U: np.ndarray) -> np.ndarray:
        """(X - 1 mean') (X - 1 mean')' U, (n, k), in two passes over X."""
        return self.times(self.transposed(U))

    def _block(self, V: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(V, dtype=self.dtype)

    @cached_property
    def _by_rows(self) -> Any:
        return with_short_indices(self.X.tocsr())

    @cached_property
    def _by_columns(self) -> Any:
        # Gathering needs no sums of one thread's own, which scattering does.
        X = self.X if self.X.format == "csc" else with_short_indices(self.X)
        return with_short_indices(X.T.tocsr())


def _product(X: Any, V: np.ndarray, less: np.ndarray | None) -> np.ndarray:
    """X V - 1 less' for CSR."""
    indices = X.indices
    if len(indices) < V.shape[0] // 2:
        # To lay all of V out for the kernel would take longer than the product.
        used, indices = np.unique(indices, return_inverse=True)
        V, indices = V[used], indices.astype(np.int32)
        if not len(used):
            V = np.zeros((1, V.shape[1]), V.dtype)
    out = np.empty((X.shape[0], V.shape[1]), V.dtype)
    if out.size:
        power.sparse_times(X.data, indices, X.indptr, V, less, out, n_threads())
    return out
