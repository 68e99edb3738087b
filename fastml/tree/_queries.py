"""Rows to predict for, on their way to fitted trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

_FEW = 1 << 12  # values
_LARGEST = float(np.finfo(np.float32).max)


def require(model: Any, attribute: str) -> None:
    """That the model is fitted, by an attribute that fitting sets."""
    if attribute not in vars(model):
        check_is_fitted(model)


def plain_query(model: Any, X: Any) -> np.ndarray | None:
    """X in single precision, if one look tells that there is nothing else to check, or None.

    Scikit-learn's checks take longer than trees take for a few rows.
    """
    if type(X) is not np.ndarray or X.ndim != 2 or not 0 < X.size <= _FEW:
        return None
    if X.dtype.char not in "fd" or not X.dtype.isnative:
        return None
    fitted = vars(model)
    if X.shape[1] != fitted.get("n_features_in_") or "feature_names_in_" in fitted:
        return None
    if not np.maximum.reduce(np.abs(X), axis=None) <= _LARGEST:  # so for NaN
        return None
    return X.astype(np.float32, copy=False)
