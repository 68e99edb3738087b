"""Matrices whose squares are no numbers: they are decomposed over a power of two."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from fastml._native import scaling
from fastml._runtime.threads import n_threads
from fastml.preprocessing._matrix import readable


def total_square(X: Any) -> float:
    """The sum of the squares of all numbers of X, which may be infinite, or zero for rounding."""
    with np.errstate(over="ignore", invalid="ignore"):
        if issparse(X):
            return float(np.dot(X.data, X.data))
        count, mean, square = np.empty((3, X.shape[1]))
        scaling.moments(readable(X), None, count, mean, square, n_threads())
        return float(square.sum() + len(X) * (mean @ mean))


def exponent_of(total: float, X: Any) -> int:
    """Of the power of two by which X is to be divided, 0 if squares of its numbers are exact.

    total: of their squares, or of those less means, which tells whether to look, once X is known
    to be finite.
    """
    far = np.finfo(X.dtype).maxexp * 2 // 3
    if 2.0**-far < total < 2.0**far:
        return 0
    values = X.data if issparse(X) else X
    exponent = int(np.frexp(np.abs(values).max(initial=0))[1])
    return exponent if abs(exponent) > far // 2 else 0


def in_units(X: Any, exponent: int) -> Any:
    """X over 2**exponent; X itself where that is 1."""
    if exponent == 0:
        return X
    if not issparse(X):
        return np.ldexp(X, -exponent)
    X = X.copy()
    X.data = np.ldexp(X.data, -exponent)
    return X
