"""Coordinates of rows in the components of a kernel, without the kernel between them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from fastml._native.pairwise import Packed
from fastml._runtime.sparse import with_short_indices
from fastml.metrics._apply import KERNELS
from fastml.metrics._kernel_function import KernelFunction, dtype_of_gram
from fastml.metrics._rows import measure_of, rows_of, threads

PACKED = ("polynomial", "rbf", "sigmoid", "laplacian")  # kernels that check nothing about rows


class Projector:
    """Called with rows it returns (k(x, X) - mean k(X, X)) A, A centred and scaled eigenvectors.

    Without a function, rows are those of the kernel.
    """

    def __init__(self, model: Any, function: KernelFunction | None) -> None:
        self.function, self.fitted = function, model.X_fit_
        self.kernel = model.kernel
        values = model.eigenvalues_
        roots = np.sqrt(values, where=values > 0, out=np.full_like(values, np.inf))
        A = model.eigenvectors_ / roots
        A -= A.mean(axis=0)
        self.A = np.ascontiguousarray(A)
        self.shift = model._centerer.K_fit_rows_ @ self.A
        # By the linear kernel, coordinates are products with one vector a component.
        linear = isinstance(self.kernel, str) and self.kernel == "linear"
        self.W = np.asarray(self.fitted.T @ self.A.astype(np.float64)) if linear else None
        self.packed: dict[Any, Packed] = {}

    def __call__(self, X: Any) -> np.ndarray:
        if self.function is None:
            return X @ self.A - self.shift
        if not self.A.shape[1]:
            return np.zeros((X.shape[0], 0), self.A.dtype)
        if self.W is not None:
            dtype = np.result_type(dtype_of_gram(self.kernel, X), self.A.dtype)
            return (np.asarray(X @ self.W) - self.shift).astype(dtype, copy=False)
        numbers = X.dtype.kind in "biuf"
        wanted = np.result_type(dtype_of_gram(self.function.kernel, X), self.A.dtype)
        X = X.astype(wanted, copy=False) if numbers else X
        same_kind = issparse(X) == issparse(self.fitted)
        if isinstance(self.function.kernel, str) and self.function.kernel in PACKED and same_kind:
            return self._by_packed(X)
        fitted = self.fitted.astype(wanted, copy=False) if numbers else self.fitted
        return self.function.apply(X, fitted, self.A) - self.shift

    def _by_packed(self, X: Any) -> np.ndarray:
        """By the rows of the fit laid out once, in each dtype."""
        n, k = self.A.shape
        lanes = 64 // X.dtype.itemsize
        padded = k if k == 1 else -(-k // lanes) * lanes
        packed = self.packed.get(X.dtype)
        if packed is None:
            V = np.zeros((n, padded), X.dtype)
            V[:, :k] = self.A
            fitted = self.fitted.astype(X.dtype, copy=False)
            fitted = with_short_indices(fitted) if issparse(fitted) else fitted
            name = self.function.kernel
            measure = measure_of(name, **(KERNELS[name] | self.function.params))
            ends = np.array([n], dtype=np.intp)
            packed = Packed(rows_of(fitted), measure, V, ends, threads())
            self.packed[X.dtype] = packed
        out = np.empty((X.shape[0], padded))
        packed.apply(rows_of(X), out, threads())
        return (out[:, :k] - self.shift).astype(X.dtype, copy=False)
