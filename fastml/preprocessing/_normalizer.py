"""Scaling rows to unit norm."""

from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn import preprocessing as stock
from sklearn.preprocessing._data import _handle_zeros_in_scale
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils._param_validation import Options, StrOptions
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import validate_data

from fastml._native import scaling as native
from fastml._runtime.callbacks import fit_context
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.parameters import validate_params
from fastml._runtime.plain import is_plain, note_columns
from fastml._runtime.threads import n_threads
from fastml._runtime.versioned import Versioned
from fastml.preprocessing._matrix import (
    DTYPES,
    Stored,
    function_unless,
    is_fresh,
    is_sparse,
    method_unless,
    order_of,
    readable,
    to_transform,
    without_duplicates,
)

StockNormalizer, stock_normalize = stock.Normalizer, stock.normalize


def normalized(
    X: Any, norm: str, *, in_place: bool, name: str, estimator: str | None
) -> tuple[Any, Any]:
    """The rows of `X`, validated but for NaN and infinity, divided by their norms; and those."""
    values = X.data if is_sparse(X) else X
    in_place = in_place and values.flags.writeable
    check = partial(assert_all_finite, values, estimator_name=estimator, input_name=name)
    # A kernel finds the norm of NaN and infinity on its way, but what it writes to must be sound.
    if in_place or X.dtype == np.float16:
        check()
    if is_sparse(X):
        out, norms, finite = _normalized_sparse(X, norm, in_place)
    elif X.dtype == np.float16:
        return _normalized_half(X if in_place else X.copy(order="K"), norm)
    else:
        out, norms, finite = _normalized_dense(X, norm, in_place)
    if not finite and not in_place:
        check()
    return out, norms


def _normalized_dense(X: np.ndarray, norm: str, in_place: bool) -> tuple[Any, Any, bool]:
    rows = readable(X)
    out = rows if in_place else np.empty(rows.shape, rows.dtype, order=order_of(rows))
    norms = np.empty(rows.shape[0], rows.dtype)
    # As scikit-learn has it, rows next to nothing stay as they are.
    tiny = 10 * np.finfo(rows.dtype).eps
    finite = native.normalize(rows, norm, tiny, norms, out, n_threads())
    if in_place and rows is not X:
        X[...] = out
        out = X
    return out, norms, finite


def _normalized_half(X: np.ndarray, norm: str) -> tuple[Any, Any]:
    """Half precision, in which there is nothing to gain: NumPy's operations one by one."""
    size = np.abs(X)
    norms = {"l1": size.sum, "l2": lambda axis: row_norms(X), "max": size.max}[norm](axis=1)
    norms = _handle_zeros_in_scale(norms, copy=False)
    X /= norms[:, None]
    return X, norms


def _normalized_sparse(X: Any, norm: str, in_place: bool) -> tuple[Any, Any, bool]:
    if norm == "max":
        X = without_duplicates(X, in_place)
    stored = Stored.of(X)._replace(by_columns=False)
    out = stored.data if in_place and stored.data is X.data else np.empty_like(stored.data)
    norms = np.empty(X.shape[0], stored.data.dtype)
    finite = native.sparse_normalize(*stored[:4], norm, norms, out, n_threads())
    return X if out is stored.data else X._with_data(out), norms, finite


@documented_by(StockNormalizer)
class Normalizer(Versioned, StockNormalizer):
    """Scale each row to unit norm, compiled.

    Norms are added up in double, and each row is read and written once.

    Examples
    --------
    >>> from fastml.preprocessing import Normalizer
    >>> X = [[4, 1, 2, 2], [1, 3, 9, 3]]
    >>> Normalizer(norm="max").fit_transform(X)
    array([[1.        , 0.25      , 0.5       , 0.5       ],
           [0.11111111, 0.33333333, 1.        , 0.33333333]])
    """

    @documented_by(StockNormalizer.fit)
    @accelerated(unless=method_unless)
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Check the parameters and `X`: there is nothing to learn."""
        if is_plain(X, sparse=True):
            note_columns(self, X)
        else:
            validate_data(self, X, accept_sparse="csr")
        return self

    @documented_by(StockNormalizer.transform)
    @accelerated(unless=method_unless)
    def transform(self, X, copy=None):
        """Scale each row of `X` to unit norm."""
        given, X = X, to_transform(self, X, None, sparse="csr")
        copy = self.copy if copy is None else copy
        in_place = not copy or is_fresh(X, given)
        return normalized(X, self.norm, in_place=in_place, name="X", estimator=type(self).__name__)[
            0
        ]


@documented_by(stock_normalize)
@accelerated(unless=function_unless, stock=stock_normalize)
@validate_params(
    {
        "X": ["array-like", "sparse matrix"],
        "norm": [StrOptions({"l1", "l2", "max"})],
        "axis": [Options(Integral, {0, 1})],
        "copy": ["boolean"],
        "return_norm": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def normalize(X, norm="l2", *, axis=1, copy=True, return_norm=False):
    """Scale each row, or each column, to unit norm, compiled: see `Normalizer`.

    Examples
    --------
    >>> from fastml.preprocessing import normalize
    >>> X = [[-2, 1, 2], [-1, 0, 1]]
    >>> normalize(X, norm="l1")
    array([[-0.4,  0.2,  0.4],
           [-0.5,  0. ,  0.5]])
    """
    given = X
    X = check_array(
        X,
        accept_sparse="csr" if axis == 1 else "csc",
        estimator="the normalize function",
        dtype=DTYPES,
        ensure_all_finite=False,
    )
    in_place = not copy or is_fresh(X, given)
    if axis == 0:
        X = X.T
    if is_sparse(X) and return_norm and norm != "max":
        raise NotImplementedError(
            "return_norm=True is not implemented for sparse matrices with norm 'l1' or norm 'l2'"
        )
    out, norms = normalized(X, norm, in_place=in_place, name="", estimator=None)
    if axis == 0:
        out = out.T
    return (out, norms) if return_norm else out
