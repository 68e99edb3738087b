"""What trees learn from besides the rows: targets, weights and the limits of their growth."""

from __future__ import annotations

from math import ceil
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

_MOST_COUNTED = 1 << 10  # classes


class Targets:
    """The targets of a fit, for all the trees that are grown on them.

    Attributes
    ----------
    given : ndarray
        What the first tree was given.

    values : ndarray of float64, (n, n_outputs), C-contiguous
        What is grown on: codes of classes, or numbers.

    classes : list of ndarray, or None for regression

    n_classes : ndarray of intp, (n_outputs,), or None for regression
    """

    def __init__(self, y: Any, classification: bool) -> None:
        self.given = y
        y = np.atleast_1d(y)
        y = y.reshape(-1, 1) if y.ndim == 1 else y
        self._labels = y
        self.classes: list[np.ndarray] | None = None
        self.n_classes: np.ndarray | None = None
        self._class_weights: list[tuple[Any, np.ndarray]] = []
        if classification:
            pairs = checked_classes(y)
            self.classes = [classes for classes, _ in pairs]
            self.n_classes = np.array([len(classes) for classes in self.classes], dtype=np.intp)
            y = np.stack([codes.ravel() for _, codes in pairs], axis=1)
        self.values = np.ascontiguousarray(y, dtype=np.float64)

    def describe(self, tree: Any) -> None:
        """Give a tree the attributes that scikit-learn's has of its targets."""
        tree.n_outputs_ = self.values.shape[1]
        if self.classes is None or self.n_classes is None:
            return
        if tree.n_outputs_ == 1:
            tree.classes_, tree.n_classes_ = self.classes[0], self.n_classes[0]
        else:
            tree.classes_, tree.n_classes_ = list(self.classes), self.n_classes

    def class_weights(self, class_weight: Any) -> np.ndarray:
        """The weight of each row by its class; worked out once for all the trees."""
        for known, weights in self._class_weights:
            if known is class_weight:
                return weights
        weights = compute_sample_weight(class_weight, self._labels)
        self._class_weights.append((class_weight, weights))
        return weights


def checked_classes(y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The classes and the codes of each column of y, with scikit-learn's errors and warnings.

    A column of few whole numbers gives rise to neither: it is not sorted to find out.
    """
    small = _small_classes(y[:, 0]) if y.shape[1] == 1 else None
    if small is not None and 2 * len(small[0]) < len(y):
        return [small]
    check_classification_targets(y)
    return [_small_classes(column) or np.unique(column, return_inverse=True) for column in y.T]


def _small_classes(column: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The classes and the code of each row, if classes are small whole numbers."""
    if column.dtype.kind not in "iuf" or not (column.min() >= 0 and column.max() < _MOST_COUNTED):
        return None
    codes = column.astype(np.intp)
    if not (codes == column).all():
        return None
    there = np.bincount(codes) > 0
    if not there.all():
        codes = (np.cumsum(there) - 1)[codes]
    return np.flatnonzero(there).astype(column.dtype), codes


class Limits(NamedTuple):
    """How far a tree may grow: what trees of one batch have in common."""

    max_features: int
    max_depth: int | None
    min_samples_split: int
    min_samples_leaf: int
    min_weight_leaf: float
    min_impurity_decrease: float
    max_leaf_nodes: int | None


def limits_of(tree: Any, n: int, d: int, weight: float) -> Limits:
    """The limits for n rows, of so much weight together, and d features."""
    leaf = tree.min_samples_leaf
    leaf = leaf if isinstance(leaf, Integral) else ceil(leaf * n)
    split = tree.min_samples_split
    split = split if isinstance(split, Integral) else max(2, ceil(split * n))
    return Limits(
        max_features=max_features_of(tree, d),
        max_depth=tree.max_depth,
        min_samples_split=max(split, 2 * leaf),
        min_samples_leaf=leaf,
        min_weight_leaf=float(tree.min_weight_fraction_leaf * weight),
        min_impurity_decrease=float(tree.min_impurity_decrease),
        max_leaf_nodes=tree.max_leaf_nodes,
    )


def max_features_of(tree: Any, d: int) -> int:
    """How many of d features each split of the tree is to look at."""
    given = tree.max_features
    if given is None:
        return d
    if isinstance(given, str):
        return max(1, int(np.sqrt(d) if given == "sqrt" else np.log2(d)))
    return given if isinstance(given, Integral) else max(1, int(given * d))


def constraints_of(tree: Any, d: int, targets: Targets) -> np.ndarray | None:
    """The monotonicity constraints as splits see them, checked."""
    if tree.monotonic_cst is None:
        return None
    if targets.values.shape[1] > 1:
        raise ValueError("Monotonicity constraints are not supported with multiple outputs.")
    constraints = np.asarray(tree.monotonic_cst)
    if constraints.shape[0] != d:
        raise ValueError(
            f"monotonic_cst has shape {constraints.shape[0]} but the input data X has {d} features."
        )
    if not np.isin(constraints, (-1, 0, 1)).all():
        raise ValueError(
            "monotonic_cst must be None or an array-like of -1, 0 or 1, but got "
            f"{np.unique(constraints)}"
        )
    constraints = constraints.astype(np.int8)
    if targets.n_classes is None:
        return constraints
    if targets.n_classes[0] > 2:
        raise ValueError(
            "Monotonicity constraints are not supported with multiclass classification"
        )
    # They are about the second class; what splits compare is the share of the first.
    return -constraints


def whole(weights: np.ndarray) -> np.ndarray:
    """The weights as counts (int32) if they are, else as float64."""
    if weights.dtype == np.int32:
        return weights
    return weights.astype(np.int32 if _are_counts(weights) else np.float64, copy=False)


def _are_counts(weights: np.ndarray) -> bool:
    # Most that are not are told by the first few.
    for part in (weights[:64], weights):
        if weights.dtype.kind == "f" and not (part == np.floor(part)).all():
            return False
        if part.max(initial=0) > np.iinfo(np.int32).max:
            return False
    return True


# Sums of squares up to here are exact.
_MOST_WEIGHT = 1 << 26


def check_level_targets(targets: Targets, weights: Any) -> None:
    """Refuse what trees with categorical features cannot be grown on."""
    if targets.values.shape[1] > 1:
        raise ValueError("With categorical features there can be one output.")
    if targets.n_classes is None or weights is None:
        return
    if whole(weights).dtype != np.int32 or weights.sum() > _MOST_WEIGHT:
        raise ValueError("With categorical features, weights of classes have to be whole numbers.")
