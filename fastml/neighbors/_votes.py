"""What the neighbours of a query make of their targets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.neighbors._base import _get_weights

from fastml._native import neighbors as native
from fastml.neighbors._search import Neighborhoods

# Entries of a table of neighbours that is kept at a time.
_TOGETHER = 1 << 20


def outputs(model: Any) -> tuple[np.ndarray, list[np.ndarray]]:
    """The codes of all outputs, (n_samples, n_outputs), and the classes of each."""
    if model.outputs_2d_:
        return model._y, model.classes_
    return model._y.reshape(-1, 1), [model.classes_]


def batches(model: Any, X: Any) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
    """The neighbours of the rows of `X`, and what they weigh (None: the same)."""
    uniform = model.weights in (None, "uniform")
    if X is not None and not hasattr(X, "__len__") and not hasattr(X, "shape"):
        X = np.asarray(X)
    n = model.n_samples_fit_ if X is None else _length(X)
    step = max(1, _TOGETHER // model.n_neighbors)
    if X is None or n <= step or callable(model.weights):
        step = n
    for start in range(0, n, max(1, step)):
        part = X if step == n else X[start : start + step]
        if uniform:
            yield model.kneighbors(part, return_distance=False), None
        else:
            distances, rows = model.kneighbors(part)
            yield rows, _get_weights(distances, model.weights)


def _length(X: Any) -> int:
    return X.shape[0] if hasattr(X, "shape") and len(X.shape) else len(X)


def check_weights(weights: np.ndarray | None) -> None:
    if weights is not None and (weights == 0).all(axis=1).any():
        raise ValueError(
            "All neighbors of some sample is getting zero weights. Please modify 'weights' to "
            "avoid this case if you are using a user-defined function."
        )


def tally(
    codes: np.ndarray, n_classes: int, rows: np.ndarray, weights: np.ndarray | None
) -> np.ndarray:
    """The votes for each class, (n_queries, n_classes)."""
    votes = np.zeros((rows.shape[0], n_classes))
    native.tally(np.ascontiguousarray(rows, np.int64), as_weights(weights), codes, votes)
    return votes


def winners(
    codes: np.ndarray, n_classes: int, rows: np.ndarray, weights: np.ndarray | None
) -> np.ndarray:
    """The class with most votes for each query, the lower one on ties."""
    winner = np.empty(rows.shape[0], dtype=np.int64)
    native.winners(
        np.ascontiguousarray(rows, np.int64), as_weights(weights), codes, n_classes, winner
    )
    return winner


def as_weights(weights: np.ndarray | None) -> np.ndarray | None:
    return None if weights is None else np.ascontiguousarray(weights, dtype=np.float64)


def ball_weights(found: Neighborhoods, weights: Any) -> np.ndarray | None:
    """What each of the neighbours within a radius weighs (None: the same)."""
    if weights in (None, "uniform"):
        return None
    if weights == "distance":
        with np.errstate(divide="ignore"):
            inverse = 1 / found.distances
        counts = np.diff(found.offsets)
        at_zero = np.isinf(inverse)
        queries = np.repeat(np.arange(counts.size), counts)
        decided = np.bincount(queries, at_zero, counts.size) > 0
        return np.where(decided[queries], at_zero, inverse)
    each = weights(found.split(found.distances))
    return np.concatenate([np.empty(0), *each])
