"""Metrics of truth values: from how many columns are true in both rows, in one or in neither."""

from collections.abc import Callable
from typing import Any

import numpy as np

from fastml._native import pairwise as native
from fastml.metrics._rows import threads

# What they are called where they are compiled.
BOOLEAN = {name: name for name in native.Agreement.__members__} | {
    "sokalmichener": "rogerstanimoto"
}


def of_truth_values(metric: str, X: np.ndarray, Y: np.ndarray, w: Any = None) -> np.ndarray:
    """Distances of all pairs of rows of bools, of columns with the weights `w`."""
    if w is not None:
        return _of_weights(BOOLEAN[metric], X, Y, np.asarray(w, dtype=np.float64))
    x = _packed(X)
    y = x if X is Y else _packed(Y)
    D = np.empty((len(X), len(Y)))
    native.boolean_distances(x, y, X.shape[1], BOOLEAN[metric], D, threads())
    return D


def _packed(X: np.ndarray) -> np.ndarray:
    """Rows of bits, in whole words."""
    words = np.zeros((len(X), -(-X.shape[1] // 64)), np.uint64)
    packed = np.packbits(X, axis=1)
    words.view(np.uint8)[:, : packed.shape[1]] = packed
    return words


# Of the weight n of all columns, `both` is that of those true in both rows; `first` and `second`
# are those of one of them alone.
_WEIGHTED: dict[str, Callable[..., np.ndarray]] = {
    "dice": lambda n, both, first, second: (first + second) / (2 * both + first + second),
    "jaccard": lambda n, both, first, second: _unless_equal(first + second, both),
    "rogerstanimoto": lambda n, both, first, second: 2 * (first + second) / (n + first + second),
    "russellrao": lambda n, both, first, second: (n - both) / n,
    "sokalsneath": lambda n, both, first, second: (
        2 * (first + second) / (both + 2 * (first + second))
    ),
    "yule": lambda n, both, first, second: _unless_equal(
        2 * first * second, both * (n - both - first - second) - first * second
    ),
}


def _unless_equal(apart: np.ndarray, rest: np.ndarray) -> np.ndarray:
    return np.where(apart == 0, 0, apart / (rest + apart))


def _of_weights(metric: str, X: np.ndarray, Y: np.ndarray, w: np.ndarray) -> np.ndarray:
    # Three products, rather than differences of sums: what is nothing has to be 0.
    in_first, in_second, absent = X * w, Y.T.astype(np.float64), ~Y.T * 1.0
    both, first = in_first @ in_second, in_first @ absent
    second = (~X * w) @ in_second
    with np.errstate(divide="ignore", invalid="ignore"):
        return _WEIGHTED[metric](w.sum(), both, first, second)
