"""Features of the additive chi-squared kernel."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy.sparse import hstack
from sklearn import get_config
from sklearn import kernel_approximation as stock

from fastml._native import sketch as native
from fastml._runtime.dispatch import Unsupported, accelerated, concede
from fastml._runtime.docs import documented_by
from fastml._runtime.threads import n_threads
from fastml._runtime.versioned import Versioned

StockAdditiveChi2Sampler = stock.AdditiveChi2Sampler


@documented_by(StockAdditiveChi2Sampler)
class AdditiveChi2Sampler(Versioned, StockAdditiveChi2Sampler):
    """Features of the additive chi-squared kernel, compiled.

    Roots, logarithms, cosines and sines are taken in one pass, on all threads.

    Examples
    --------
    >>> from fastml.kernel_approximation import AdditiveChi2Sampler
    >>> Z = AdditiveChi2Sampler(sample_steps=3).fit_transform([[0.0, 1.0], [2.0, 1.0]])
    >>> (Z @ Z.T).round(1)  # the sums of 2 x y / (x + y) are 1, 1, 1 and 3
    array([[1. , 1. ],
           [1. , 2.9]])
    """

    @documented_by(StockAdditiveChi2Sampler.transform)
    @accelerated
    def transform(self, X):
        """Apply the feature map to `X`."""
        return super().transform(X)

    def _transform_dense(self, X, sample_steps, sample_interval):
        if X.dtype not in (np.float32, np.float64):
            reason = Unsupported("X", "other numbers are not compiled", "pass float32 or float64")
            concede(self, "transform", reason)
            return super()._transform_dense(X, sample_steps, sample_interval)
        out = np.empty((len(X), X.shape[1] * (2 * sample_steps - 1)), X.dtype)
        _features(np.ascontiguousarray(X), sample_steps, sample_interval, out)
        return out

    def _transform_sparse(self, X, sample_steps, sample_interval):
        kind = _kind(type(X), get_config().get("sparse_interface"))
        if X.dtype not in (np.float32, np.float64) or not X.nnz:
            return super()._transform_sparse(X, sample_steps, sample_interval)
        out = np.empty((2 * sample_steps - 1, X.nnz), X.dtype)
        _features(X.data[None], sample_steps, sample_interval, out.reshape(1, -1))
        parts = (X.indices, X.indptr)
        return hstack([kind((data, *parts), shape=X.shape) for data in out], format="csr")


@cache
def _kind(of: Any, interface: str | None) -> Any:
    """Of what scikit-learn makes of such a matrix: it depends on its version as well."""
    return type(StockAdditiveChi2Sampler._transform_sparse(of((1, 1)), 1, 1.0))


def _features(X: np.ndarray, steps: int, interval: float, out: np.ndarray) -> None:
    j = np.arange(steps)
    factors: Any = np.sqrt(np.where(j, 2 * interval / np.cosh(np.pi * j * interval), interval))
    native.chi2_features(X, factors.astype(X.dtype), interval, out, n_threads())
