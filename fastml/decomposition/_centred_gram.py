"""Gram matrices without the means of their rows and columns, which is left to products."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastml._native.symmetric import symmetric_times
from fastml._runtime.threads import n_threads


class KeptGram:
    """Of a symmetric matrix K in C order, that stays as it is: J K J, J = 1 - 11'/n."""

    K: Any = None

    def __init__(self, K: np.ndarray, symmetric: bool = False) -> None:
        """symmetric: whether K is so to the last digits, which a given one need not be."""
        self.K, self.dtype, self.shape = K, K.dtype, K.shape
        if symmetric:  # half of K tells all sums, on all threads
            self.means = self._product(np.ones((len(K), 1), K.dtype))[:, 0] / K.dtype.type(len(K))
        else:
            self.means = K.sum(axis=0) / len(K)

    def _product(self, V: np.ndarray) -> np.ndarray:
        n, width = len(V), 64 // self.dtype.itemsize
        if V.shape[1] == width and V.flags.c_contiguous:
            result = np.empty_like(V)
            symmetric_times(self.K, V, result, n_threads())
            return result
        out = np.empty((n, V.shape[1]), self.dtype)
        part, result = np.zeros((n, width), self.dtype), np.empty((n, width), self.dtype)
        for j in range(0, V.shape[1], width):
            here = V[:, j : j + width].shape[1]
            part[:, :here] = V[:, j : j + width]
            symmetric_times(self.K, part, result, n_threads())
            out[:, j : j + here] = result[:, :here]
        return out

    def times(self, V: np.ndarray) -> np.ndarray:
        """J K J V."""
        V = V - V.mean(axis=0)
        W = self._product(V)
        # K J V less its means, one part of which rounding leaves if it is not known beforehand.
        # Not by BLAS, whose threads would wait busily for a while where ours are to multiply next.
        W -= np.einsum("i,ij->j", self.means, V)
        W -= W.mean(axis=0)
        return W

    transposed = times

    def times_one(self, v: np.ndarray) -> np.ndarray:
        """J K J v for one vector."""
        v = v.ravel()
        v = v.astype(self.dtype, copy=False) - v.mean(dtype=self.dtype)
        w = self._product(v[:, None])[:, 0] if self.K is None else self.K @ v
        return w - w.mean()

    def centre(self) -> np.ndarray:
        """J K J in the memory of K, by the operations of scikit-learn's KernelCenterer."""
        K, rows = self.K, max(1, (1 << 16) // len(self.K))
        every = self.means.sum() / len(K)
        for i in range(0, len(K), rows):
            block = K[i : i + rows]
            means = block.sum(axis=1, keepdims=True) / len(K)
            block -= self.means
            block -= means
            block += every
        self.means = np.zeros_like(self.means)
        return K


class StreamedGram(KeptGram):
    """Of a kernel function between rows, whose matrix is never formed."""

    def __init__(self, function: Any, X: Any, dtype: np.dtype) -> None:
        n = X.shape[0]
        self.function, self.X, self.dtype, self.shape = function, X, dtype, (n, n)
        self.means = self._product(np.ones((n, 1), dtype))[:, 0] / dtype.type(n)

    def _product(self, V: np.ndarray) -> np.ndarray:
        product = self.function.apply(self.X, self.X, np.ascontiguousarray(V))
        return product.astype(self.dtype, copy=False)


class FactoredGram(KeptGram):
    """Of the linear kernel, X X'."""

    def __init__(self, X: Any) -> None:
        n = X.shape[0]
        self.X, self.dtype, self.shape = X, X.dtype, (n, n)
        self.means = np.asarray(X @ np.asarray(X.sum(axis=0)).ravel()) / self.dtype.type(n)

    def _product(self, V: np.ndarray) -> np.ndarray:
        return np.asarray(self.X @ (self.X.T @ V))
