"""Votes of neighbours against a plain twin, from tables and from searches."""

from itertools import pairwise

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


def ragged_naive(poll, weighting, targets, offsets, rows, distances):
    """One query after the other; the means and shares of none are NaN and 0."""
    columns = sum(SIZES) if poll == "share" else targets.shape[1]
    expected = np.full((len(offsets) - 1, columns), 0.0 if poll == "share" else np.nan)
    for i, (a, b) in enumerate(pairwise(offsets)):
        if b > a:
            own = None if distances is None else distances[None, a:b]
            expected[i] = vote_naive(poll, weighting, targets, rows[None, a:b], own)[0]
    return expected


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("weighting", ["same", "inverse", "given"])
@pytest.mark.parametrize("poll", ["share", "mean"])
def test_lists(poll, weighting, threads):
    rng = np.random.default_rng(5)
    targets = targets_of(poll, 50)
    for counts in ([0], [1], [0, 3, 0], rng.integers(200, size=300), [5000, 2]):
        offsets = np.concatenate([[0], np.cumsum(counts)])
        rows = rng.integers(50, size=offsets[-1])
        distances = rng.integers(4, size=rows.size) + (0.5 if weighting == "given" else 0.0)
        vote = Vote(poll, weighting, targets, SIZES, len(counts), may_be_none=True)
        before = distances.copy()
        vote.count_lists(offsets, rows, None if weighting == "same" else distances, threads)
        expected = ragged_naive(poll, weighting, targets, offsets, rows, distances)
        np.testing.assert_allclose(vote.outcome, expected, rtol=1e-12, atol=1e-14)
        np.testing.assert_array_equal(distances, before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighting", ["same", "inverse"])
@pytest.mark.parametrize("poll", ["share", "mean"])
@pytest.mark.parametrize("radius", [0.9, 2.5, 50.0])  # none but copies, a few, all
@pytest.mark.parametrize("how", ["brute", "tree"])
def test_balls_vote_as_lists_do(how, radius, poll, weighting, dtype):
    rng = np.random.default_rng(2)
    X = rng.integers(9, size=(900, 3)).astype(dtype)
    targets = targets_of(poll, 900)
    tree = KDTree(X)
    for Q, itself in ((X[:1], False), (X[:600] + dtype(0.25), False), (X, True)):
        radii = np.full(len(Q), radius)
        radii[::7] = 0.0
        found = native.within(Q, X, "euclidean", itself, radii, True, False, 2)
        assert radius > 1 or 0 in np.diff(found[0]) or len(Q) == 1
        expected = ragged_naive(poll, weighting, targets, *found)
        outcomes = []
        for threads in (1, 2):
            vote = Vote(poll, weighting, targets, SIZES, len(Q), may_be_none=True)
            if how == "tree":
                counts = tree.vote_within(Q, radii, itself, vote, threads)
            else:
                counts = np.empty(len(Q), np.int64)
                native.within_vote(Q, X, "euclidean", itself, radii, vote, counts, threads)
            np.testing.assert_array_equal(counts, np.diff(found[0]))
            single = how == "tree" and dtype == np.float32 and weighting == "inverse"
            rtol = 1e-6 if single else 1e-12
            np.testing.assert_allclose(vote.outcome, expected, rtol=rtol, atol=rtol / 100)
            outcomes.append(vote.outcome)
        np.testing.assert_array_equal(*outcomes)


def test_balls_of_many_neighbours_vote_in_turns():
    rng = np.random.default_rng(7)
    X, y = np.arange(4000.0)[:, None], rng.integers(100, size=(4000, 1)).astype(np.float64)
    Q = rng.integers(4000, size=(3000, 1)) + 0.5
    radius = rng.random(3000) ** 2 * 4000
    vote, counts = Vote("mean", "same", y, [], 3000, may_be_none=True), np.empty(3000, np.int64)
    native.within_vote(Q, X, "euclidean", False, radius, vote, counts, 2)
    low = np.searchsorted(X[:, 0], Q[:, 0] - radius)
    high = np.searchsorted(X[:, 0], Q[:, 0] + radius, side="right")
    assert counts.sum() > 2 << 21  # several times what is held at once
    np.testing.assert_array_equal(counts, high - low)
    sums = np.concatenate([[0], np.cumsum(y[:, 0])])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(vote.outcome[:, 0], (sums[high] - sums[low]) / counts)


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
