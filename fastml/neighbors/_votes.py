"""What the neighbours of a query make of their targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fastml._native.votes import Vote
from fastml._runtime.threads import n_threads


def outputs(model: Any) -> tuple[np.ndarray, list[np.ndarray]]:
    """The codes of all outputs, (n_samples, n_outputs), and the classes of each."""
    if model.outputs_2d_:
        return model._y, model.classes_
    return model._y.reshape(-1, 1), [model.classes_]


def winners(model: Any, X: Any) -> np.ndarray:
    """The class with most votes of the neighbours of each row of `X`, for each output."""
    codes, classes = outputs(model)
    found = _vote(model, X, "winner", codes, classes)
    if (found < 0).any():
        _refuse_weights()
    return found


def shares(model: Any, X: Any) -> list[np.ndarray]:
    """What each class has of these votes, for each output."""
    codes, classes = outputs(model)
    found = _vote(model, X, "share", codes, classes)
    if not callable(model.weights) and np.isnan(found).any():
        _refuse_weights()
    return np.split(found, np.cumsum([each.size for each in classes])[:-1], axis=1)


def means(model: Any, X: Any) -> np.ndarray:
    """The (weighted) means of the targets, (n_queries, n_outputs)."""
    y = model._y
    found = _vote(model, X, "mean", y.reshape(y.shape[0], -1), [])
    if model.weights in (None, "uniform") and y.dtype.kind == "f":
        return found.astype(y.dtype, copy=False)
    return found


def _vote(
    model: Any, X: Any, poll: str, targets: np.ndarray, classes: list[np.ndarray]
) -> np.ndarray:
    k = model.n_neighbors
    X = model._checked_queries(X, k)
    n = (model._fit_X if X is None else X).shape[0]
    searcher = model._searcher()
    vote = _prepared(model, searcher, poll, targets, classes, n)
    if not callable(model.weights):
        searcher.vote(X, k, vote, model.n_jobs)
        return vote.outcome
    distances, rows = searcher.nearest(X, k, True, model.n_jobs)
    weights = np.require(model.weights(distances), np.float64, "CA")
    if poll != "mean" and (weights == 0).all(axis=1).any():
        _refuse_weights()
    vote.count(rows, weights, 0, n_threads(model.n_jobs))
    return vote.outcome


def _prepared(
    model: Any,
    searcher: Any,
    poll: str,
    targets: np.ndarray,
    classes: list[np.ndarray],
    n_queries: int,
    may_be_none: bool = False,
) -> Vote:
    if callable(model.weights):
        weighting = "given"
    else:
        weighting = "same" if model.weights in (None, "uniform") else "inverse"
    targets = searcher.kept_targets(targets, np.float64 if poll == "mean" else np.int64)
    sizes = [each.size for each in classes]
    return Vote(poll, weighting, targets, sizes, n_queries, may_be_none=may_be_none)


def _refuse_weights() -> None:
    raise ValueError(
        "All neighbors of some sample is getting zero weights. Please modify 'weights' to "
        "avoid this case if you are using a user-defined function."
    )


def ball_shares(
    model: Any, X: Any, allow: Callable[[np.ndarray], None]
) -> tuple[list[np.ndarray], np.ndarray]:
    """What each class has of the votes within the radius, 0 if there are none, for each output.

    With it comes how many neighbours there are, unless `allow` objects to that.
    """
    codes, classes = outputs(model)
    found, counts = _vote_within(model, X, "share", codes, classes, allow)
    return np.split(found, np.cumsum([each.size for each in classes])[:-1], axis=1), counts


def ball_means(model: Any, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """The means of the targets within the radius, NaN if there are none, and how many there are."""
    y = model._y
    targets = y.reshape(y.shape[0], -1)
    found, counts = _vote_within(model, X, "mean", targets, [], lambda counts: None)
    if model.weights in (None, "uniform") and y.dtype.kind == "f":
        found = found.astype(y.dtype, copy=False)
    return found, counts


def _vote_within(
    model: Any,
    X: Any,
    poll: str,
    targets: np.ndarray,
    classes: list[np.ndarray],
    allow: Callable[[np.ndarray], None],
) -> tuple[np.ndarray, np.ndarray]:
    if X is not None:
        X = model._validated_queries(X)
    n = (model._fit_X if X is None else X).shape[0]
    searcher = model._searcher()
    vote = _prepared(model, searcher, poll, targets, classes, n, may_be_none=True)
    if not callable(model.weights):
        counts = searcher.vote_within(X, model.radius, vote, model.n_jobs)
        allow(counts)
        return vote.outcome, counts
    found = searcher.within(X, model.radius, True, False, model.n_jobs)
    counts = np.diff(found.offsets)
    allow(counts)
    weights = np.concatenate([np.empty(0), *model.weights(found.split(found.distances))])
    vote.count_lists(*found._replace(distances=weights).as_votes(), n_threads(model.n_jobs))
    return vote.outcome, counts
