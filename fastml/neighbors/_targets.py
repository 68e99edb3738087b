"""Targets of supervised neighbour models, as scikit-learn stores them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets


def encode_classes(model: Any, y: np.ndarray) -> None:
    """Set `classes_`, `_y` (positions in them) and `outputs_2d_`."""
    model.outputs_2d_ = y.ndim == 2 and y.shape[1] != 1
    if y.ndim == 2 and not model.outputs_2d_:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape "
            "of y to (n_samples,), for example using ravel().",
            DataConversionWarning,
            stacklevel=3,
        )
    if y.ndim == 1:
        model.classes_, codes = classes_of(y)
        model._y = codes.astype(np.intp, copy=False)
        return
    check_classification_targets(y)
    encoded = [np.unique(column, return_inverse=True) for column in y.T]
    model.classes_ = [classes for classes, _ in encoded]
    model._y = np.stack([codes.ravel() for _, codes in encoded], axis=1).astype(np.intp)
    if not model.outputs_2d_:
        model.classes_ = model.classes_[0]
        model._y = model._y.ravel()


def classes_of(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The classes of one output, checked to be classes, and which of them each row has."""
    classes, codes = np.unique(y, return_inverse=True)
    # Whole numbers are classes, at most too many of them.
    plain = type(y) is np.ndarray and y.dtype.kind in "iub"
    if not plain or 2 * classes.size + 1 >= y.size:
        check_classification_targets(y)
    return classes, codes
