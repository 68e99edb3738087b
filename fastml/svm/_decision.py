"""Decision functions of fitted machines: support vectors laid out once, then met by any rows."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from fastml._native import decision as native
from fastml._native.pairwise import Packed
from fastml._runtime.beside import beside
from fastml._runtime.threads import n_threads
from fastml.metrics._rows import rows_of
from fastml.svm._kernels import BLOCK, Named, as_array, by_rows, named

WEIGHTS = 1 << 22  # of hyperplanes, which may be more than the support vectors that they sum up


def decider(model: Any) -> Decider:
    """That of a fitted model, as it is now."""
    parts = (
        model.support_,
        model.support_vectors_,
        model._n_support,
        model._dual_coef_,
        model._intercept_,
        model.kernel,
    )
    stamp = (model._gamma, model.coef0, model.degree, model._sparse)
    return beside(model, parts, lambda: Decider(model), stamp)


class Decider:
    """Called with rows it returns the decision of each pair of classes, (n, pairs)."""

    def __init__(self, model: Any) -> None:
        self.sparse = model._sparse
        self.by_name = isinstance(model.kernel, str) and model.kernel != "precomputed"
        self.classes = k = len(model.classes_) if hasattr(model, "classes_") else 2
        self.support, self.vectors = model.support_, model.support_vectors_
        self.intercept = np.asarray(model._intercept_, dtype=np.float64)
        coef = model._dual_coef_.toarray() if issparse(model._dual_coef_) else model._dual_coef_
        self.coef = np.asarray(coef, dtype=np.float64)
        ends = np.cumsum(model._n_support) if k > 2 else [len(self.support)]
        self.ends = np.asarray(ends, dtype=np.intp)
        if not self._is_sound(model):
            raise ValueError(f"The internal representation of {type(model).__name__} was altered")
        self.coef = self.coef.reshape(k - 1, len(self.support))
        self.reduced = by_rows(model.kernel)
        self.kernel: Named | None = named(model) if self.by_name else None
        few = self.vectors.shape[-1] * len(self.intercept) <= WEIGHTS + self.vectors.size
        self.linear = self._weights() if few and self.by_name and model.kernel == "linear" else None
        self.packed: dict[Any, Packed] = {}

    def _is_sound(self, model: Any) -> bool:
        """What kernels would read without looking: a model may come out of a file."""
        count, k, n = len(self.support), self.classes, model.shape_fit_[0]
        sound = (
            self.coef.size == (k - 1) * count
            and self.intercept.shape == (k * (k - 1) // 2,)
            and min(model._n_support, default=0) >= 0
            and self.ends[-1] == count
            and (not hasattr(model, "classes_") or sum(model._n_support) == count)
            and (not count or 0 <= self.support.min() <= self.support.max() < n)
        )
        if not (sound and self.by_name):
            return bool(sound)
        if issparse(self.vectors):
            self.vectors.check_format(full_check=True)
        return self.vectors.shape == (count, model.n_features_in_)

    def _segments(self) -> list[slice]:
        return [slice(a, b) for a, b in zip([0, *self.ends[:-1]], self.ends, strict=True)]

    def _weights(self) -> np.ndarray:
        """Of the linear kernel's hyperplanes, (n_features, pairs)."""
        if self.classes == 2:
            W = self.coef @ self.vectors
        else:
            s = self._segments()
            W = np.stack(
                [
                    self.coef[j - 1, s[i]] @ self.vectors[s[i]]
                    + self.coef[i, s[j]] @ self.vectors[s[j]]
                    for i, j in combinations(range(self.classes), 2)
                ]
            )
        return np.ascontiguousarray(np.asarray(W).T)

    def __call__(self, X: Any) -> np.ndarray:
        if self.linear is not None:
            return np.asarray(X @ self.linear) + self.intercept
        if not self.by_name:
            return self._combined(self._of_gram(X))
        if not len(self.support):
            return np.tile(self.intercept, (X.shape[0], 1))
        packed = self.packed.get(X.dtype)
        if packed is None:
            packed = self.packed[X.dtype] = self._pack(X.dtype)
        columns = len(self.ends) * self.columns(X.dtype)
        out = np.empty((X.shape[0], columns))
        packed.apply(rows_of(X), out, n_threads())
        return self._combined(out.reshape(len(out), len(self.ends), -1))

    def columns(self, dtype: Any) -> int:
        """Of coefficients: padded, so that they fill vectors."""
        r, lanes = self.classes - 1, 64 // dtype.itemsize
        return r if r == 1 else (r + lanes - 1) // lanes * lanes

    def _pack(self, dtype: Any) -> Packed:
        assert self.kernel is not None
        vectors = self.vectors.astype(dtype, copy=False)
        V = np.zeros((len(self.support), self.columns(dtype)), dtype)
        V[:, : self.classes - 1] = self.coef.T
        return Packed(rows_of(vectors), self.kernel.measure(), V, self.ends, n_threads())

    def _of_gram(self, K: np.ndarray) -> np.ndarray:
        """The sums of each class; K is of all rows of the fit, or reduced to the support."""
        if not self.reduced:
            K = K[:, self.support]
        sums = [K[:, s] @ self.coef[:, s].T for s in self._segments()]
        return np.stack(sums, axis=1)

    def _combined(self, sums: np.ndarray) -> np.ndarray:
        if self.classes == 2:
            sums = sums[:, 0, :1]
            sums += self.intercept
            return sums
        out = np.empty((len(sums), len(self.intercept)))
        native.assemble(np.ascontiguousarray(sums), self.intercept, out)
        return out


def kernel_values(model: Any, X: Any, fitted: Any) -> np.ndarray:
    """Of a kernel that is called, between rows and those of the fit, or its support alone."""
    if not by_rows(model.kernel):
        return model._compute_kernel(X)
    support = _safe_indexing(fitted, model.support_)
    n, step = _num_samples(X), max(1, BLOCK // max(1, len(model.support_)))
    if n <= step:
        return as_array(model.kernel(X, support))
    parts = (_safe_indexing(X, slice(i, i + step)) for i in range(0, n, step))
    return np.concatenate([as_array(model.kernel(part, support)) for part in parts])
