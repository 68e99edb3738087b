"""Arrays that validation would hand back as they are: it costs more than a small fit or search."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

LARGEST = 1 << 16  # beyond, validation does not count


def is_plain(X: Any) -> bool:
    """Whether `X` is a small table of finite floats, in C order."""
    if type(X) is not np.ndarray or X.ndim != 2 or X.dtype.char not in "fd":
        return False
    if not X.flags.c_contiguous or X.size == 0 or X.size > LARGEST:
        return False
    return is_finite(X)


def is_plain_for(model: Any, X: Any) -> bool:
    """Whether validation by a fitted model would hand back `X` itself."""
    fitted = vars(model)
    if "feature_names_in_" in fitted or not is_plain(X):
        return False
    return X.shape[1] == fitted.get("n_features_in_")


def validated(model: Any, X: Any, **options: Any) -> Any:
    """The rows of `X`, for a fitted model."""
    return X if is_plain_for(model, X) else validate_data(model, X, reset=False, **options)


def is_plain_target(y: Any, n: int) -> bool:
    """Whether `y` has a whole or finite number, or a row of them, for each of `n` rows."""
    if type(y) is not np.ndarray or y.ndim not in (1, 2) or y.shape[0] != n or y.size == 0:
        return False
    return y.dtype.kind in "iub" or (y.dtype.char in "fd" and is_finite(np.ascontiguousarray(y)))


def is_finite(X: np.ndarray) -> bool:
    # A product would wake the threads of BLAS, which stay in the way of ours.
    with np.errstate(over="ignore", invalid="ignore"):  # then validation has the last word
        return bool(np.isfinite(X.sum()))
