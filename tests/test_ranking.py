"""The ranking kernel and the metrics of rankings, against plain twins."""

import numpy as np
import pytest
from fastml._native.ranking import rank_items
from scipy import sparse
from sklearn.metrics import ndcg_score

from fastml.metrics import map_at_k, ndcg_at_k, precision_at_k, recall_at_k


def rank_naive(U, V, bias, seen, k):
    scores = U.astype(np.float64) @ V.T.astype(np.float64)
    scores += 0 if bias is None else bias
    if seen is not None:
        scores[seen.nonzero()] = -np.inf
    items = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    scores = np.take_along_axis(scores, items, axis=1)
    return np.where(np.isinf(scores), -1, items), scores


def rank(U, V, bias, seen, k, threads):
    items, scores = np.empty((len(U), k), np.int32), np.empty((len(U), k), U.dtype)
    skipped = (None, None, None)
    if seen is not None:
        indptr = seen.indptr.astype(np.intp)
        skipped = indptr[:-1].copy(), indptr[1:].copy(), seen.indices.astype(np.int32)
    rank_items(U, V, bias, *skipped, items, scores, threads)
    return items, scores


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("n_users", [1, 2, 8, 50, 401])
@pytest.mark.parametrize("n_items", [1, 47, 600])
@pytest.mark.parametrize("f", [1, 5, 64, 1100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rank_items(dtype, f, n_items, n_users, threads):
    """Whole numbers, so that sums are exact and ties many."""
    rng = np.random.default_rng(f)
    U, V = (rng.integers(-3, 4, size=(n, f)).astype(dtype) for n in (n_users, n_items))
    bias = rng.integers(-3, 4, size=n_items).astype(dtype)
    seen = sparse.csr_matrix(rng.random((n_users, n_items)) < 0.3)
    for k in {1, min(n_items, 10), n_items}:
        for given in ((None, None), (bias, seen)):
            found = rank(U, V, *given, k, threads)
            for ours, naive in zip(found, rank_naive(U, V, *given, k), strict=True):
                np.testing.assert_array_equal(ours, naive)


@pytest.mark.parametrize("n_users", [2, 60])
@pytest.mark.parametrize("k", [3, 256, 400])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lists_that_overflow_many_times(dtype, k, n_users):
    """Scores of both signs, many equal, the best ones last."""
    rng = np.random.default_rng(0)
    U = rng.integers(1, 3, size=(n_users, 2)).astype(dtype)
    V = np.sort(rng.integers(-40, 40, size=(9_000, 2)), axis=0).astype(dtype)
    for items in (V, V[::-1].copy(), rng.permutation(V), np.zeros_like(V)):
        found = rank(U, items, None, None, k, 2)
        for ours, naive in zip(found, rank_naive(U, items, None, None, k), strict=True):
            np.testing.assert_array_equal(ours, naive)


def test_same_bits_for_any_number_of_threads():
    rng = np.random.default_rng(0)
    U, V = (rng.normal(size=(n, 50)).astype(np.float32) for n in (900, 2_000))
    first = rank(U, V, None, None, 20, 1)
    for threads in (2, 3, 5):
        for one, many in zip(first, rank(U, V, None, None, 20, threads), strict=True):
            np.testing.assert_array_equal(one, many)


def metrics_naive(liked, shown):
    """Precision, recall, NDCG and average precision of one user."""
    hits = [item in liked for item in shown]
    best = min(len(liked), len(shown))
    gains = [1 / np.log2(i + 2) for i in range(len(shown))]
    return (
        sum(hits) / len(shown),
        sum(hits) / len(liked),
        sum(g for g, hit in zip(gains, hits, strict=True) if hit) / sum(gains[:best]),
        sum(sum(hits[: i + 1]) / (i + 1) for i in range(len(shown)) if hits[i]) / best,
    )


METRICS = (precision_at_k, recall_at_k, ndcg_at_k, map_at_k)


@pytest.mark.parametrize("k", [None, 1, 5])
def test_metrics(k):
    rng = np.random.default_rng(0)
    relevant = sparse.random(50, 30, 0.1, format="csr", random_state=0)
    shown = np.argsort(rng.random((50, 30)), axis=1)[:, :8]
    shown[4, 5:] = -1
    liked = [set(relevant.indices[slice(*relevant.indptr[i : i + 2])]) for i in range(50)]
    users = [i for i in range(50) if liked[i]]
    expected = np.mean([metrics_naive(liked[i], shown[i, :k].tolist()) for i in users], axis=0)
    found = [metric(relevant, shown, k) for metric in METRICS]
    np.testing.assert_allclose(found, expected)
    names = np.array([f"item {i}" for i in range(30)], dtype=object)
    named = [{names[i] for i in ids} for ids in liked]
    found = [metric(named, np.where(shown < 0, None, names[shown]), k) for metric in METRICS]
    np.testing.assert_allclose(found, expected)


def test_ndcg_is_that_of_scikit_learn():
    rng = np.random.default_rng(1)
    relevant, scores = rng.random((20, 15)) < 0.3, rng.random((20, 15))
    relevant[:, 0] = True
    shown = np.argsort(-scores, axis=1)
    found = ndcg_at_k(sparse.csr_matrix(relevant), shown, 6)
    np.testing.assert_allclose(found, ndcg_score(relevant, scores, k=6))


def test_metrics_refuse_what_makes_no_sense():
    relevant = sparse.csr_matrix(np.eye(3))
    assert precision_at_k(sparse.csr_matrix((3, 3)), np.zeros((3, 1), int)) == 0
    for shown, k, message in (
        (np.zeros((2, 2), int), None, "shape"),
        (np.zeros((3, 2), int), 3, "k has to be"),
        (np.zeros((3, 2)), None, "integers"),
    ):
        with pytest.raises(ValueError, match=message):
            precision_at_k(relevant, shown, k)


def test_columns_beyond_the_matrix_are_liked_by_nobody():
    """Column 5 of 4 is not column 1 of the next row."""
    liked = sparse.csr_matrix(np.eye(3, 4))
    assert [metric(liked, [[5, 9], [10, 4], [0, 1]]) for metric in METRICS] == [0, 0, 0, 0]


@pytest.mark.parametrize("as_sets", [False, True])
def test_what_is_recommended_twice_counts_once(as_sets):
    liked = [{0, 1}, {2}] if as_sets else sparse.csr_matrix([[1, 1, 0], [0, 0, 1]])
    twice, once = [[0, 0, 1], [2, 2, 2]], [[0, -1, 1], [2, -1, -1]]
    for metric in METRICS:
        assert metric(liked, twice) == metric(liked, once) <= 1


def test_ids_of_several_types_stay_what_they_are():
    assert precision_at_k([{1, "a"}], [["a", 1]]) == 1
    assert precision_at_k([{"1", "a"}], [["a", 1]]) == 0.5


def test_a_dense_matrix_is_not_taken_for_collections():
    with pytest.raises(ValueError, match="sparse"):
        precision_at_k(np.eye(2, 3), [[0, 1], [1, 0]])
