"""The k-means kernels against their naive twins."""

import numpy as np
import pytest
import sklearn.cluster
from fastml._native.rows import Rows
from scipy import sparse
from sklearn.cluster import kmeans_plusplus as stock_kmeans_plusplus

from fastml._native import kmeans
from fastml.cluster import KMeans, kmeans_plusplus

N_ROWS = (1, 5, 47, 48, 301)
N_COLUMNS = (1, 2, 7, 16, 33, 130, 600)  # 600: beyond what a tile takes at once
DTYPES = (np.float32, np.float64)


def rows_of(n, d, dtype, kind="dense", offset=0.0, seed=0):
    """Rows (of the kernels') with a shift if dense, and the same rows less it in double."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if kind == "csr":
        X[rng.random(X.shape) < 0.6] = 0
        X = X.astype(dtype)
        return Rows(sparse.csr_matrix(X)), X.astype(np.float64)
    X = (X + offset).astype(dtype)
    shift = X.mean(axis=0)
    return Rows(X, shift), (X - shift).astype(np.float64)


def close(dtype):
    return {"rtol": 2e-5, "atol": 2e-5} if dtype == np.float32 else {"rtol": 1e-11, "atol": 1e-11}


def sqdist_naive(X, centers):
    return ((X[:, None, :] - centers[None].astype(np.float64)) ** 2).sum(axis=2)


def sums_naive(X, w, labels, k):
    sums, weights = np.zeros((k, X.shape[1])), np.zeros(k)
    for x, weight, label in zip(X, w, labels, strict=True):
        sums[label] += weight * x
        weights[label] += weight
    return sums, weights


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", N_COLUMNS)
@pytest.mark.parametrize("n", N_ROWS)
@pytest.mark.parametrize("k", [1, 3, 8, 65])
def test_assign(n, d, k, dtype, kind, threads):
    rows, X = rows_of(n, d, dtype, kind)
    rng = np.random.default_rng(1)
    centers = rng.normal(size=(k, d)).astype(dtype)
    w = rng.random(n).astype(dtype)
    labels, old = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    sums, weights = np.full((k, d), np.nan), np.full(k, np.nan)

    assert kmeans.assign(rows, centers, w, labels, sums, weights, threads) == n
    assert kmeans.assign(rows, centers, w, labels, None, None, threads) == 0
    assert kmeans.assign(rows, centers, None, old, None, None, threads) == n
    np.testing.assert_array_equal(labels, old)

    sqdist = sqdist_naive(X, centers)
    chosen = sqdist[np.arange(n), labels]
    size = (X**2).sum(axis=1) + (centers.astype(np.float64) ** 2).sum(axis=1).max()
    assert np.all(chosen - sqdist.min(axis=1) <= 8 * np.finfo(dtype).eps * size)
    expected_sums, expected_weights = sums_naive(X, w, labels, k)
    np.testing.assert_allclose(sums, expected_sums, **close(dtype))
    np.testing.assert_allclose(weights, expected_weights, rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_ties_go_to_the_lower_index(dtype):
    X = np.zeros((50, 3), dtype)
    centers = np.ones((70, 3), dtype)
    labels = np.full(50, -1, np.int32)
    kmeans.assign(Rows(X), centers, None, labels, None, None, 1)
    assert (labels == 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(20_000, 3, 7), (3000, 40, 500), (5000, 1500, 12)])
def test_sums_of_many_rows(shape, dtype):
    """Few sums kept a block, many by sorting, and columns in strips."""
    n, d, k = shape
    rows, X = rows_of(n, d, dtype)
    labels = np.random.default_rng(2).integers(0, k, n).astype(np.int32)
    sums, weights = np.empty((k, d)), np.empty(k)
    kmeans.sum_by_label(rows, None, labels, sums, weights, 2)
    expected = np.zeros((k, d))
    np.add.at(expected, labels, X)
    np.testing.assert_allclose(
        sums, expected, rtol=1e-4 if dtype == np.float32 else 1e-10, atol=1e-3
    )
    np.testing.assert_array_equal(weights, np.bincount(labels, minlength=k))

    centers = X[:k].astype(dtype)
    assigned = np.empty(n, np.int32)
    kmeans.assign(rows, centers, None, assigned, sums, weights, 2)
    again, again_weights = np.empty_like(sums), np.empty_like(weights)
    kmeans.sum_by_label(rows, None, assigned, again, again_weights, 2)
    np.testing.assert_allclose(sums, again, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(weights, again_weights)


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", N_COLUMNS)
def test_inertia(d, dtype, kind):
    n, k = 301, 9
    rows, X = rows_of(n, d, dtype, kind)
    rng = np.random.default_rng(3)
    centers, w = rng.normal(size=(k, d)).astype(dtype), rng.random(n).astype(dtype)
    labels = rng.integers(0, k, n).astype(np.int32)
    sqdist = np.empty(n, dtype)
    found = kmeans.inertia(rows, centers, w, labels, sqdist, 2)
    expected = sqdist_naive(X, centers)[np.arange(n), labels]
    np.testing.assert_allclose(sqdist, expected, **close(dtype))
    np.testing.assert_allclose(found, expected @ w.astype(np.float64), rtol=1e-5)
    unweighted = kmeans.inertia(rows, centers, None, labels, None, 1)
    np.testing.assert_allclose(unweighted, expected.sum(), rtol=1e-5)


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", N_COLUMNS)
@pytest.mark.parametrize("k", [1, 8, 25, 65])
def test_distances(d, k, dtype, kind):
    rows, X = rows_of(150, d, dtype, kind)
    centers = np.random.default_rng(4).normal(size=(k, d)).astype(dtype)
    centers[0] = X[3].astype(dtype)
    out = np.full((150, k), np.nan, dtype)
    kmeans.distances(rows, centers, out, 2)
    np.testing.assert_allclose(out, np.sqrt(sqdist_naive(X, centers)), **close(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_distances_far_from_the_origin(dtype):
    """What |x|² - 2xc + |c|² loses there is taken again by differences."""
    rows, X = rows_of(200, 20, dtype, offset=1e3)
    tight = (X[:5] + 1e-3).astype(dtype)
    out = np.empty((200, 5), dtype)
    kmeans.distances(rows, tight, out, 1)
    expected = np.sqrt(sqdist_naive(X, tight))
    np.testing.assert_allclose(out, expected, rtol=1e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_column_moments(dtype, kind):
    rows, _ = rows_of(5000, 13, dtype, kind, offset=100)
    X = rows.X.toarray() if kind == "csr" else rows.X
    mean, variance = np.empty(13), np.empty(13)
    kmeans.column_moments(rows, mean, variance, 2)
    np.testing.assert_allclose(mean, X.mean(axis=0, dtype=np.float64), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(variance, X.var(axis=0, dtype=np.float64), rtol=1e-9)


class SeedsNaive:
    def __init__(self, X, w):
        self.X, self.w = X, np.ones(len(X)) if w is None else w.astype(np.float64)
        self.closest = np.full(len(X), np.inf)

    def to(self, row):
        return np.minimum(self.closest, ((self.X - self.X[row]) ** 2).sum(axis=1))

    def accept(self, row):
        self.closest = self.to(row)
        return self.w @ self.closest

    def gains(self, rows):
        return np.array([self.w @ (self.closest - self.to(row)) for row in rows])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["dense", "sketched", "csr"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", N_COLUMNS)
@pytest.mark.parametrize("n", [1, 49, 700])
def test_seeds(n, d, dtype, kind, weighted):
    rows, X = rows_of(n, d, dtype, "csr" if kind == "csr" else "dense")
    rng = np.random.default_rng(5)
    w = rng.random(n).astype(dtype) if weighted else None
    seeds, naive = kmeans.Seeds(rows, w, kind == "sketched", 2), SeedsNaive(X, w)
    rtol = 1e-4 if dtype == np.float32 else 1e-11
    potential = naive.accept(0)
    tolerance = {"rtol": rtol, "atol": rtol * potential}  # a gain is a difference of potentials
    np.testing.assert_allclose(seeds.accept(0), potential, **tolerance)
    for n_candidates in (1, 8, kmeans.MAX_SKETCHED):
        candidates = rng.integers(0, n, n_candidates).astype(np.intp)
        gain = np.empty(n_candidates)
        seeds.gains(candidates, gain)
        # Of long rows in double precision gains are as exact as it takes to tell the largest.
        exact = naive.gains(candidates)
        np.testing.assert_allclose(gain, exact, **tolerance | {"atol": max(rtol, 1e-6) * potential})
        if dtype == np.float64:
            assert exact[gain.argmax()] >= exact.max() * (1 - 1e-11)
        for candidate in {n_candidates - 1, n_candidates // 2}:
            left = seeds.accept(candidates[candidate], candidate)
            np.testing.assert_allclose(left, naive.accept(candidates[candidate]), **tolerance)


@pytest.mark.parametrize("n_local_trials", [None, 1, kmeans.MAX_SKETCHED, kmeans.MAX_SKETCHED + 1])
def test_seeds_are_scikit_learns(n_local_trials):
    X = np.random.default_rng(11).normal(size=(14_000, 20))  # enough for codes
    X[:5_000] += 3
    arguments = {"random_state": 0, "n_local_trials": n_local_trials}
    ours, theirs = (
        plusplus(X, 20, **arguments)[1] for plusplus in (kmeans_plusplus, stock_kmeans_plusplus)
    )
    np.testing.assert_array_equal(ours, theirs)


def test_codes_take_few_candidates():
    seeds = kmeans.Seeds(Rows(np.ones((50, 20))), None, True, 1)
    many = np.zeros(kmeans.MAX_SKETCHED + 1, dtype=np.intp)
    with pytest.raises(ValueError, match="at a time"):
        seeds.gains(many, np.empty(many.size))


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e30, 1e300])
def test_sketch_of_any_scale(scale):
    X = np.random.default_rng(6).normal(size=(200, 20))
    X[:, 3] = 0.5  # constant
    X[:, 4] *= 1e-9
    with np.errstate(all="ignore"):
        plain = kmeans.Seeds(Rows(X * scale), None, False, 1)
        sketched = kmeans.Seeds(Rows(X * scale), None, True, 1)
    candidates, a, b = np.arange(8, dtype=np.intp), np.empty(8), np.empty(8)
    np.testing.assert_allclose(sketched.accept(11), plain.accept(11), rtol=1e-12)
    plain.gains(candidates, a)
    sketched.gains(candidates, b)
    np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("d", [20, 70])
def test_sketch_with_outliers(d):
    """Codes are clipped there; the distances that come out are not."""
    X = np.random.default_rng(9).normal(size=(20_000, d))
    X[[7, 4001, 19_999]] *= [[1e3], [1e8], [1e160]]
    plain = kmeans.Seeds(Rows(X), None, False, 1)
    sketched = kmeans.Seeds(Rows(X), None, True, 1)
    candidates, a, b = np.array([5, 7, 4001, 0], dtype=np.intp), np.empty(4), np.empty(4)
    np.testing.assert_allclose(sketched.accept(19_999), plain.accept(19_999), rtol=1e-12)
    plain.gains(candidates, a)
    sketched.gains(candidates, b)
    np.testing.assert_allclose(a, b, rtol=1e-12)
    for row in (4001, 7, 3):
        np.testing.assert_allclose(sketched.accept(row), plain.accept(row), rtol=1e-12)


def test_gains_that_single_precision_does_not_tell_apart():
    rng = np.random.default_rng(10)
    X = rng.normal(size=(3_000, 100))
    X[1:9] = X[0] + 1e-10 * rng.normal(size=(8, 100))
    plain, sketched = (kmeans.Seeds(Rows(X), None, kind, 2) for kind in (False, True))
    candidates, a, b = np.array([0, 1, 2, 3, 4, 3], dtype=np.intp), np.empty(6), np.empty(6)
    assert plain.accept(2_000) == pytest.approx(sketched.accept(2_000), rel=1e-13)
    plain.gains(candidates, a)
    sketched.gains(candidates, b)
    np.testing.assert_allclose(a, b, rtol=1e-13)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_search_adds_as_cumsum_does(dtype, weighted):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(20_000, 2)).astype(dtype)
    w = rng.random(20_000).astype(dtype) if weighted else None
    seeds = kmeans.Seeds(Rows(X), w, False, 1)
    total = seeds.accept(5)
    closest = np.zeros(len(X), dtype)
    for p in range(2):  # in the kernel's order of operations
        closest += (X[:, p] - X[5, p]) ** 2
    running = np.cumsum(closest if w is None else w * closest)
    targets = np.sort(rng.uniform(size=50)) * total
    targets[-1] = total * 2
    found = np.empty(50, np.intp)
    seeds.search(targets, found)
    expected = np.minimum(np.searchsorted(running, targets), len(X) - 1)
    # Where a multiply-add is fused, squares differ by a rounding, and the next row may be found.
    assert np.abs(found - expected).max() <= 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_search_finds_the_first_row_that_reaches_a_target(dtype):
    """Targets on the edges between rows, where an estimate of the running sum will not do."""
    X = np.random.default_rng(8).integers(0, 4, size=(5000, 2)).astype(dtype)
    seeds = kmeans.Seeds(Rows(X), None, False, 1)
    total = seeds.accept(5)
    running = np.cumsum(((X - X[5]) ** 2).sum(axis=1))
    assert total == running[-1]
    targets = np.concatenate([[0.0], running[::97], [total]]).astype(np.float64)
    found = np.empty(len(targets), np.intp)
    seeds.search(targets, found)
    np.testing.assert_array_equal(found, np.searchsorted(running, targets))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_same_bits_for_any_number_of_threads(dtype, kind):
    rows, _ = rows_of(20_000, 30, dtype, kind)
    centers = np.random.default_rng(8).normal(size=(40, 30)).astype(dtype)
    outcomes = []
    for threads in (1, 2, 3, 5):
        labels, out = np.empty(20_000, np.int32), np.empty((20_000, 40), dtype)
        sums, weights, moments = np.empty((40, 30)), np.empty(40), np.empty((2, 30))
        kmeans.assign(rows, centers, None, labels, sums, weights, threads)
        inertia = kmeans.inertia(rows, centers, None, labels, None, threads)
        kmeans.distances(rows, centers, out, threads)
        kmeans.column_moments(rows, *moments, threads)
        outcomes.append((labels, sums, weights, np.array(inertia), out, moments))
    for outcome in outcomes[1:]:
        for one, many in zip(outcomes[0], outcome, strict=True):
            np.testing.assert_array_equal(one, many)


def test_unaligned_rows_are_copied():
    X = np.frombuffer(b"x" + np.ones((50, 3)).tobytes(), dtype=np.float64, offset=1).reshape(50, 3)
    assert not X.flags.aligned
    rows = Rows(X)
    assert rows.X.flags.aligned
    np.testing.assert_array_equal(rows.X, X)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("kind", [np.asarray, np.float32, np.asfortranarray, sparse.csr_matrix])
def test_what_is_not_finite_is_refused_as_scikit_learn_refuses_it(kind, value):
    X = np.random.default_rng(0).normal(size=(20, 3))
    X[3, 1] = value
    messages = []
    for estimator in (KMeans, sklearn.cluster.KMeans):
        with pytest.raises(ValueError, match="Input X contains") as caught:
            estimator(2, n_init=1).fit(kind(X))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_dtypes_must_agree():
    rows = Rows(np.zeros((4, 2), np.float32))
    with pytest.raises(TypeError, match="dtype"):
        kmeans.assign(rows, np.zeros((1, 2)), None, np.zeros(4, np.int32), None, None, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_more_clusters_than_distinct_rows_lose_nothing(dtype):
    X = np.repeat(np.random.default_rng(0).normal(size=(2, 3)), 10, axis=0).astype(dtype)
    for seed in range(8):
        for init in ("k-means++", "random"):
            model = KMeans(15, init=init, random_state=seed).fit(X)
            assert model.inertia_ < 1e-9
