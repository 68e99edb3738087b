"""A kernel by way of some of the rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.linalg import svd
from sklearn import get_config
from sklearn import kernel_approximation as stock
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fastml._runtime.callbacks import fit_context
from fastml._runtime.dispatch import Unsupported, accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.eigen import eigenpairs
from fastml._runtime.objects import rows_for
from fastml._runtime.versioned import Versioned
from fastml.metrics._kernel_function import is_precomputed
from fastml.metrics.pairwise import pairwise_kernels

StockNystroem = stock.Nystroem


def _not_native(self: Any, X: Any, y: Any = None) -> Unsupported | None:
    if get_config()["array_api_dispatch"] and not isinstance(X, np.ndarray):
        return Unsupported("X", "only NumPy arrays are compiled for", "pass a NumPy array")
    return None


@documented_by(StockNystroem)
class Nystroem(Versioned, StockNystroem):
    """A low-rank map of any kernel from a sample of the rows, compiled.

    The same `random_state` takes the rows that scikit-learn takes; `transform` makes the kernel
    between them and new rows in one pass, on all threads.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.kernel_approximation import Nystroem
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> Z = Nystroem(gamma=0.1, n_components=60, random_state=0).fit_transform(X)
    >>> Z.shape
    (100, 60)
    """

    @documented_by(StockNystroem.fit)
    @accelerated(unless=_not_native)
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Draw rows, and take the root of the inverse of the kernel between them."""
        X = validate_data(self, X, **rows_for(self.kernel))
        n, rng = X.shape[0], check_random_state(self.random_state)
        if self.n_components > n:
            warnings.warn(
                "n_components > n_samples. This is not possible.\n"
                "n_components was set to n_samples, which results"
                " in inefficient evaluation of the full kernel.",
                stacklevel=2,
            )
        self.component_indices_ = rng.permutation(n)[: self.n_components]
        self.components_ = X[self.component_indices_]
        K = self._kernel(self.components_)
        self.normalization_ = _inverse_root(K, symmetric=not is_precomputed(self.kernel))
        self._n_features_out = len(K)
        return self

    def _kernel(self, X: Any, Y: Any = None) -> np.ndarray:
        params = self._get_kernel_params()
        K = pairwise_kernels(
            X, Y, metric=self.kernel, filter_params=True, n_jobs=self.n_jobs, **params
        )
        return K if K.dtype in (np.float32, np.float64) else K.astype(np.float64)

    @documented_by(StockNystroem.transform)
    @accelerated(unless=_not_native)
    def transform(self, X):
        """Apply the feature map to `X`."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, **rows_for(self.kernel))
        return self._kernel(X, self.components_) @ self.normalization_.T


def _inverse_root(K: np.ndarray, *, symmetric: bool) -> np.ndarray:
    """U max(S, 1e-12)^(-1/2) V for K = U S V, which eigenvectors tell sooner if K is symmetric."""
    if symmetric:
        values, Ut = eigenpairs(K)
        S, U, V = abs(values), Ut.T, np.where(values[:, None] < 0, -Ut, Ut)
    else:
        U, S, V = svd(K)
    return U / np.sqrt(np.maximum(S, 1e-12)) @ V
