"""Gram matrices without the means of their rows and columns, which is left to products."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastml._native.symmetric import centre, centred_times, symmetric_times
from fastml._runtime.threads import n_threads
from fastml.decomposition._lanczos import in_strands, of_strands, width_of


class CentredGram:
    """J K J of a symmetric K, J = 1 - 11'/n: `means` are of K's columns, `_product` is with K."""

    means: np.ndarray

    def times(self, V: np.ndarray) -> np.ndarray:
        """J K J V."""
        V = V - V.mean(axis=0)
        W = self._product(V)
        # K J V less its means, one part of which rounding leaves if it is not known beforehand.
        # Not by BLAS, whose threads would wait busily for a while where ours are to multiply next.
        W -= np.einsum("i,ij->j", self.means, V)
        W -= W.mean(axis=0)
        return W

    def times_one(self, v: np.ndarray) -> np.ndarray:
        """J K J v for one vector."""
        v = v.ravel()
        v = v.astype(self.dtype, copy=False) - v.mean(dtype=self.dtype)
        w = self._product(v[:, None])[:, 0]
        return w - w.mean()


class KeptGram(CentredGram):
    """Of a matrix in C order, that stays as it is."""

    def __init__(self, K: np.ndarray, symmetric: bool = False) -> None:
        """symmetric: whether K is so to the last digits, which a given one need not be."""
        self.K, self.dtype, self.shape, self.symmetric = K, K.dtype, K.shape, symmetric
        if symmetric:  # half of K tells all sums, on all threads
            V = np.zeros((len(K), width_of(K.dtype)), K.dtype)
            V[:, 0] = 1
            sums = np.empty_like(V)
            symmetric_times(K, V, sums, n_threads())
            self.means = sums[:, 0] / K.dtype.type(len(K))
        else:
            self.means = K.sum(axis=0) / len(K)

    def _product(self, V: np.ndarray) -> np.ndarray:
        return self.K @ V

    def times(self, V: np.ndarray) -> np.ndarray:
        """J K J V, for V in whole strands: half of K is read for each."""
        strands = in_strands(V)
        out = np.empty_like(strands)
        for strand, product in zip(strands, out, strict=True):
            centred_times(self.K, self.means, strand, product, n_threads())
        return of_strands(out)

    def centre(self) -> np.ndarray:
        """J K J in the memory of K, by the operations of scikit-learn's KernelCenterer."""
        K = self.K
        rows = self.means if self.symmetric else K.sum(axis=1) / len(K)
        every = self.means.sum() / len(K)
        if K.flags.carray:
            centre(K, self.means, rows, every, n_threads())
        else:
            K -= self.means
            K -= rows[:, None]
            K += every
        self.means = np.zeros_like(self.means)
        return K


class StreamedGram(CentredGram):
    """Of a kernel function between rows, whose matrix is never formed."""

    def __init__(self, function: Any, X: Any, dtype: np.dtype) -> None:
        n = X.shape[0]
        self.function, self.X, self.dtype, self.shape = function, X, dtype, (n, n)
        self.means = self._product(np.ones((n, 1), dtype))[:, 0] / dtype.type(n)

    def _product(self, V: np.ndarray) -> np.ndarray:
        product = self.function.apply(self.X, self.X, np.ascontiguousarray(V))
        return product.astype(self.dtype, copy=False)


class FactoredGram(CentredGram):
    """Of the linear kernel, X X'."""

    def __init__(self, X: Any) -> None:
        n = X.shape[0]
        self.X, self.dtype, self.shape = X, X.dtype, (n, n)
        self.means = np.asarray(X @ np.asarray(X.sum(axis=0)).ravel()) / self.dtype.type(n)

    def _product(self, V: np.ndarray) -> np.ndarray:
        return np.asarray(self.X @ (self.X.T @ V))
