"""A kernel by way of some of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import get_config
from sklearn import kernel_approximation as stock
from sklearn.utils.validation import check_is_fitted, validate_data

from fastml._runtime.dispatch import Unsupported, accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.versioned import Versioned
from fastml.metrics.pairwise import pairwise_kernels

StockNystroem = stock.Nystroem


def _not_native(self: Any, X: Any) -> Unsupported | None:
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

    @documented_by(StockNystroem.transform)
    @accelerated(unless=_not_native)
    def transform(self, X):
        """Apply the feature map to `X`."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        embedded = pairwise_kernels(
            X,
            self.components_,
            metric=self.kernel,
            filter_params=True,
            n_jobs=self.n_jobs,
            **self._get_kernel_params(),
        )
        return embedded @ self.normalization_.T
