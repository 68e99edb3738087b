"""Densities by kernels."""

from __future__ import annotations

from math import lgamma, log, pi
from typing import Any, NamedTuple

import numpy as np
from sklearn import neighbors as stock
from sklearn.utils.validation import check_is_fitted, validate_data

from fastml._native.kdtree import KDTree
from fastml._runtime.callbacks import fit_context
from fastml._runtime.dispatch import Unsupported, accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.threads import n_threads
from fastml._runtime.versioned import Versioned
from fastml.neighbors._spaces import Space, space_of

StockKernelDensity = stock.KernelDensity


class _Sums(NamedTuple):
    """What the sums of kernels are taken over."""

    space: Space
    tree: KDTree
    weights: np.ndarray | None


def _space(model: Any) -> Space | None:
    space = space_of(model.metric, model.metric_params or {})
    return space if space is not None and space.metric == "euclidean" else None


def _not_native(self, X):
    if _space(self) is None:
        return Unsupported(
            "metric", "densities are compiled for Euclidean distances", "use metric='euclidean'"
        )
    return None


@documented_by(StockKernelDensity)
class KernelDensity(Versioned, StockKernelDensity):
    """Kernel Density Estimation, compiled.

    Densities are exact to rounding, whatever the tolerances `atol` and `rtol` allow.

    Examples
    --------
    >>> from fastml.neighbors import KernelDensity
    >>> model = KernelDensity(kernel="tophat", bandwidth=1.0).fit([[0.0], [0.5], [3.0]])
    >>> model.score_samples([[0.25], [3.0], [9.0]]).round(3)
    array([-1.099, -1.792,   -inf])
    """

    @documented_by(StockKernelDensity.fit)
    @accelerated
    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, sample_weight=None):
        """Take the rows of `X` as those around which there is density."""
        # A box, since scoring may not change what the model holds.
        self._fastml_sums: list[_Sums] = []
        return super().fit(X, y, sample_weight)

    @documented_by(StockKernelDensity.score_samples)
    @accelerated(unless=_not_native)
    def score_samples(self, X):
        """The logarithm of the density at each row of `X`."""
        check_is_fitted(self)
        X = validate_data(self, X, order="C", dtype=np.float64, reset=False)
        sums = self._sums()
        density = np.empty(X.shape[0])
        rows = np.require(sums.space.rows(X), np.float64, "CA")
        sums.tree.log_kernel_sums(
            rows, self.kernel, self.bandwidth_, sums.weights, density, n_threads()
        )
        weights = self.tree_.sample_weight
        total = self.tree_.data.shape[0] if weights is None else self.tree_.sum_weight
        density += log_norm(self.kernel, X.shape[1]) - X.shape[1] * log(self.bandwidth_)
        density -= np.log(total)
        return density

    def _sums(self) -> _Sums:
        box = vars(self).setdefault("_fastml_sums", [])
        if not box:
            space = _space(self)
            assert space is not None
            data, weights = np.asarray(self.tree_.data), self.tree_.sample_weight
            if weights is not None:
                weights = np.asarray(weights)
                data, weights = data[weights > 0], weights[weights > 0]
            rows = np.require(space.rows(data), np.float64, "CA")
            box.append(_Sums(space, KDTree(rows, n_threads=n_threads()), weights))
        return box[0]

    def __getstate__(self):
        return {key: v for key, v in super().__getstate__().items() if key != "_fastml_sums"}


def log_norm(kernel: str, d: int) -> float:
    """The logarithm of what a kernel of width 1, which is 1 at its centre, is divided by."""
    ball = d / 2 * log(pi) - lgamma(d / 2 + 1)
    sphere = log(d) + ball  # the surface is the derivative of the volume
    if kernel == "gaussian":
        return -d / 2 * log(2 * pi)
    if kernel == "tophat":
        return -ball
    if kernel == "epanechnikov":
        return -ball - log(2 / (d + 2))
    if kernel == "exponential":
        return -sphere - lgamma(d)
    if kernel == "linear":
        return -ball + log(d + 1)
    # The integral of cos(pi r / 2) r^(d - 1), by parts.
    total, term = 0.0, 2 / pi
    for k in range(1, d + 1, 2):
        total += term
        term *= -(d - k) * (d - k - 1) * (2 / pi) ** 2
    return -log(total) - sphere
