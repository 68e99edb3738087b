"""The best items for many users: fastml, implicit, and NumPy by blocks of users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..contest import Case, Contestant
from .als import one_thread


class Factors(NamedTuple):
    users: np.ndarray
    items: np.ndarray
    seen: sparse.csr_matrix
    k: int


def factors(n_users: int, n_items: int, f: int, k: int) -> Factors:
    """Items of unlike length, as popularity makes them, and fifty of them seen by each user."""
    rng = np.random.default_rng(0)
    U, V = (rng.normal(size=(n, f)).astype(np.float32) for n in (n_users, n_items))
    V *= rng.lognormal(sigma=0.5, size=(n_items, 1)).astype(np.float32)
    items = rng.integers(0, n_items, size=(n_users, 50))
    users = np.repeat(np.arange(n_users), 50)
    ones = np.ones(items.size, np.float32)
    seen = sparse.csr_matrix((ones, (users, items.ravel())), shape=(n_users, n_items))
    return Factors(U, V, seen, k)


def shortfall(data: Factors, items: np.ndarray) -> float:
    """How much less the recommended items score than the best would, for a sample of the users."""
    sample = slice(None, None, max(1, len(data.users) // 200))
    scores = data.users[sample].astype(np.float64) @ data.items.T.astype(np.float64)
    scores[data.seen[sample].nonzero()] = -np.inf
    best = -np.partition(-scores, data.k - 1, axis=1)[:, : data.k]
    found = np.take_along_axis(scores, np.asarray(items)[sample].astype(np.intp), axis=1)
    return float(np.abs(best.sum(axis=1) - found.sum(axis=1)).max())


def rank(data: Factors, threads: int) -> Callable[[], Any]:
    from fastml._native.ranking import rank_items

    data.seen.sort_indices()
    indptr = data.seen.indptr.astype(np.intp)
    seen = indptr[:-1].copy(), indptr[1:].copy(), data.seen.indices
    shape = (len(data.users), data.k)

    def call() -> Any:
        items, scores = np.empty(shape, np.int32), np.empty(shape, np.float32)
        rank_items(data.users, data.items, None, *seen, items, scores, threads)
        return items

    return call


def rank_by_implicit(data: Factors, threads: int) -> Callable[[], Any]:
    from implicit.cpu.als import AlternatingLeastSquares

    model = AlternatingLeastSquares(factors=data.users.shape[1], num_threads=threads)
    model.user_factors, model.item_factors = data.users, data.items
    users = np.arange(len(data.users))
    return lambda: model.recommend(users, data.seen, N=data.k, filter_already_liked_items=True)[0]


def rank_by_numpy(data: Factors, threads: int) -> Callable[[], Any]:
    def call() -> Any:
        found = []
        for begin in range(0, len(data.users), 512):
            scores = data.users[begin : begin + 512] @ data.items.T
            scores[data.seen[begin : begin + 512].nonzero()] = -np.inf
            top = np.argpartition(-scores, data.k - 1, axis=1)[:, : data.k]
            order = np.argsort(-np.take_along_axis(scores, top, axis=1), axis=1)
            found.append(np.take_along_axis(top, order, axis=1))
        return np.concatenate(found)

    return call


def case(n_users: int, n_items: int, f: int = 64, k: int = 10) -> Case:
    """The k best items that each user has not seen."""
    peers = (
        Contestant("implicit", rank_by_implicit, "implicit", one_thread),
        Contestant("numpy", rank_by_numpy, "numpy"),
        Contestant("fastml", rank, "fastml"),
    )
    params = {"n_users": n_users, "n_items": n_items, "f": f, "k": k}
    return Case("ranking", params, factors, peers, shortfall, "shortfall", atol=1e-2)


CASES = (case(5_000, 10_000),)
