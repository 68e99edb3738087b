"""The k-d tree against a naive twin: the same distances and indices, bit for bit."""

import pickle

import numpy as np
import pytest
from fastml._native.kdtree import KDTree

DTYPES = (np.float32, np.float64)
METRICS = ("euclidean", "manhattan", "chebyshev", "minkowski")
P = 3.0


def points_of(kind, n, d, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "grid":
        return rng.integers(0, 4, (n, d)).astype(dtype)
    if kind == "copies":  # of some many, of some none; -0 is 0
        points = np.round(8 * rng.normal(size=(max(1, n // 5), d))) / 8
        points = points[rng.integers(len(points), size=n) ** 2 % len(points)]
        return (points * rng.choice([1.0, -1.0], (n, 1)) * (np.arange(n) % 9 > 0)[:, None]).astype(
            dtype
        )
    if kind == "constant":
        return np.full((n, d), 2.5, dtype)
    if kind == "clusters":
        return (
            rng.normal(size=(5, d))[rng.integers(5, size=n)] + 1e-3 * rng.normal(size=(n, d))
        ).astype(dtype)
    return rng.random((n, d)).astype(dtype)


def distances_naive(X, Q, metric):
    """In the kernel's order of operations."""
    if metric == "minkowski":
        X, Q = X.astype(np.float64), Q.astype(np.float64)
    total = np.zeros((len(Q), len(X)), X.dtype)
    for j in range(X.shape[1]):
        t = np.abs(Q[:, j, None] - X[None, :, j])
        if metric == "chebyshev":
            total = np.maximum(total, t)
        else:
            total += t if metric == "manhattan" else t * t if metric == "euclidean" else t**P
    total = total.astype(np.float64)
    return (
        np.sqrt(total)
        if metric == "euclidean"
        else total ** (1 / P)
        if metric == "minkowski"
        else total
    )


def nearest_naive(X, Q, k, metric="euclidean"):
    distances = distances_naive(X, Q, metric)
    indices = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distances, indices, axis=1), indices


def nearest(tree, Q, k, threads=2, dtype=np.float64):
    n = tree.n if Q is None else len(Q)
    distances, indices = np.empty((n, k), dtype), np.empty((n, k), np.int64)
    tree.query(Q, k, distances, indices, threads)
    return distances, indices


def same(outcome, expected, metric="euclidean"):
    # A power is the mathematical library's, which rounds in its own way.
    if metric == "minkowski":
        np.testing.assert_allclose(outcome[0], expected[0], rtol=1e-13)
    else:
        np.testing.assert_array_equal(outcome[0], expected[0])
        np.testing.assert_array_equal(outcome[1], expected[1])


@pytest.mark.parametrize("kind", ["uniform", "grid", "copies", "constant", "clusters"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 6, 7, 8, 9, 20])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 300, 4500])
def test_nearest(n, d, dtype, kind):
    X = points_of(kind, n, d, dtype)
    Q = np.concatenate([X[:30], points_of("uniform", 30, d, dtype, 1)])
    tree = KDTree(X)
    distances, indices = nearest_naive(X, Q, n)
    for k in {1, 2, 10, 17, 40, min(n, 700)} & set(range(1, n + 1)):
        same(nearest(tree, Q, k), (distances[:, :k], indices[:, :k]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [1, 3, 11])
@pytest.mark.parametrize("metric", METRICS)
def test_metrics(metric, d, dtype):
    X = points_of("uniform", 700, d, dtype)
    Q = points_of("uniform", 40, d, dtype, 1)
    tree = KDTree(X, metric, P)
    for k in (1, 10, 300, 700):
        same(nearest(tree, Q, k), nearest_naive(X, Q, k, metric), metric)


@pytest.mark.parametrize("kind", ["uniform", "grid", "copies", "clusters"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [1, 2, 3, 8])
def test_own_points_and_many_queries(d, dtype, kind):
    X = points_of(kind, 1100, d, dtype)
    tree = KDTree(X)
    expected = nearest_naive(X, X, 260)
    order = np.random.default_rng(2).permutation(len(X))
    for k in (1, 7, 16, 30, 260):
        first = expected[0][:, :k], expected[1][:, :k]
        same(nearest(tree, None, k), first)
        # So many that they are put in order and go down in groups.
        distances, indices = nearest(tree, np.ascontiguousarray(X[order]), k)
        same((distances, indices), (first[0][order], first[1][order]))


@pytest.mark.parametrize("kind", ["uniform", "grid", "copies"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("metric", METRICS[:3])
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_radius(d, metric, dtype, kind):
    X = points_of(kind, 2000, d, dtype)
    Q = np.concatenate([X[:20], points_of("uniform", 20, d, dtype, 1)])
    radius = np.where(np.arange(40) % 2, 1.0, 0.25)
    tree = KDTree(X, metric)
    distances = distances_naive(X, Q, metric)
    within = distances <= radius[:, None]
    np.testing.assert_array_equal(tree.count_within(Q, radius, 2), within.sum(axis=1))
    indptr, indices, found = tree.query_radius(Q, radius, 2, sort=True)
    np.testing.assert_array_equal(np.diff(indptr), within.sum(axis=1))
    for i in range(len(Q)):
        rows = np.flatnonzero(within[i])
        rows = rows[np.argsort(distances[i, rows], kind="stable")]
        np.testing.assert_array_equal(indices[indptr[i] : indptr[i + 1]], rows)
        np.testing.assert_array_equal(found[indptr[i] : indptr[i + 1]], distances[i, rows])
    _, unsorted, nothing = tree.query_radius(Q, radius, 2, return_distance=False)
    assert nothing is None
    assert np.array_equal(np.sort(unsorted), np.sort(indices))
    assert len(tree.query_radius(Q[:1] + 100, 1.0, 1)[1]) == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_same_bits_for_any_number_of_threads(dtype):
    X = points_of("uniform", 100_000, 3, dtype)  # beyond what one thread splits alone
    Q = points_of("uniform", 3000, 3, dtype, 1)
    outcomes = []
    for threads in (1, 2, 5):
        tree = KDTree(X, n_threads=threads)
        outcomes.append([*nearest(tree, Q, 5, threads), tree.scanned(Q, 5, threads)])
    for outcome in outcomes[1:]:
        for one, many in zip(outcomes[0], outcome, strict=True):
            np.testing.assert_array_equal(one, many)
    same(nearest(tree, Q[:100], 5), nearest_naive(X, Q[:100], 5))


@pytest.mark.parametrize("dtype", DTYPES)
def test_equal_points_are_ranked_by_index_and_cost_little(dtype):
    tree = KDTree(np.ones((200_000, 2), dtype), n_threads=2)
    Q = np.ones((50, 2), dtype)
    _, indices = nearest(tree, Q, 20)
    np.testing.assert_array_equal(indices, np.tile(np.arange(20), (50, 1)))
    assert tree.scanned(Q, 20).max() < 100


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("metric", METRICS)
def test_rows_that_repeat_share_a_point(metric, dtype):
    X = points_of("copies", 3000, 3, dtype)
    Q = np.concatenate([X[:700], X[:40] + dtype(1 / 64)])
    tree = KDTree(X, metric, P, n_threads=2)
    assert tree.nbytes < 0.7 * KDTree(points_of("uniform", 3000, 3, dtype), metric, P).nbytes
    np.testing.assert_array_equal(tree.rows(), X)
    copy = pickle.loads(pickle.dumps(tree))
    for k in (1, 2, 9, 40, 400, 3000):
        expected = nearest_naive(X, Q, k, metric)
        same(nearest(tree, Q, k), expected, metric)
        same(nearest(copy, Q[-50:], k), tuple(part[-50:] for part in expected), metric)
    itself = np.empty((3000, 5)), np.empty((3000, 5), np.int64)
    tree.query(None, 5, *itself, 2, True)
    distances, indices = nearest_naive(X, X, 6, metric)
    own = indices == np.arange(3000)[:, None]
    own[~own.any(axis=1), 0] = True
    same(itself, (distances[~own].reshape(-1, 5), indices[~own].reshape(-1, 5)), metric)


def test_points_too_close_to_tell_apart():
    # Squares of differences underflow: all are at distance 0, and rank by index.
    X = np.repeat(np.arange(40.0)[::-1, None] * 1e-200, 50, axis=0)
    X = X[np.random.default_rng(0).permutation(len(X))]
    distances, indices = nearest(KDTree(X), np.array([[3e-200]]), 60)
    assert not distances.any()
    np.testing.assert_array_equal(indices, [np.arange(60)])


@pytest.mark.parametrize("kernel", ["gaussian", "exponential", "tophat", "linear"])
@pytest.mark.parametrize("weighted", [False, True])
def test_densities_count_copies(kernel, weighted):
    X = points_of("copies", 3000, 2, np.float64)
    weights = np.random.default_rng(1).random(3000) + 0.1 if weighted else None
    Q, sums = X[:50] + 0.03, np.empty(50)
    KDTree(X).log_kernel_sums(Q, kernel, 0.5, weights, sums, 2)
    u = distances_naive(X, Q, "euclidean") / 0.5
    kernels = {
        "gaussian": np.exp(-u * u / 2),
        "exponential": np.exp(-u),
        "tophat": u < 1,
        "linear": np.maximum(1 - u, 0),
    }[kernel]
    expected = kernels @ (np.ones(3000) if weights is None else weights)
    np.testing.assert_allclose(np.exp(sums), expected, rtol=1e-12)


def test_what_float32_cannot_square():
    rng = np.random.default_rng(3)
    for scale in (1e30, 1e-30, 1e-42):
        X = (rng.normal(size=(500, 3)) * scale).astype(np.float32)
        exact = distances_naive(X.astype(np.float64), X[:20].astype(np.float64), "euclidean")
        distances, indices = nearest(KDTree(X), X[:20], 5)
        np.testing.assert_array_equal(indices, np.argsort(exact, axis=1, kind="stable")[:, :5])
        np.testing.assert_array_equal(distances, np.sort(exact, axis=1)[:, :5])
    X = rng.random((500, 3)).astype(np.float32)
    far = np.full((1, 3), 1e30, np.float32)
    distances, _ = nearest(KDTree(X), far, 3)
    np.testing.assert_allclose(distances, np.sqrt(3) * 1e30, rtol=1e-6)


def test_distances_that_overflow_are_infinite_and_ranked_by_index():
    X = np.array([[1e308], [-1e308], [0.0], [-1.7e308]])
    distances, indices = nearest(KDTree(X), np.array([[1.7e308]]), 4)
    assert np.isinf(distances).all()
    np.testing.assert_array_equal(indices, [[0, 1, 2, 3]])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 333])
def test_pickle(dtype, n):
    X = points_of("uniform", n, 3, dtype)
    tree = KDTree(X, "manhattan")
    copy = pickle.loads(pickle.dumps(tree))
    np.testing.assert_array_equal(copy.rows(), X)
    assert (copy.metric, copy.n, copy.d, copy.dtype) == ("manhattan", n, 3, X.dtype)
    same(nearest(copy, X, 1), nearest(tree, X, 1))


def test_memory_and_work_grow_as_they_should():
    scanned = []
    for n in (10_000, 100_000):
        X = points_of("uniform", n, 3, np.float32)
        tree = KDTree(X, n_threads=2)
        assert tree.nbytes < 1.5 * n * (3 * 4 + 4) + 100_000
        scanned.append(tree.scanned(points_of("uniform", 200, 3, np.float32, 1), 10).mean())
    assert scanned[1] < 1.5 * scanned[0]


@pytest.mark.parametrize("out", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_either_precision_of_distances_and_no_queries(dtype, out):
    X = points_of("uniform", 50, 2, dtype)
    distances, _ = nearest(KDTree(X), X, 3, dtype=out)
    assert distances.dtype == out
    np.testing.assert_allclose(distances, nearest_naive(X, X, 3)[0], rtol=1e-6)
    assert nearest(KDTree(X), X[:0], 3)[1].shape == (0, 3)
    assert KDTree(X).query_radius(X[:0], 1.0, 1)[0].tolist() == [0]
