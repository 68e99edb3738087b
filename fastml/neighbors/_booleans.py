"""Distances of boolean rows, from how many columns are true in both rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fastml.neighbors._kernels import batches_of


# Of d columns, `both` are true in both rows, `first` and `second` in one of them alone.
def _dice(both, first, second, d):
    return (first + second) / (2 * both + first + second)


def _jaccard(both, first, second, d):
    apart = first + second
    return np.where(apart == 0, 0, apart / (both + apart))


def _rogerstanimoto(both, first, second, d):
    apart = first + second
    return 2 * apart / (d + apart)


def _russellrao(both, first, second, d):
    return (d - both) / d


def _sokalsneath(both, first, second, d):
    apart = first + second
    return 2 * apart / (both + 2 * apart)


def _yule(both, first, second, d):
    apart = first * second
    return np.where(apart == 0, 0, 2 * apart / (both * (d - both - first - second) + apart))


BOOLEANS: dict[str, Callable[..., np.ndarray]] = {
    "dice": _dice,
    "jaccard": _jaccard,
    "rogerstanimoto": _rogerstanimoto,
    "russellrao": _russellrao,
    "sokalmichener": _rogerstanimoto,
    "sokalsneath": _sokalsneath,
    "yule": _yule,
}


def tables(metric: str, X: Any, Y: Any) -> Iterator[tuple[int, np.ndarray]]:
    """Distances of the rows of `X` to those of `Y`, by batches: (first row, distances)."""
    # Counts are exact in float32 up to 2**24 columns, and a product of matrices finds them.
    dtype = np.float32 if X.shape[1] < 1 << 24 else np.float64
    X, Y = ((np.asarray(Z) != 0).astype(dtype) for Z in (X, Y))
    trues = Y.sum(axis=1, dtype=np.float64)
    for batch in batches_of(X.shape[0], Y.shape[0]):
        both = (X[batch] @ Y.T).astype(np.float64)
        first = X[batch].sum(axis=1, dtype=np.float64)[:, None] - both
        with np.errstate(invalid="ignore"):
            yield batch.start, BOOLEANS[metric](both, first, trues - both, X.shape[1])
