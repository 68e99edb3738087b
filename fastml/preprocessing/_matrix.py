"""What the scalers share: validation without a pass over the data, and maps of columns.

scikit-learn looks through `X` for infinities before anything else. Here the kernels, which read
it anyway, report them, and `refuse_infinity` raises scikit-learn's error.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.utils import assert_all_finite
from sklearn.utils._array_api import get_namespace
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from fastml._native import scaling as native
from fastml._runtime.dispatch import Unsupported
from fastml._runtime.plain import note_columns
from fastml._runtime.threads import n_threads

DTYPES = (np.float64, np.float32, np.float16)
_NATIVE = (np.dtype(np.float64), np.dtype(np.float32))


def foreign(X: Any) -> Unsupported | None:
    """Why scikit-learn has to see to `X`: it dispatches on arrays of other libraries."""
    if type(X) is np.ndarray or not get_config()["array_api_dispatch"]:
        return None
    if getattr(get_namespace(X)[0], "__name__", "numpy").endswith("numpy"):
        return None
    return Unsupported("X", "arrays of other libraries are not compiled", "pass NumPy arrays")


def method_unless(self: Any, X: Any, *args: Any, **kwargs: Any) -> Unsupported | None:
    return foreign(X)


def function_unless(X: Any, *args: Any, **kwargs: Any) -> Unsupported | None:
    return foreign(X)


def to_fit(
    estimator: Any, X: Any, reset: bool = True, sparse: Any = False, dtypes: Any = DTYPES
) -> Any:
    wanted = dtypes if isinstance(dtypes, tuple | list) else (dtypes,)
    if reset and _is_table(X) and X.dtype in wanted:
        note_columns(estimator, X)
        return X
    return validate_data(
        estimator, X, reset=reset, accept_sparse=sparse, dtype=dtypes, ensure_all_finite=False
    )


def to_transform(
    estimator: Any, X: Any, fitted: str | None, sparse: Any = False, dtypes: Any = DTYPES
) -> Any:
    """`X` validated as at fit; nothing is asked of a plain array of the right shape.

    `fitted`: an attribute that a fitted estimator has.
    """
    known = vars(estimator)
    if fitted is not None and fitted not in known:
        check_is_fitted(estimator)
    of_shape = _is_table(X) and X.shape[1] == known.get("n_features_in_")
    if of_shape and "feature_names_in_" not in known:
        return X
    return to_fit(estimator, X, reset=False, sparse=sparse, dtypes=dtypes)


def _is_table(X: Any) -> bool:
    """Whether validation, which leaves infinities to the kernels, would hand back X itself."""
    return type(X) is np.ndarray and X.dtype in _NATIVE and X.ndim == 2 and X.size > 0


def to_invert(estimator: Any, X: Any, sparse: Any = False) -> Any:
    check_is_fitted(estimator)
    X = check_array(X, accept_sparse=sparse, dtype=DTYPES, ensure_all_finite=False)
    if X.shape[1] != estimator.n_features_in_:  # NumPy would not add up the shapes; kernels would
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    return X


def refuse_infinity(dtype: Any, name: str = "X") -> None:
    """Raise what scikit-learn does for an array that holds an infinity."""
    assert_all_finite(np.array([np.inf], dtype=dtype), allow_nan=True, input_name=name)


def is_fresh(X: Any, given: Any) -> bool:
    """Whether validation made `X` anew, so that the caller knows nothing of its memory."""
    if X is given:
        return False
    if is_sparse(X):
        return not (is_sparse(given) and np.may_share_memory(X.data, given.data))
    return not np.may_share_memory(X, given)


def readable(X: np.ndarray) -> np.ndarray:
    """`X`, or a copy whose rows or columns the kernels can read; half precision as single."""
    if X.dtype == np.float16:
        return X.astype(np.float32)
    return X if order_of(X) else X.copy(order="K")


def order_of(X: np.ndarray) -> str:
    """Which of rows ("C") and columns ("F") are contiguous, or an empty string."""
    if not X.flags.aligned:
        return ""
    if X.strides[1] == X.itemsize or X.shape[1] == 1:
        return "C"
    return "F" if X.strides[0] == X.itemsize and X.shape[0] > 1 else ""


class Columns(NamedTuple):
    """For each column (X - shift) / scale, or with `stretch` X * scale + shift; then limits.

    scale and shift may be None for nothing to do. Each step is rounded to the dtype of X.
    """

    shift: np.ndarray | None
    scale: np.ndarray | None
    stretch: bool = False
    limits: tuple[float, float] | None = None


def map_columns(X: Any, given: Any, columns: Columns, *, copy: bool, name: str = "X") -> Any:
    """The map of `X`, which validation made of `given`; in its place unless `copy`."""
    if X.dtype == np.float16:
        return _map_half(X, given, columns, copy, name)
    shift, scale = _parameters(X, columns)
    out, rows = _destination(X, given, copy, name)
    if native.apply(rows, columns.stretch, shift, scale, columns.limits, out, n_threads()):
        refuse_infinity(X.dtype, name)
    if rows is not X and not copy and X.flags.writeable:
        X[...] = out  # in place, though neither rows nor columns are in one piece
        return X
    return out


def _destination(X: np.ndarray, given: Any, copy: bool, name: str) -> tuple[Any, Any]:
    """Where to write, and `X` such that both have one layout."""
    writeable, order = X.flags.writeable, order_of(X)
    if writeable and is_fresh(X, given) and order:
        return X, X
    if writeable and not copy:
        # The caller's array must not be changed and then refused.
        assert_all_finite(X, allow_nan=True, input_name=name)
        if order:
            return X, X
    rows = readable(X)
    return np.empty(X.shape, X.dtype, order=order_of(rows)), rows


def _parameters(X: np.ndarray, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    given = [p for p in (columns.shift, columns.scale) if p is not None]
    double = X.dtype == np.float64 or any(p.dtype == np.float64 for p in given)
    dtype = np.float64 if double else np.float32
    # Adding -0.0 changes nothing; adding 0.0 makes 0.0 of -0.0.
    neutral = (-0.0 if columns.stretch else 0.0, 1.0)
    return tuple(
        np.full(X.shape[1], value, dtype) if p is None else np.ascontiguousarray(p, dtype=dtype)
        for p, value in zip((columns.shift, columns.scale), neutral, strict=True)
    )


def _map_half(X: np.ndarray, given: Any, columns: Columns, copy: bool, name: str) -> np.ndarray:
    """Half precision, in which there is nothing to gain: NumPy's operations one by one."""
    assert_all_finite(X, allow_nan=True, input_name=name)
    if (copy and not is_fresh(X, given)) or not X.flags.writeable:
        X = X.copy(order="K")
    steps = [(np.subtract, columns.shift), (np.divide, columns.scale)]
    if columns.stretch:
        steps = [(np.multiply, columns.scale), (np.add, columns.shift)]
    for operation, parameter in steps:
        if parameter is not None:
            operation(X, parameter, out=X, casting="same_kind")
    return X if columns.limits is None else np.clip(X, *columns.limits, out=X)


class Stored(NamedTuple):
    """A CSR or CSC matrix as the kernels take it."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    across: int
    by_columns: bool

    @classmethod
    def of(cls, X: Any) -> "Stored":
        indices, indptr = X.indices, X.indptr
        if indices.dtype != indptr.dtype or indices.dtype not in (np.int32, np.int64):
            indices, indptr = indices.astype(np.int64), indptr.astype(np.int64)
        by_columns = X.format == "csc"
        arrays = (np.require(a, requirements="CA") for a in (X.data, indices, indptr))
        return cls(*arrays, X.shape[0 if by_columns else 1], by_columns)


def without_duplicates(X: Any, in_place: bool = False) -> Any:
    """The sparse matrix `X` with each entry stored once."""
    if X.has_canonical_format:
        return X
    X = X if in_place else X.copy()
    X.sum_duplicates()
    return X


def scale_stored(
    X: Any,
    given: Any,
    scale: np.ndarray,
    *,
    copy: bool,
    name: str = "X",
    limits: tuple[float, float] | None = None,
) -> Any:
    """The sparse matrix `X`, each column times its scale; in its place unless `copy`."""
    stored = Stored.of(X)
    in_place = not copy and X.data.flags.writeable and stored.data is X.data
    if in_place:
        assert_all_finite(X, allow_nan=True, input_name=name)
    scale = np.ascontiguousarray(scale, dtype=np.float64)
    out = stored.data if in_place else np.empty_like(stored.data)
    if native.sparse_scale(*stored, scale, limits, out, n_threads()):
        refuse_infinity(X.dtype, name)
    return X if in_place else X._with_data(out.astype(X.dtype, copy=False))


def scaled_by(scaler: Any, X: Any, axis: int, sparse: Any = False) -> Any:
    """`X`, of one or two dimensions, scaled along an axis: the scalers as functions."""
    X = check_array(
        X,
        accept_sparse=sparse,
        copy=False,
        ensure_2d=False,
        dtype=DTYPES,
        ensure_all_finite=False,
    )
    flat = X.ndim == 1
    if flat:
        X = X.reshape(-1, 1)
    X = scaler.fit_transform(X) if axis == 0 else scaler.fit_transform(X.T).T
    return X.ravel() if flat else X


def is_sparse(X: Any) -> bool:
    return type(X) is not np.ndarray and issparse(X)
