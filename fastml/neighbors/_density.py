"""Densities by kernels."""

from __future__ import annotations

from collections.abc import Callable
from math import lgamma, log, nan, pi
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context
from sklearn import neighbors as stock
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from fastml._native.kdtree import KDTree
from fastml._runtime.callbacks import fit_context
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.plain import is_plain, is_plain_for, note_columns
from fastml._runtime.threads import n_threads
from fastml._runtime.versioned import Versioned
from fastml.metrics._functions import function_refusal
from fastml.neighbors._search import Searcher
from fastml.neighbors._spaces import Space, space_of

StockKernelDensity = stock.KernelDensity


class _TreeSums(NamedTuple):
    """Sums of kernels of Euclidean distances, without what is too far to matter."""

    space: Space
    tree: KDTree
    weights: np.ndarray | None

    def logarithms(self, X: np.ndarray, kernel: str, bandwidth: float) -> np.ndarray:
        rows = np.require(self.space.rows(X), np.float64, "CA")
        out = np.empty(X.shape[0])
        self.tree.log_kernel_sums(rows, kernel, bandwidth, self.weights, out, n_threads())
        return out


class _Sums(NamedTuple):
    """Sums of kernels of distances by any other metric."""

    searcher: Searcher
    weights: np.ndarray | None

    def logarithms(self, X: np.ndarray, kernel: str, bandwidth: float) -> np.ndarray:
        in_tree = self.searcher.tree is not None or self.searcher.sphere is not None
        pruned = kernel in COMPACT and in_tree
        return (self._near if pruned else self._everywhere)(X, kernel, bandwidth)

    def _everywhere(self, X: np.ndarray, kernel: str, bandwidth: float) -> np.ndarray:
        """From tables of distances, of as few rows as their making allows."""
        out = np.empty(X.shape[0])
        n = self.searcher.X.shape[0]
        with config_context(working_memory=max(PAIRS, 64 * n) * 8 / 2**20):
            for start, table in self.searcher.tables(X, None):
                if kernel in COMPACT:
                    least, sums = 0.0, self._sums_within(table, kernel, bandwidth)
                else:
                    u = table / bandwidth
                    x = u * u / 2 if kernel == "gaussian" else u
                    least = x.min(axis=1)
                    y = np.exp(least[:, None] - x)
                    sums = y.sum(axis=1) if self.weights is None else y @ self.weights
                with np.errstate(divide="ignore"):
                    out[start : start + len(table)] = np.log(sums) - least
        return out

    def _sums_within(self, table: np.ndarray, kernel: str, bandwidth: float) -> np.ndarray:
        """Of compact kernels, which most distances are beyond."""
        near = np.flatnonzero(table < bandwidth)
        query, rows = np.divmod(near, table.shape[1])
        y = np.broadcast_to(COMPACT[kernel](table.ravel()[near] / bandwidth), near.shape)
        if self.weights is not None:
            y = y * self.weights[rows]
        return np.bincount(query, y, len(table))

    def _near(self, X: np.ndarray, kernel: str, bandwidth: float) -> np.ndarray:
        """From what is within the bandwidth, so many queries at a time as have few neighbours."""
        sums = np.empty(X.shape[0])
        start, rows = 0, max(1, PAIRS // self.searcher.X.shape[0])
        while start < len(X):
            here = X[start : start + rows]
            near = self.searcher.within(here, bandwidth, True, False, None)
            u = near.distances / bandwidth
            y = np.where(u < 1, COMPACT[kernel](u), 0.0)
            if self.weights is not None:
                y *= self.weights[near.rows]
            query = np.repeat(np.arange(len(here)), np.diff(near.offsets))
            sums[start : start + rows] = np.bincount(query, y, len(here))
            start += rows
            rows = min(4 * rows, max(1, PAIRS * len(here) // max(1, len(u))))
        with np.errstate(divide="ignore"):
            return np.log(sums)


# Kernels that are 0 beyond the bandwidth.
COMPACT: dict[str, Callable[[np.ndarray], Any]] = {
    "tophat": lambda u: 1.0,
    "epanechnikov": lambda u: 1 - u * u,
    "linear": lambda u: 1 - u,
    "cosine": lambda u: np.cos(pi / 2 * u),
}
# Distances at a time, and how few of them scikit-learn's tree finds sooner.
PAIRS, FEW = 1 << 20, 20_000
TREES = {"kd_tree": stock.KDTree, "ball_tree": stock.BallTree}
# Metrics of which a tree asks nothing, neither parameters nor a number of columns.
NEEDS_NOTHING = (
    *("euclidean", "l2", "minkowski", "p", "manhattan", "cityblock", "l1"),
    *("chebyshev", "infinity", "canberra", "braycurtis"),
)


def _not_native(self, X):
    if self.metric != "pyfunc" or "bandwidth_" not in vars(self):
        return None
    metric, params = _function_of(self)
    return function_refusal(metric, np.asarray(X, np.float64), self._rows()[0], params)


def _function_of(model: Any) -> tuple[Any, dict[str, Any]]:
    params = dict(model.metric_params)
    return params.pop("func"), params


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
        self._fastml_sums: list[_TreeSums | _Sums] = []
        algorithm = self._choose_algorithm(self.algorithm, self.metric)
        if is_plain(X) and X.dtype == np.float64:
            note_columns(self, X)
        else:
            X = validate_data(self, X, order="C", dtype=np.float64)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
        n, d = X.shape
        by_rule = {"scott": n, "silverman": n * (d + 2) / 4}
        if isinstance(self.bandwidth, str):
            self.bandwidth_ = by_rule[self.bandwidth] ** (-1 / (d + 4))
        else:
            self.bandwidth_ = self.bandwidth
        self._fastml_fitted = X, sample_weight, algorithm
        vars(self).pop("tree_", None)
        if self.metric_params or self.metric not in NEEDS_NOTHING:
            self._tree()  # it knows what the metric asks for
        return self

    @property
    def tree_(self) -> Any:
        """scikit-learn's tree of the rows, made when somebody asks for it."""
        if "_fastml_fitted" not in vars(self) and "tree_" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'tree_'")
        return self._tree()

    def _tree(self) -> Any:
        if "tree_" not in vars(self):
            X, sample_weight, algorithm = self._fastml_fitted
            options = {"leaf_size": self.leaf_size, "sample_weight": sample_weight}
            options |= self.metric_params or {}
            vars(self)["tree_"] = TREES[algorithm](X, metric=self.metric, **options)
        return vars(self)["tree_"]

    def _rows(self) -> tuple[np.ndarray, np.ndarray | None]:
        """The rows and their weights; of a model that was scikit-learn's its tree has them."""
        if "_fastml_fitted" in vars(self):
            return self._fastml_fitted[:2]
        weights = self.tree_.sample_weight
        return np.asarray(self.tree_.data), None if weights is None else np.asarray(weights)

    @documented_by(StockKernelDensity.score_samples)
    @accelerated(unless=_not_native)
    def score_samples(self, X):
        """The logarithm of the density at each row of `X`."""
        check_is_fitted(self)
        sums = self._sums()
        if isinstance(sums, _Sums) and np.shape(X)[0] * len(sums.searcher.X) < FEW:
            return super().score_samples(X)
        if not (is_plain_for(self, X) and X.dtype == np.float64):
            X = validate_data(self, X, order="C", dtype=np.float64, reset=False)
        density = sums.logarithms(X, self.kernel, self.bandwidth_)
        data, weights = self._rows()
        total = len(data) if weights is None else weights.sum()
        density += log_norm(self.kernel, X.shape[1]) - X.shape[1] * log(self.bandwidth_)
        density -= np.log(total)
        return density

    def _sums(self) -> _TreeSums | _Sums:
        box = vars(self).setdefault("_fastml_sums", [])
        if not box:
            params = self.metric_params or {}
            space = space_of(self.metric, params)
            data, weights = self._rows()
            if weights is not None:
                data, weights = data[weights > 0], weights[weights > 0]
            if space is not None and space.metric == "euclidean":
                rows = np.require(space.rows(data), np.float64, "CA")
                box.append(_TreeSums(space, KDTree(rows, n_threads=n_threads()), weights))
            else:
                metric = self.metric
                if metric == "pyfunc":
                    metric, params = _function_of(self)
                box.append(_Sums(Searcher(data, metric, params, "auto", 5), weights))
        return box[0]

    def __getstate__(self):
        return {key: v for key, v in super().__getstate__().items() if key != "_fastml_sums"}

    def __to_sklearn_state__(self, state: dict[str, Any]) -> dict[str, Any]:
        return state | {"tree_": self.tree_} if "bandwidth_" in state else state


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
    return -log(total) - sphere if total > 0 else nan  # for some even d, as in scikit-learn
