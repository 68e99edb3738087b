"""Scaling by the least and largest values of columns."""

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn import preprocessing as stock
from sklearn.preprocessing._data import _handle_zeros_in_scale
from sklearn.utils._param_validation import Options

from fastml._native import scaling as native
from fastml._runtime.callbacks import fit_context
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.parameters import validate_params
from fastml._runtime.reduce import reduce_blocks
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

StockMinMaxScaler, StockMaxAbsScaler = stock.MinMaxScaler, stock.MaxAbsScaler
stock_minmax_scale, stock_maxabs_scale = stock.minmax_scale, stock.maxabs_scale


class Range(NamedTuple):
    """The least and largest values of columns, NaN where there was none, and how many rows."""

    least: np.ndarray
    largest: np.ndarray
    rows: int


class Extremes:
    """Least and largest values as a reduction over rows; see `fastml._runtime.reduce`."""

    def init(self, meta: Any, seed: Any) -> Range | None:
        return seed

    def map(self, block: np.ndarray, state: Range | None) -> Range:
        X = readable(block)
        least, largest = np.empty((2, X.shape[1]), X.dtype)
        if native.extremes(X, least, largest, n_threads()):
            refuse_infinity(block.dtype)
        empty = least > largest
        least[empty] = largest[empty] = np.nan
        return Range(*(v.astype(block.dtype, copy=False) for v in (least, largest)), X.shape[0])

    def merge(self, a: Range, b: Range) -> Range:
        return Range(np.fmin(a.least, b.least), np.fmax(a.largest, b.largest), a.rows + b.rows)

    def update(self, part: Range, state: Range | None) -> tuple[Range, bool]:
        if state is None:
            return part, True
        # As scikit-learn does between calls: what was NaN stays so.
        least, largest = (
            np.minimum(state.least, part.least),
            np.maximum(state.largest, part.largest),
        )
        return Range(least, largest, state.rows + part.rows), True


class Sizes(Extremes):
    """The same of absolute values, sparse ones too; only the largest is of interest."""

    def map(self, block: Any, state: Range | None) -> Range:
        if issparse(block):
            largest = _largest_stored(block)
            rows = block.shape[0]
        else:
            least, largest, rows = super().map(block, state)
            largest = np.maximum(np.abs(least), np.abs(largest))
        return Range(largest, largest, rows)


def _largest_stored(X: Any) -> np.ndarray:
    stored = Stored.of(without_duplicates(X))
    largest, missing = np.empty(X.shape[1], stored.data.dtype), np.empty(X.shape[1])
    native.sparse_largest(*stored, largest, missing, n_threads())
    if np.isinf(largest).any():
        refuse_infinity(X.dtype)
    largest[missing == X.shape[0]] = np.nan
    return largest.astype(X.dtype, copy=False)


@documented_by(StockMinMaxScaler)
class MinMaxScaler(Versioned, StockMinMaxScaler):
    """Scale each column to a given range, compiled.

    The same values as scikit-learn's, bit for bit; `X` is read once to fit and once to transform.

    Examples
    --------
    >>> from fastml.preprocessing import MinMaxScaler
    >>> data = [[-1, 2], [-0.5, 6], [0, 10], [1, 18]]
    >>> scaler = MinMaxScaler().fit(data)
    >>> scaler.data_max_
    array([ 1., 18.])
    >>> scaler.transform([[2, 2]])
    array([[1.5, 0. ]])
    """

    @documented_by(StockMinMaxScaler.fit)
    @accelerated(unless=method_unless)
    def fit(self, X, y=None):
        """Find the least and the largest value of each column."""
        self._reset()
        return self.partial_fit(X, y)

    @documented_by(StockMinMaxScaler.partial_fit)
    @accelerated(unless=method_unless)
    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None):
        """Let the rows of `X` widen the ranges."""
        low, high = self.feature_range
        if low >= high:
            raise ValueError(
                "Minimum of desired feature range must be smaller than maximum. "
                f"Got {self.feature_range}."
            )
        if issparse(X):
            raise TypeError(
                "MinMaxScaler does not support sparse input. Consider using MaxAbsScaler instead."
            )
        seen = getattr(self, "n_samples_seen_", None)
        X = to_fit(self, X, reset=seen is None)
        method = Extremes()
        last = None if seen is None else Range(self.data_min_, self.data_max_, seen)
        state = method.init(None, last)
        state, _ = method.update(reduce_blocks(method, [X], state), state)

        low, high = X.dtype.type(low), X.dtype.type(high)
        self.n_samples_seen_ = state.rows
        data_range = state.largest - state.least
        self.scale_ = (high - low) / _handle_zeros_in_scale(data_range, copy=True)
        self.min_ = low - state.least * self.scale_
        self.data_min_, self.data_max_, self.data_range_ = state.least, state.largest, data_range
        return self

    @documented_by(StockMinMaxScaler.transform)
    @accelerated(unless=method_unless)
    def transform(self, X):
        """Scale the columns of `X`."""
        given, X = X, to_transform(self, X, "scale_")
        limits = None
        if self.clip:
            limits = tuple(map(X.dtype.type, self.feature_range))
        columns = Columns(self.min_, self.scale_, stretch=True, limits=limits)
        return map_columns(X, given, columns, copy=self.copy)

    @documented_by(StockMinMaxScaler.inverse_transform)
    @accelerated(unless=method_unless)
    def inverse_transform(self, X):
        """Undo the scaling."""
        given, X = X, to_invert(self, X)
        return map_columns(X, given, Columns(self.min_, self.scale_), copy=self.copy, name="")


@documented_by(StockMaxAbsScaler)
class MaxAbsScaler(Versioned, StockMaxAbsScaler):
    """Scale each column by its largest absolute value, compiled.

    The same values as scikit-learn's, bit for bit; `X` is read once to fit and once to transform.

    Examples
    --------
    >>> from fastml.preprocessing import MaxAbsScaler
    >>> X = [[ 1., -1.,  2.],
    ...      [ 2.,  0.,  0.],
    ...      [ 0.,  1., -1.]]
    >>> MaxAbsScaler().fit_transform(X)
    array([[ 0.5, -1. ,  1. ],
           [ 1. ,  0. ,  0. ],
           [ 0. ,  1. , -0.5]])
    """

    @documented_by(StockMaxAbsScaler.fit)
    @accelerated(unless=method_unless)
    def fit(self, X, y=None):
        """Find the largest absolute value of each column."""
        self._reset()
        return self.partial_fit(X, y)

    @documented_by(StockMaxAbsScaler.partial_fit)
    @accelerated(unless=method_unless)
    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None):
        """Take the rows of `X` into account."""
        seen = getattr(self, "n_samples_seen_", None)
        X = to_fit(self, X, reset=seen is None, sparse=("csr", "csc"))
        method = Sizes()
        last = None if seen is None else Range(self.max_abs_, self.max_abs_, seen)
        state = method.init(None, last)
        state, _ = method.update(reduce_blocks(method, [X], state), state)
        self.n_samples_seen_ = state.rows
        self.max_abs_ = state.largest
        self.scale_ = _handle_zeros_in_scale(self.max_abs_, copy=True)
        return self

    @documented_by(StockMaxAbsScaler.transform)
    @accelerated(unless=method_unless)
    def transform(self, X):
        """Scale the columns of `X`."""
        given, X = X, to_transform(self, X, "scale_", sparse=("csr", "csc"))
        limits = (-1.0, 1.0) if getattr(self, "clip", False) else None
        if is_sparse(X):
            return scale_stored(X, given, 1.0 / self.scale_, copy=self.copy, limits=limits)
        return map_columns(X, given, Columns(None, self.scale_, limits=limits), copy=self.copy)

    @documented_by(StockMaxAbsScaler.inverse_transform)
    @accelerated(unless=method_unless)
    def inverse_transform(self, X):
        """Undo the scaling."""
        given, X = X, to_invert(self, X, sparse=("csr", "csc"))
        if is_sparse(X):
            return scale_stored(X, given, self.scale_, copy=self.copy, name="")
        columns = Columns(None, self.scale_, stretch=True)
        return map_columns(X, given, columns, copy=self.copy, name="")


@documented_by(stock_minmax_scale)
@accelerated(unless=function_unless, stock=stock_minmax_scale)
@validate_params(
    {"X": ["array-like"], "axis": [Options(Integral, {0, 1})]},
    prefer_skip_nested_validation=False,
)
def minmax_scale(X, feature_range=(0, 1), *, axis=0, copy=True):
    """Scale each column, or each row, to a given range, compiled: see `MinMaxScaler`.

    Examples
    --------
    >>> from fastml.preprocessing import minmax_scale
    >>> X = [[-2, 1, 2], [-1, 0, 1]]
    >>> minmax_scale(X)
    array([[0., 1., 1.],
           [1., 0., 0.]])
    """
    return scaled_by(MinMaxScaler(feature_range=feature_range, copy=copy), X, axis)


@documented_by(stock_maxabs_scale)
@accelerated(unless=function_unless, stock=stock_maxabs_scale)
@validate_params(
    {"X": ["array-like", "sparse matrix"], "axis": [Options(Integral, {0, 1})]},
    prefer_skip_nested_validation=False,
)
def maxabs_scale(X, *, axis=0, copy=True):
    """Scale each column, or each row, by its largest absolute value, compiled: see `MaxAbsScaler`.

    Examples
    --------
    >>> from fastml.preprocessing import maxabs_scale
    >>> X = [[-2, 1, 2], [-1, 0, 1]]
    >>> maxabs_scale(X)
    array([[-1. ,  1. ,  1. ],
           [-0.5,  0. ,  0.5]])
    """
    return scaled_by(MaxAbsScaler(copy=copy), X, axis, sparse=("csr", "csc"))
