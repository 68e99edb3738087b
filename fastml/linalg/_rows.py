"""A matrix as an operator on blocks of vectors."""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import issparse

from fastml._native import power
from fastml._runtime.sparse import with_short_indices
from fastml._runtime.threads import n_threads

_CACHE = 8 << 20  # bytes, of the vectors that a part gathers from


class Rows:
    """X (n, d), dense or sparse, less its mean row where one is given, which is never formed.

    Parameters
    ----------
    X : ndarray, CSR or CSC matrix of float32 or float64
        Kept as it is; a memory map is read where it lies. Of a sparse matrix a copy in the other
        orientation is made when products with it are first wanted.

    mean : array-like of shape (d,), default=None
        The mean of the rows, which is subtracted from each, in the dtype of X.
    """

    def __init__(self, X: Any, mean: Any = None) -> None:
        if not issparse(X):
            X = np.require(X, requirements="A")
        self.X = X
        self.mean = None if mean is None else np.ascontiguousarray(mean, dtype=X.dtype)
        self.shape: tuple[int, int] = X.shape
        self.dtype = X.dtype
        self.sparse = issparse(X)
        self._columns: list[tuple[slice, Any]] | None = None

    def times(self, V: np.ndarray) -> np.ndarray:
        """(X - 1 mean') V, (n, k)."""
        out = np.empty((self.shape[0], V.shape[1]), self.dtype)
        less = None if self.mean is None else self._block(self.mean @ V)
        if not out.size or not self.shape[1]:
            out[:] = 0
        elif self.sparse:
            data, indices, indptr = _csr(self._by_rows)
            if 0 < len(indices) < self.shape[1] // 4:
                # Little of V is wanted: less than laying it out for the kernel would take.
                used, indices = np.unique(indices, return_inverse=True)
                V, indices = V[used], indices.astype(np.int32)
            V = self._block(V)
            power.sparse_times(data, indices, indptr, V, less, False, out, n_threads())
        else:
            power.times(self.X, self.mean, self._block(V), out, n_threads())
        return out

    def transposed(self, U: np.ndarray) -> np.ndarray:
        """(X - 1 mean')' U, (d, k)."""
        U = self._block(U)
        out = np.empty((self.shape[1], U.shape[1]), self.dtype)
        if not out.size or not self.shape[0]:
            out[:] = 0
        elif self.sparse:
            add = False
            for rows, X in self._by_columns(U.shape[1]):
                power.sparse_times(*_csr(X), U[rows], None, add, out, n_threads())
                add = True
            if self.mean is not None:
                out -= np.outer(self.mean, U.sum(axis=0, dtype=np.float64)).astype(self.dtype)
        else:
            power.transposed(self.X, self.mean, U, out, n_threads())
        return out

    def gram(self, V: np.ndarray) -> np.ndarray:
        """(X - 1 mean')' (X - 1 mean') V, (d, k), in one pass over a dense X.

        Or over a sparse one if k is 1, but in single precision only where there is no mean.
        """
        V = self._block(V)
        single = V.shape[1] == 1 and (self.mean is None or self.dtype == np.float64)
        if (self.sparse and not single) or not self.X.shape[0] or not V.size:
            return self.transposed(self.times(V))
        out = np.empty(V.shape, self.dtype)
        if self.sparse:
            # What X' is multiplied with adds up to zero, but for rounding: there is no mean to take
            # from the product as well.
            less = 0.0 if self.mean is None else float(self.mean @ V[:, 0])
            power.sparse_gram(*_csr(self._by_rows), V[:, 0], less, out[:, 0], n_threads())
        else:
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

    def _by_columns(self, k: int) -> list[tuple[slice, Any]]:
        """X' for gathering, which needs no sums of a thread's own as scattering does.

        Cut by rows of X, so that the k columns that a part gathers from stay in cache, where each
        column of X has enough values in each part to pay for its sums being read again.
        """
        if self._columns is None:
            if self.X.format == "csc":
                self._columns = [(slice(None), with_short_indices(self.X.T))]
                return self._columns
            X, (n, d) = self._by_rows, self.shape
            size = n * k * self.dtype.itemsize
            bounds = np.linspace(0, n, max(1, min(size // _CACHE, X.nnz // (100 * d))) + 1)
            parts = [slice(a, b) for a, b in itertools.pairwise(bounds.astype(int))]
            self._columns = [(rows, X[rows].T.tocsr()) for rows in parts]
        return self._columns


def _csr(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return X.data, X.indices, X.indptr
