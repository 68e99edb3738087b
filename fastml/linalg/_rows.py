"""A matrix as an operator on blocks of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Rows"]


class Rows:
    """X (n, d), dense or CSR, less its mean row where one is given, which is never formed.

    Parameters
    ----------
    X : ndarray or CSR matrix of float32 or float64
        Kept as it is; a memory map is read where it lies.

    mean : array-like of shape (d,), default=None
        Subtracted from every row.
    """

    def __init__(self, X: Any, mean: Any = None) -> None:
        self.X = X
        self.mean = None if mean is None else np.asarray(mean, dtype=np.float64)
        self.shape: tuple[int, int] = X.shape
        self.dtype = X.dtype

    def times(self, V: np.ndarray) -> np.ndarray:
        """(X - 1 mean') V, (n, k)."""
        Y = self.X @ V
        if self.mean is not None:
            Y -= (self.mean @ V).astype(Y.dtype)
        return Y

    def transposed(self, U: np.ndarray) -> np.ndarray:
        """(X - 1 mean')' U, (d, k)."""
        Z = self.X.T @ U
        if self.mean is not None:
            Z -= np.outer(self.mean, U.sum(axis=0, dtype=np.float64)).astype(Z.dtype)
        return Z

    def gram(self, V: np.ndarray) -> np.ndarray:
        """(X - 1 mean')' (X - 1 mean') V, (d, k), in one pass over X."""
        return self.transposed(self.times(V))
