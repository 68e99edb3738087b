"""Votes of neighbours against a plain twin, from tables and from searches."""

import numpy as np
import pytest
import sklearn.neighbors as stock
from fastml._native.kdtree import KDTree
from fastml._native.votes import Vote

import fastml
from fastml import neighbors
from fastml._native import neighbors as native

SIZES = (3, 5)


def weights_naive(distances, weighting):
    if weighting != "inverse":
        return np.ones_like(distances) if weighting == "same" else distances
    with np.errstate(divide="ignore"):
        inverse = 1 / distances
    at_once = np.isinf(inverse)
    return np.where(at_once.any(axis=1, keepdims=True), at_once, inverse)


def vote_naive(poll, weighting, targets, rows, distances):
    weights = weights_naive(distances, weighting)
    if poll == "mean":
        sums = (targets[rows] * weights[:, :, None]).sum(axis=1)
        return sums / weights.sum(axis=1, keepdims=True)
    shares = []
    for j, size in enumerate(SIZES):
        votes = np.zeros((len(rows), size))
        for i, near in enumerate(rows):
            np.add.at(votes[i], targets[near, j], weights[i])
        shares.append(votes / votes.sum(axis=1, keepdims=True))
    if poll == "share":
        return np.hstack(shares)
    return np.stack([share.argmax(axis=1) for share in shares], axis=1)


def targets_of(poll, n, seed=0):
    rng = np.random.default_rng(seed)
    if poll == "mean":
        return rng.normal(size=(n, 2))
    return np.stack([rng.integers(size, size=n) for size in SIZES], axis=1)


def new_vote(poll, weighting, targets, n_queries):
    return Vote(poll, weighting, targets, [] if poll == "mean" else SIZES, n_queries)


def same(vote, expected):
    np.testing.assert_allclose(vote.outcome, expected, rtol=1e-13)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("weighting", ["same", "inverse", "given"])
@pytest.mark.parametrize("poll", ["winner", "share", "mean"])
def test_tables(poll, weighting, threads):
    rng = np.random.default_rng(1)
    targets = targets_of(poll, 50)
    for n, k in ((1, 1), (700, 7)):
        rows = rng.integers(50, size=(n, k))
        distances = rng.integers(4, size=(n, k)) + (weighting == "given") * 0.5
        vote = new_vote(poll, weighting, targets, n)
        before = distances.copy()
        vote.count(rows, None if weighting == "same" else distances, 0, threads)
        same(vote, vote_naive(poll, weighting, targets, rows, distances))
        np.testing.assert_array_equal(distances, before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighting", ["same", "inverse"])
@pytest.mark.parametrize("poll", ["winner", "share", "mean"])
@pytest.mark.parametrize("how", ["brute", "tree"])
def test_searches_vote_as_tables_do(how, poll, weighting, dtype):
    rng = np.random.default_rng(2)
    X = rng.integers(9, size=(900, 3)).astype(dtype)  # ties, and neighbours at distance 0
    targets = targets_of(poll, 900)
    tree = KDTree(X)
    for Q in (X[:1], X[:600], None):
        n, k, itself = (900 if Q is None else len(Q)), 6, Q is None
        rows, distances = np.empty((n, k), np.int64), np.empty((n, k))
        outcomes = []
        for threads in (1, 2):
            vote = new_vote(poll, weighting, targets, n)
            if how == "tree":
                tree.query(Q, k, distances, rows, threads, itself)
                tree.vote(Q, k, vote, threads)
            else:
                queries = X if itself else Q
                native.nearest(queries, X, "euclidean", itself, distances, rows, threads)
                native.vote(queries, X, "euclidean", itself, k, vote, threads)
            if itself:
                assert not (rows == np.arange(n)[:, None]).any()
            same(vote, vote_naive(poll, weighting, targets, rows, distances))
            outcomes.append(vote.outcome)
        np.testing.assert_array_equal(*outcomes)


def test_neighbours_that_weigh_nothing():
    targets = targets_of("winner", 4)
    rows, nothing = np.zeros((2, 3), np.int64), np.array([[0.0, 0, 0], [0, 1, 0]])
    vote = new_vote("winner", "given", targets, 2)
    vote.count(rows, nothing, 0, 1)
    np.testing.assert_array_equal(vote.outcome, [[-1, -1], targets[0]])
    vote = new_vote("share", "given", targets, 2)
    vote.count(rows, nothing, 0, 1)
    np.testing.assert_array_equal(np.isnan(vote.outcome).all(axis=1), [True, False])


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("n", [300, 9000])  # brute force, and a tree
def test_own_rows_leave_themselves_out(n, weights):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 2))
    y = rng.integers(3, size=n)
    with fastml.config_context(strict=True):
        for name in ("KNeighborsClassifier", "KNeighborsRegressor"):
            ours, theirs = (
                getattr(module, name)(weights=weights).fit(X, y) for module in (neighbors, stock)
            )
            np.testing.assert_allclose(ours.predict(None), theirs.predict(None), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.float16])
def test_means_have_the_dtype_that_scikit_learn_gives(dtype):
    X, y = np.arange(20.0)[:, None], np.arange(40).reshape(20, 2).astype(dtype)
    for weights in ("uniform", "distance", lambda d: 1 / (1 + d)):
        ours, theirs = (
            module.KNeighborsRegressor(weights=weights).fit(X, y).predict(X + 0.25)
            for module in (neighbors, stock)
        )
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-3 if dtype == np.float16 else 1e-6)
