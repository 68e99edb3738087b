"""Ratings to learn from, and ratings to test with."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from fastml.recommendation._ids import encode
from fastml.recommendation._ratings import columns_of


def split_ratings(
    pairs: Any,
    *,
    times: Any = None,
    test_size: float | int = 0.2,
    per_user: bool = True,
    random_state: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Choose ratings to learn from and ratings to test with, at random or by time.

    Parameters
    ----------
    pairs : array-like or frame of shape (n_ratings, 2)
        The user and the item of each rating.

    times : array-like of shape (n_ratings,), default=None
        When each rating was made, in anything that can be sorted. If given, the latest ones are
        held back; else they are drawn at random.

    test_size : float or int, default=0.2
        The share of ratings to hold back, or how many: of each user with `per_user`, else of all.

    per_user : bool, default=True
        Whether to hold back of each user's ratings, of which at least one stays to learn from.
        Without it, and with `times`, all ratings before a moment are learned from.

    random_state : int, RandomState instance or None, default=None
        Decides what is drawn, and which of several ratings at the same time comes first.

    Returns
    -------
    train, test : ndarray of shape (n_train,) and (n_test,)
        The indices of the ratings, ascending.

    Examples
    --------
    >>> from fastml.recommendation import split_ratings
    >>> pairs = [["ann", 1], ["ann", 2], ["ann", 3], ["bob", 1], ["bob", 3]]
    >>> train, test = split_ratings(pairs, times=[5, 9, 7, 1, 2], test_size=1)
    >>> test
    array([1, 4])
    """
    user, _ = columns_of(pairs)
    n = len(user)
    whole = isinstance(test_size, Integral)
    if not (isinstance(test_size, Real) and test_size > 0 and (whole or test_size < 1)):
        raise ValueError(f"test_size has to be a share or a number above 0, got {test_size!r}.")
    order = check_random_state(random_state).permutation(n)
    if times is not None:
        when = np.asarray(times)
        if when.shape != (n,):
            raise ValueError(f"Expected {n} times, one for each rating; got shape {when.shape}.")
        order = order[np.argsort(when[order], kind="stable")]
    group = encode(user)[1] if per_user else np.zeros(n, np.int32)
    order = order[np.argsort(group[order], kind="stable")]
    size = np.bincount(group)
    held = np.full(len(size), test_size) if whole else size * float(test_size)
    held = np.minimum(np.ceil(held - 1e-9).astype(np.intp), np.maximum(size - 1, 0))
    place = np.arange(n) - np.repeat(np.cumsum(size) - size, size)
    late = place >= np.repeat(size - held, size)
    return np.sort(order[~late]), np.sort(order[late])
