"""Scaling by quantiles."""

from numbers import Integral
from typing import Any

import numpy as np
from scipy import stats
from scipy.sparse import issparse
from sklearn import preprocessing as stock
from sklearn.preprocessing._data import _handle_zeros_in_scale
from sklearn.utils import assert_all_finite
from sklearn.utils._param_validation import Options

from fastml._native import scaling as native
from fastml._runtime.callbacks import fit_context
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.parameters import validate_params
from fastml._runtime.threads import n_threads
from fastml._runtime.versioned import Versioned
from fastml.preprocessing._matrix import (
    Columns,
    Stored,
    function_unless,
    is_sparse,
    map_columns,
    method_unless,
    readable,
    refuse_infinity,
    scale_stored,
    scaled_by,
    to_fit,
    to_invert,
    to_transform,
    without_duplicates,
)

StockRobustScaler, stock_robust_scale = stock.RobustScaler, stock.robust_scale


class Order:
    """Chosen quantiles of the columns of `X`, NaN left out, by selection."""

    def __init__(self, X: Any, q: list[float]) -> None:
        self._q = np.unique(np.asarray(q, dtype=np.float64))
        around = (2, len(self._q), X.shape[1])
        self._count = np.empty(X.shape[1], dtype=np.intp)
        if issparse(X):
            assert_all_finite(X, allow_nan=True, input_name="X")
            stored = Stored.of(without_duplicates(X))
            below, above = np.empty(around, stored.data.dtype)
            native.sparse_order_statistics(
                *stored[:4], self._q, below, above, self._count, n_threads()
            )
        else:
            dense = readable(X)
            below, above = np.empty(around, dense.dtype)
            if native.order_statistics(dense, self._q, below, above, self._count, n_threads()):
                refuse_infinity(X.dtype)
        self._below, self._above = (v.astype(X.dtype, copy=False) for v in (below, above))

    def _around(self, q: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The values that the quantile lies between, and its part of the way."""
        k = np.searchsorted(self._q, q)
        position = (self._count - 1) * q
        return self._below[k], self._above[k], position - np.floor(position)

    def median(self) -> np.ndarray:
        """As `np.nanmedian`."""
        below, above, part = self._around(0.5)
        return np.where(part == 0, below, np.mean([below, above], axis=0))

    def quantile(self, q: float) -> np.ndarray:
        """As `np.nanpercentile` interpolates."""
        below, above, part = self._around(q)
        difference = above - below
        return np.where(part < 0.5, below + difference * part, above - difference * (1 - part))


@documented_by(StockRobustScaler)
class RobustScaler(Versioned, StockRobustScaler):
    """Scale columns by their median and interquartile range, compiled.

    Quantiles are found by selection, in parallel and without sorting; they are scikit-learn's, bit
    for bit.

    Examples
    --------
    >>> from fastml.preprocessing import RobustScaler
    >>> X = [[ 1., -2.,  2.],
    ...      [ -2.,  1.,  3.],
    ...      [ 4.,  1., -2.]]
    >>> RobustScaler().fit_transform(X)
    array([[ 0. , -2. ,  0. ],
           [-1. ,  0. ,  0.4],
           [ 1. ,  0. , -1.6]])
    """

    @documented_by(StockRobustScaler.fit)
    @accelerated(unless=method_unless)
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Find the median and the quantiles of each column."""
        X = to_fit(self, X, sparse="csc")
        low, high = self.quantile_range
        if not 0 <= low <= high <= 100:
            raise ValueError(f"Invalid quantile range: {self.quantile_range}")
        if self.with_centering and issparse(X):
            raise ValueError(
                "Cannot center sparse matrices: use `with_centering=False` instead. See docstring "
                "for motivation and alternatives."
            )
        ends = [low / 100, high / 100]
        wanted = [0.5] * self.with_centering + ends * self.with_scaling
        order = Order(X, wanted or [0.5])
        self.center_ = order.median() if self.with_centering else None
        self.scale_ = None
        if self.with_scaling:
            scale = order.quantile(ends[1]) - order.quantile(ends[0])
            self.scale_ = _handle_zeros_in_scale(scale, copy=False)
            if self.unit_variance:
                self.scale_ = self.scale_ / np.subtract(*stats.norm.ppf(ends[::-1]))
        return self

    @documented_by(StockRobustScaler.transform)
    @accelerated(unless=method_unless)
    def transform(self, X):
        """Center and scale the columns of `X`."""
        given, X = X, to_transform(self, X, "scale_", sparse=("csr", "csc"))
        if is_sparse(X):
            scale = 1.0 / self.scale_ if self.with_scaling else np.ones(X.shape[1])
            return scale_stored(X, given, scale, copy=self.copy)
        return map_columns(X, given, self._columns(), copy=self.copy)

    @documented_by(StockRobustScaler.inverse_transform)
    @accelerated(unless=method_unless)
    def inverse_transform(self, X):
        """Undo the scaling."""
        given, X = X, to_invert(self, X, sparse=("csr", "csc"))
        if is_sparse(X):
            scale = self.scale_ if self.with_scaling else np.ones(X.shape[1])
            return scale_stored(X, given, scale, copy=self.copy, name="")
        columns = self._columns()._replace(stretch=True)
        return map_columns(X, given, columns, copy=self.copy, name="")

    def _columns(self) -> Columns:
        return Columns(
            self.center_ if self.with_centering else None,
            self.scale_ if self.with_scaling else None,
        )


@documented_by(stock_robust_scale)
@accelerated(unless=function_unless, stock=stock_robust_scale)
@validate_params(
    {"X": ["array-like", "sparse matrix"], "axis": [Options(Integral, {0, 1})]},
    prefer_skip_nested_validation=False,
)
def robust_scale(
    X,
    *,
    axis=0,
    with_centering=True,
    with_scaling=True,
    quantile_range=(25.0, 75.0),
    copy=True,
    unit_variance=False,
):
    """Scale each column, or each row, by median and quantile range, compiled: see `RobustScaler`.

    Examples
    --------
    >>> from fastml.preprocessing import robust_scale
    >>> X = [[-2, 1, 2], [-1, 0, 1]]
    >>> robust_scale(X)
    array([[-1.,  1.,  1.],
           [ 1., -1., -1.]])
    """
    scaler = RobustScaler(
        with_centering=with_centering,
        with_scaling=with_scaling,
        quantile_range=quantile_range,
        unit_variance=unit_variance,
        copy=copy,
    )
    return scaled_by(scaler, X, axis, sparse=("csr", "csc"))
