"""Scaling to zero mean and unit variance."""

import warnings
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import sklearn
from sklearn import preprocessing as stock
from sklearn.preprocessing._data import _handle_zeros_in_scale, _is_constant_feature
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils._param_validation import Options
from sklearn.utils.fixes import parse_version
from sklearn.utils.validation import _check_sample_weight

from fastml._native import scaling as native
from fastml._runtime.callbacks import CallbackSupportMixin, fit_context, fit_task
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.parameters import validate_params
from fastml._runtime.reduce import reduce_blocks
from fastml._runtime.threads import n_threads
from fastml._runtime.versioned import Versioned
from fastml.preprocessing._matrix import (
    DTYPES,
    Columns,
    Stored,
    function_unless,
    is_fresh,
    is_sparse,
    map_columns,
    method_unless,
    readable,
    refuse_infinity,
    scale_stored,
    to_fit,
    to_invert,
    to_transform,
)

StockStandardScaler, stock_scale = stock.StandardScaler, stock.scale

# Since 1.8 scikit-learn counts rows in floating point, and rounds mean and scale to the dtype of X
# before it applies them. The installed version decides.
SINCE_1_8 = parse_version(sklearn.__version__) >= parse_version("1.8.0rc1")


class Block(NamedTuple):
    """Rows, dense or sparse, and their weights (None: equal)."""

    X: Any
    w: np.ndarray | None = None


class Moments(NamedTuple):
    """Of each column the number of its values (or their weight), mean, and sum of squared
    deviations from it; NaN are no values."""

    count: np.ndarray
    mean: np.ndarray
    square: np.ndarray


class ColumnMoments:
    """Mean and variance of columns as a reduction over rows; see `fastml._runtime.reduce`."""

    def init(self, meta: int, seed: Any) -> Moments:
        """Of `meta` columns, nothing is known."""
        return Moments(*np.zeros((3, meta)))

    def map(self, block: Block, state: Moments) -> Moments:
        X, w = block
        part = Moments(*np.empty((3, X.shape[1])))
        if is_sparse(X):
            stored = Stored.of(X)
            infinite = native.sparse_moments(*stored, _as(stored.data, w), *part, n_threads())
        else:
            dense = readable(X)
            infinite = native.moments(dense, _as(dense, w), *part, n_threads())
        if infinite:
            refuse_infinity(X.dtype)
        return part

    def merge(self, a: Moments, b: Moments) -> Moments:
        """Chan, Golub and LeVeque (1983), equation 2.1."""
        count = a.count + b.count
        share = np.divide(b.count, count, out=np.zeros_like(count), where=count != 0)
        delta = b.mean - a.mean
        mean = np.where(share == 1, b.mean, a.mean + delta * share)
        return Moments(count, mean, a.square + b.square + delta**2 * a.count * share)

    def update(self, part: Moments, state: Moments) -> tuple[Moments, bool]:
        return self.merge(state, part), True


def _as(X: np.ndarray, w: np.ndarray | None) -> np.ndarray | None:
    return None if w is None else np.ascontiguousarray(w, dtype=X.dtype)


@documented_by(StockStandardScaler)
class StandardScaler(Versioned, StockStandardScaler, CallbackSupportMixin):
    """Standardize columns by their mean and standard deviation, compiled.

    `X` is read once to fit and once to transform. Means and variances are summed up in double,
    block by block about the mean of each block: the same bits for any number of threads.

    Examples
    --------
    >>> from fastml.preprocessing import StandardScaler
    >>> data = [[0, 0], [0, 0], [1, 1], [1, 1]]
    >>> scaler = StandardScaler().fit(data)
    >>> scaler.mean_
    array([0.5, 0.5])
    >>> scaler.transform([[2, 2]])
    array([[3., 3.]])
    """

    @documented_by(StockStandardScaler.fit)
    @accelerated(unless=method_unless)
    def fit(self, X, y=None, sample_weight=None):
        """Find the mean and the standard deviation of each column."""
        self._reset()
        return self.partial_fit(X, y, sample_weight)

    @documented_by(StockStandardScaler.partial_fit)
    @accelerated(unless=method_unless)
    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None, sample_weight=None):
        """Take the rows of `X` into account."""
        first = not hasattr(self, "n_samples_seen_")
        X = to_fit(self, X, reset=first, sparse=("csr", "csc"))
        with fit_task(self, X=X, y=y, metadata={"sample_weight": sample_weight}) as task:
            w = None
            if sample_weight is not None:
                w = _check_sample_weight(sample_weight, X, dtype=X.dtype)
            if is_sparse(X) and self.with_mean:
                raise ValueError(
                    "Cannot center sparse matrices: pass `with_mean=False` instead. See docstring "
                    "for motivation and alternatives."
                )
            only_counts = not self.with_std and (is_sparse(X) or not self.with_mean)
            rows_alone = only_counts and not is_sparse(X)  # as scikit-learn counts them
            block = Block(X, None if rows_alone else w)
            method = ColumnMoments()
            state = self._moments(method, X.shape[1])
            state, _ = method.update(reduce_blocks(method, [block], state), state)
            self._keep(state, X, w, only_counts)
            task.attributes = {}
        return self

    def _moments(self, method: ColumnMoments, d: int) -> Moments:
        """What is known so far."""
        if not hasattr(self, "n_samples_seen_"):
            return method.init(d, None)
        count = np.broadcast_to(np.asarray(self.n_samples_seen_, dtype=np.float64), d)
        mean = np.zeros(d) if self.mean_ is None else self.mean_
        return Moments(count, mean, np.zeros(d) if self.var_ is None else self.var_ * count)

    def _keep(self, state: Moments, X: Any, w: np.ndarray | None, only_counts: bool) -> None:
        dtype = np.dtype(np.float64 if SINCE_1_8 or w is not None else np.int64)
        if is_sparse(X):
            dtype = X.dtype
        if only_counts:
            dtype = np.dtype(np.int64) if w is None else X.dtype
        count = state.count.astype(dtype)
        self.n_samples_seen_ = count[0] if (count == count[0]).all() else count
        nothing = state.count == 0
        self.mean_ = None if only_counts else np.where(nothing, np.nan, state.mean)
        self.var_ = self.scale_ = None
        if self.with_std:
            with np.errstate(invalid="ignore"):  # columns without a value
                self.var_ = state.square / state.count
            constant = _is_constant_feature(self.var_, self.mean_, self.n_samples_seen_)
            self.scale_ = _handle_zeros_in_scale(
                np.sqrt(self.var_), copy=False, constant_mask=constant
            )

    @documented_by(StockStandardScaler.transform)
    @accelerated(unless=method_unless)
    def transform(self, X, copy=None):
        """Center and scale the columns of `X`."""
        given, X = X, to_transform(self, X, "n_samples_seen_", sparse="csr")
        copy = self.copy if copy is None else copy
        if not is_sparse(X):
            return map_columns(X, given, Columns(*self._parameters(X.dtype)), copy=copy)
        self._refuse_to_center("center sparse matrices: pass `with_mean=False` instead.")
        scale = np.ones(X.shape[1]) if self.scale_ is None else 1 / self.scale_
        return scale_stored(X, given, scale, copy=copy)

    @documented_by(StockStandardScaler.inverse_transform)
    @accelerated(unless=method_unless)
    def inverse_transform(self, X, copy=None):
        """Undo the scaling."""
        given, X = X, to_invert(self, X, sparse="csr")
        copy = self.copy if copy is None else copy
        if not is_sparse(X):
            columns = Columns(*self._parameters(X.dtype), stretch=True)
            return map_columns(X, given, columns, copy=copy, name="")
        self._refuse_to_center("uncenter sparse matrices: pass `with_mean=False` instead")
        scale = np.ones(X.shape[1]) if self.scale_ is None else self.scale_
        return scale_stored(X, given, scale, copy=copy, name="")

    def _parameters(self, dtype: np.dtype) -> list[np.ndarray | None]:
        wanted = (self.mean_ if self.with_mean else None, self.scale_ if self.with_std else None)
        rounded = dtype if SINCE_1_8 else np.float64
        return [None if p is None else p.astype(rounded) for p in wanted]

    def _refuse_to_center(self, what: str) -> None:
        if self.with_mean:
            raise ValueError(f"Cannot {what} See docstring for motivation and alternatives.")


@documented_by(stock_scale)
@accelerated(unless=function_unless, stock=stock_scale)
@validate_params(
    {
        "X": ["array-like", "sparse matrix"],
        "axis": [Options(Integral, {0, 1})],
        "with_mean": ["boolean"],
        "with_std": ["boolean"],
        "copy": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def scale(X, *, axis=0, with_mean=True, with_std=True, copy=True):
    """Standardize each column, or each row, by its mean and standard deviation, compiled.

    Examples
    --------
    >>> from fastml.preprocessing import scale
    >>> X = [[-2, 1, 2], [-1, 0, 1]]
    >>> scale(X)
    array([[-1.,  1.,  1.],
           [ 1., -1., -1.]])
    """
    given = X
    few = isinstance(X, np.ndarray) and X.size < FEW
    X = check_array(
        X,
        accept_sparse="csc",
        ensure_2d=False,
        estimator="the scale function",
        dtype=DTYPES,
        ensure_all_finite="allow-nan" if few else False,
        input_name="X",
    )
    if is_sparse(X):
        if with_mean:
            raise ValueError(
                "Cannot center sparse matrices: pass `with_mean=False` instead See docstring for "
                "motivation and alternatives."
            )
        if axis != 0:
            raise ValueError(f"Can only scale sparse matrix on axis=0,  got axis={axis}")
        by = np.ones(X.shape[1])
        if with_std:
            _, _, variance = _statistics(X)
            by = 1 / np.sqrt(_handle_zeros_in_scale(variance.astype(X.dtype), copy=False))
        return scale_stored(X, given, by, copy=copy)
    if X.ndim == 1:
        if axis != 0:
            raise np.exceptions.AxisError(axis, X.ndim)
        return scale_columns(X[:, None], given, with_mean, with_std, copy)[:, 0]
    if axis == 1:
        return scale_columns(X.T, given, with_mean, with_std, copy).T
    return scale_columns(X, given, with_mean, with_std, copy)


def _statistics(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count, mean and variance of columns; NaN where there is no value."""
    method = ColumnMoments()
    part = method.map(Block(X), method.init(X.shape[1], None))
    with np.errstate(invalid="ignore"):
        return part.count, part.mean + 0 / part.count, part.square / part.count


# Below so many values NumPy's mean and deviation are had sooner, and are scikit-learn's to the bit.
FEW = 2048

CENTERING = (
    "Numerical issues were encountered when centering the data and might not be solved. Dataset "
    "may contain too large values. You may need to prescale your features."
)
SCALING = (
    "Numerical issues were encountered when scaling the data and might not be solved. The standard "
    "deviation of the data is probably very close to 0."
)


def _few(statistic: Any, X: np.ndarray) -> np.ndarray:
    # NumPy adds up a single column as it does an array of one dimension only if it is one.
    return np.atleast_1d(statistic(X[:, 0])) if X.shape[1] == 1 else statistic(X, axis=0)


def scale_columns(X: np.ndarray, given: Any, with_mean: bool, with_std: bool, copy: bool) -> Any:
    """What `scale` does, with scikit-learn's second looks at what is left of the mean."""
    few = X.size < FEW or X.dtype == np.float16
    if few:
        if not isinstance(given, np.ndarray) or given.size >= FEW:  # else it has been checked
            assert_all_finite(
                X, allow_nan=True, estimator_name="the scale function", input_name="X"
            )
        mean, by = _few(np.nanmean, X), _few(np.nanstd, X)
    else:
        _, mean, variance = _statistics(X)
        mean, by = mean.astype(X.dtype), np.sqrt(variance).astype(X.dtype)
    if np.ndim(given) == 1:
        by[by == 0] = 1  # scikit-learn does not take a next to constant one for constant
    else:
        by = _handle_zeros_in_scale(by, copy=False)
    shift, by = mean if with_mean else None, by if with_std else None
    left = None
    if few:
        if (copy and not is_fresh(X, given)) or not X.flags.writeable:
            X = X.copy(order="K")
        if with_mean:
            X -= shift
            _recentre(X, CENTERING)
        if with_std:
            X /= by
    else:
        X = map_columns(X, given, Columns(shift, by), copy=copy)
        if with_mean:
            left = _recentre(X, CENTERING, 1 if by is None else by)
    if with_mean and with_std:
        _recentre(X, SCALING, left=left)
    return X


def _recentre(X: np.ndarray, warning: str, unit: Any = 1, left: Any = None) -> np.ndarray | None:
    """Subtract the mean that is left, with a warning, if it is one; then return None, else it."""
    if left is None:
        left = _few(np.nanmean, X) if X.size < FEW else _statistics(X)[1]
    if np.allclose(left * unit, 0):
        return left
    warnings.warn(warning, stacklevel=4)
    X -= left.astype(X.dtype)
    return None
