"""Arrays that validation would hand back as they are: it costs more than a small fit or search."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix
from sklearn.utils.validation import validate_data

from fastml._native import rows as native

LARGEST = 1 << 16  # beyond, validation does not count


def is_table(X: Any) -> bool:
    """Whether `X` is an array of finite floats in rows and columns, in any order."""
    return not math.isnan(least_of_table(X))


def least_of_table(X: Any) -> float:
    """The least value of an array of finite floats in rows and columns; NaN if X is none."""
    if type(X) is not np.ndarray or not X.dtype.isnative or X.dtype.char not in "fd":
        return math.nan
    return least(X) if X.ndim == 2 and X.size > 0 else math.nan


def is_plain(X: Any, sparse: bool = False) -> bool:
    """Whether `X` is a small table of finite floats, in C order or, with `sparse`, in CSR."""
    if type(X) is np.ndarray:
        return X.flags.c_contiguous and X.size <= LARGEST and is_table(X)
    if not sparse or type(X) not in (csr_array, csr_matrix) or X.dtype.char not in "fd":
        return False
    return X.ndim == 2 and X.shape[0] > 0 and 0 < X.nnz <= LARGEST and is_finite(X.data[None])


def is_plain_for(model: Any, X: Any, sparse: bool = False) -> bool:
    """Whether validation by a fitted model would hand back `X` itself."""
    fitted = vars(model)
    if "feature_names_in_" in fitted or not is_plain(X, sparse):
        return False
    return X.shape[1] == fitted.get("n_features_in_")


def validated(model: Any, X: Any, sparse: bool = False) -> Any:
    """The rows of `X`, dense or in CSR, for a fitted model."""
    if is_plain_for(model, X, sparse):
        return X
    return validate_data(model, X, reset=False, accept_sparse="csr" if sparse else False)


def note_columns(model: Any, X: Any) -> None:
    """What validation of plain rows would leave on the model that is fitted to them."""
    vars(model).pop("feature_names_in_", None)
    model.n_features_in_ = X.shape[1]


def is_plain_target(y: Any, n: int) -> bool:
    """Whether `y` has a whole or finite number, or a row of them, for each of `n` rows."""
    if type(y) is not np.ndarray or y.ndim not in (1, 2) or y.shape[0] != n or y.size == 0:
        return False
    return y.dtype.kind in "iub" or (
        y.dtype.char in "fd" and y.dtype.isnative and is_finite(y.reshape(len(y), -1))
    )


def is_finite(X: np.ndarray) -> bool:
    """Whether all of a table's floats, at least one, are finite."""
    return not math.isnan(least(X))


def least(X: np.ndarray) -> float:
    """The least of a table's floats, at least one, or NaN if one is not finite."""
    return native.least(X if X.flags.aligned else X.copy())
