"""How good recommendations are, by what users turned out to like."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse


def precision_at_k(relevant: Any, recommended: Any, k: int | None = None) -> float:
    """Share of recommendations that are relevant, averaged over users.

    Parameters
    ----------
    relevant : sparse matrix of shape (n_users, n_items), or sequence of n_users collections
        What each user likes, of all items: the columns of a matrix that hold values above 0, or
        collections of ids. Users who like nothing are left out of the average.

    recommended : array-like of shape (n_users, n_recommended)
        The items recommended to each user, best first: columns of the matrix, or ids. What is
        there again counts once, at its first place.

    k : int, default=None
        How many of them count; all if None.

    Returns
    -------
    precision : float
        Relevant ones among the first k, over k; 0 if nobody likes anything.

    Examples
    --------
    >>> from fastml.metrics import precision_at_k
    >>> precision_at_k([{"tea", "milk"}, {"cocoa"}], [["tea", "rum"], ["cocoa", "tea"]])
    0.5
    """
    hits, _ = _hits(relevant, recommended, k)
    return _mean(hits.mean(axis=1))


def recall_at_k(relevant: Any, recommended: Any, k: int | None = None) -> float:
    """Share of what is relevant that is recommended, averaged over users.

    Parameters
    ----------
    relevant : sparse matrix of shape (n_users, n_items), or sequence of n_users collections
        What each user likes, of all items: the columns of a matrix that hold values above 0, or
        collections of ids. Users who like nothing are left out of the average.

    recommended : array-like of shape (n_users, n_recommended)
        The items recommended to each user, best first: columns of the matrix, or ids. What is
        there again counts once, at its first place.

    k : int, default=None
        How many of them count; all if None.

    Returns
    -------
    recall : float
        Relevant ones among the first k, over all relevant ones; 0 if nobody likes anything.

    Examples
    --------
    >>> from fastml.metrics import recall_at_k
    >>> recall_at_k([{"tea", "milk"}, {"cocoa"}], [["tea", "rum"], ["cocoa", "tea"]])
    0.75
    """
    hits, size = _hits(relevant, recommended, k)
    return _mean(hits.sum(axis=1) / size)


def ndcg_at_k(relevant: Any, recommended: Any, k: int | None = None) -> float:
    """Normalised discounted cumulative gain of recommendations, averaged over users.

    Parameters
    ----------
    relevant : sparse matrix of shape (n_users, n_items), or sequence of n_users collections
        What each user likes, of all items: the columns of a matrix that hold values above 0, or
        collections of ids. Users who like nothing are left out of the average.

    recommended : array-like of shape (n_users, n_recommended)
        The items recommended to each user, best first: columns of the matrix, or ids. What is
        there again counts once, at its first place.

    k : int, default=None
        How many of them count; all if None.

    Returns
    -------
    ndcg : float
        The sum of 1 / log2(1 + place) over the relevant ones among the first k, over what it is
        when the first places are all relevant; 0 if nobody likes anything.

    Examples
    --------
    >>> from fastml.metrics import ndcg_at_k
    >>> round(ndcg_at_k([{"tea"}, {"cocoa"}], [["rum", "tea"], ["cocoa", "tea"]]), 3)
    0.815
    """
    hits, size = _hits(relevant, recommended, k)
    gain = 1 / np.log2(np.arange(hits.shape[1]) + 2)
    best = np.cumsum(gain)[np.minimum(size, hits.shape[1]) - 1]
    return _mean(hits @ gain / best)


def map_at_k(relevant: Any, recommended: Any, k: int | None = None) -> float:
    """Mean average precision of recommendations.

    Parameters
    ----------
    relevant : sparse matrix of shape (n_users, n_items), or sequence of n_users collections
        What each user likes, of all items: the columns of a matrix that hold values above 0, or
        collections of ids. Users who like nothing are left out of the average.

    recommended : array-like of shape (n_users, n_recommended)
        The items recommended to each user, best first: columns of the matrix, or ids. What is
        there again counts once, at its first place.

    k : int, default=None
        How many of them count; all if None.

    Returns
    -------
    precision : float
        The precision up to each relevant one among the first k, summed, over the most there could
        be of these; 0 if nobody likes anything.

    Examples
    --------
    >>> from fastml.metrics import map_at_k
    >>> map_at_k([{"tea"}, {"cocoa"}], [["rum", "tea"], ["cocoa", "tea"]])
    0.75
    """
    hits, size = _hits(relevant, recommended, k)
    precision = hits.cumsum(axis=1) / (np.arange(hits.shape[1]) + 1)
    return _mean((precision * hits).sum(axis=1) / np.minimum(size, hits.shape[1]))


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else 0.0


def _hits(relevant: Any, recommended: Any, k: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Which recommendations are relevant, and how much is, for the users who like something."""
    shown = np.asarray(recommended)
    if shown.dtype.kind in "US" and not isinstance(recommended, np.ndarray):
        shown = np.asarray(recommended, dtype=object)  # of (1, "a"), the 1 is to stay a number
    n_users = relevant.shape[0] if sparse.issparse(relevant) else len(relevant)
    if shown.ndim != 2 or len(shown) != n_users or shown.shape[1] == 0:
        raise ValueError(
            f"Expected recommendations of shape ({n_users}, at least 1), got {shown.shape}."
        )
    if k is not None:
        if not 1 <= k <= shown.shape[1]:
            raise ValueError(f"k has to be from 1 to {shown.shape[1]}, got {k}.")
        shown = shown[:, :k]
    if sparse.issparse(relevant):
        hits, size = _hits_of_matrix(relevant.tocsr(), shown)
    else:
        if isinstance(relevant, np.ndarray) and relevant.dtype.kind in "fb":
            raise ValueError("A matrix of what users like has to be sparse.")
        liked = [set(ids) for ids in relevant]
        size = np.array([len(ids) for ids in liked], dtype=np.intp)
        hits = _hits_of_sets(liked, shown)
    return hits[size > 0], size[size > 0]


def _hits_of_sets(liked: list[set], shown: np.ndarray) -> np.ndarray:
    hits = np.zeros(shown.shape, bool)
    for left, items, row in zip(liked, shown.tolist(), hits, strict=True):
        for place, item in enumerate(items):
            if item in left:
                left.remove(item)  # counts once
                row[place] = True
    return hits


def _hits_of_matrix(relevant: Any, shown: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if shown.dtype.kind not in "iu":
        raise ValueError(f"Columns of a matrix are integers, got {shown.dtype}.")
    n, width = relevant.shape
    row = np.repeat(np.arange(n), np.diff(relevant.indptr))
    liked = relevant.data > 0
    keys = np.unique(row[liked] * width + relevant.indices[liked])
    size = np.bincount(keys // max(width, 1), minlength=n)
    wanted = np.arange(n)[:, np.newaxis] * width + shown
    at = np.minimum(keys.searchsorted(wanted), max(len(keys) - 1, 0))
    hits = keys[at] == wanted if len(keys) else np.zeros(shown.shape, bool)
    hits &= (shown >= 0) & (shown < width)
    _, first = np.unique(wanted[hits], return_index=True)
    once = np.zeros(hits.size, bool)
    once[np.flatnonzero(hits)[first]] = True
    return once.reshape(hits.shape), size
