"""Kernel k-means: its kernels against naive twins, and the whole against k-means and itself."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans as StockKMeans
from sklearn.datasets import make_circles
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import pairwise_kernels

import fastml
from fastml._native import kernel_kmeans
from fastml.cluster import KernelKMeans

DTYPES = (np.float32, np.float64)


def groups(n=300, d=4, k=5, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    centers = rng.normal(scale=3, size=(k, d))
    return (centers[rng.integers(k, size=n)] + rng.normal(size=(n, d))).astype(dtype)


def one_hot(labels, w, k):
    H = np.zeros((len(labels), k))
    H[np.arange(len(labels)), labels] = w
    return H


def sqdist_naive(K, labels, w, k):
    """Squared distances of all rows to the means of the clusters, from the definition."""
    H = one_hot(labels, w, k)
    H /= H.sum(axis=0)
    return K.diagonal()[:, None] - 2 * K @ H + ((H.T @ K) * H.T).sum(axis=1)


def fit_naive(K, labels, w, k):
    for _ in range(100):
        assert np.bincount(labels, minlength=k).all()  # the twin knows no empty clusters
        nearest = sqdist_naive(K, labels, w, k).argmin(axis=1)
        if (nearest == labels).all():
            return labels, (w * sqdist_naive(K, labels, w, k).min(axis=1)).sum()
        labels = nearest
    raise AssertionError("no convergence")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "k"), [(1, 1), (7, 3), (257, 2), (301, 70), (3000, 5)])
def test_move_rows(n, k, dtype, threads):
    rng = np.random.default_rng(n)
    K = rng.normal(size=(n, n)).astype(dtype)
    labels, w = rng.integers(0, k, n).astype(np.int32), rng.random(n)
    sums = np.zeros((k, n))
    kernel_kmeans.move_rows(K, np.arange(n), None, labels, w, sums, threads)
    expected = one_hot(labels, w, k).T @ K.astype(np.float64)
    np.testing.assert_allclose(sums, expected, rtol=1e-12, atol=1e-11)
    now = rng.integers(0, k, n).astype(np.int32)
    rows = np.flatnonzero(now != labels)
    kernel_kmeans.move_rows(K, rows, labels[rows], now[rows], w[rows], sums, threads)
    expected = one_hot(now, w, k).T @ K.astype(np.float64)
    np.testing.assert_allclose(sums, expected, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (7, 3), (257, 2), (301, 70), (20_000, 5)])
def test_nearest_centers(n, k, threads):
    rng = np.random.default_rng(k)
    sums, norm, scale = rng.normal(size=(k, n)), rng.random(k), rng.random(k)
    if k > 2:
        norm[1] = np.inf
        sums[2], norm[2], scale[2] = sums[0], norm[0], scale[0]  # ties go to the lower index
    labels, closeness = np.full(n, -1, np.int32), np.empty(n)
    assert kernel_kmeans.nearest_centers(sums, norm, scale, labels, closeness, threads) == n
    assert kernel_kmeans.nearest_centers(sums, norm, scale, labels, closeness, threads) == 0
    expected = norm[:, None] - 2 * scale[:, None] * sums
    np.testing.assert_array_equal(labels, expected.argmin(axis=0))
    np.testing.assert_allclose(closeness, expected.min(axis=0), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("max_gram_mb", [1024, 0], ids=["kept", "streamed"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kernel", ["rbf", "linear", "polynomial", "laplacian", "cosine"])
def test_fit_equals_the_naive_one(kernel, dtype, weighted, max_gram_mb):
    X, k = groups(dtype=dtype), 5
    rng = np.random.default_rng(1)
    w = rng.random(len(X)) if weighted else np.ones(len(X))
    start = cdist(X, X[:k]).argmin(axis=1)
    K = pairwise_kernels(X.astype(np.float64), metric=kernel)
    labels, inertia = fit_naive(K, start, w, k)
    model = KernelKMeans(k, kernel=kernel, init=start, tol=0, max_gram_mb=max_gram_mb)
    with fastml.config_context(strict=True):
        model.fit(X, sample_weight=w if weighted else None)
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_allclose(model.inertia_, inertia, rtol=1e-4 if dtype == np.float32 else 1e-9)
    np.testing.assert_array_equal(model.predict(X), labels)
    expected = np.sqrt(np.maximum(sqdist_naive(K, labels, w, k), 0))
    atol = 2e-3 if dtype == np.float32 else 1e-7
    np.testing.assert_allclose(model.transform(X), expected, rtol=1e-4, atol=atol * K.max())
    np.testing.assert_allclose(model.score(X, sample_weight=w), -model.inertia_, rtol=1e-3)


@pytest.mark.parametrize("init", ["k-means++", "given"])
@pytest.mark.parametrize("seed", range(3))
def test_linear_kernel_is_k_means(init, seed):
    X = groups(500, seed=seed)
    init = X[:5] if init == "given" else init
    expected = StockKMeans(5, init=init, n_init=1, tol=0, random_state=seed).fit(X)
    for max_gram_mb in (1024, 0):
        model = KernelKMeans(
            5, kernel="linear", init=init, tol=0, max_gram_mb=max_gram_mb, random_state=seed
        ).fit(X)
        np.testing.assert_array_equal(model.labels_, expected.labels_)
        np.testing.assert_allclose(model.inertia_, expected.inertia_)
        np.testing.assert_allclose(model.transform(X), expected.transform(X), rtol=1e-6)
        assert model.n_iter_ == expected.n_iter_
        np.testing.assert_allclose(model.dual_coef_ @ X, expected.cluster_centers_)


def test_rings():
    X, ring = make_circles(600, factor=0.3, noise=0.05, random_state=0)
    model = KernelKMeans(2, gamma=2, n_init=5, random_state=0).fit(X)
    assert adjusted_rand_score(ring, model.labels_) == 1
    assert adjusted_rand_score(ring, StockKMeans(2, n_init=1, random_state=0).fit_predict(X)) < 0.1


def linear(x, y):
    return float(x @ y)


@pytest.mark.parametrize("max_gram_mb", [1024, 0], ids=["kept", "streamed"])
def test_every_kind_of_kernel(max_gram_mb):
    X = groups(120)
    start = np.random.default_rng(0).integers(0, 3, len(X))
    params = {"init": start, "tol": 0, "max_gram_mb": max_gram_mb}
    scalar = fastml.jit.kernel(linear)
    kernels = [DotProduct(sigma_0=0), linear, scalar]
    expected = KernelKMeans(3, kernel="linear", **params).fit(X)
    for kernel in kernels:
        model = KernelKMeans(3, kernel=kernel, **params).fit(X)
        np.testing.assert_array_equal(model.labels_, expected.labels_)
        np.testing.assert_allclose(model.inertia_, expected.inertia_)
        np.testing.assert_array_equal(model.predict(X), expected.predict(X))
        np.testing.assert_allclose(model.transform(X), expected.transform(X), atol=1e-6)
    rbf = KernelKMeans(3, gamma=0.125, **params).fit(X)
    model = KernelKMeans(3, kernel=RBF(2.0), **params).fit(X)
    np.testing.assert_array_equal(model.labels_, rbf.labels_)
    np.testing.assert_allclose(model.inertia_, rbf.inertia_)


def test_precomputed():
    X, new = groups(200), groups(50, seed=3)
    rbf = KernelKMeans(4, gamma=0.2, random_state=0).fit(X)
    K = pairwise_kernels(X, metric="rbf", gamma=0.2)
    model = KernelKMeans(4, kernel="precomputed", random_state=0).fit(K)
    np.testing.assert_array_equal(model.labels_, rbf.labels_)
    np.testing.assert_allclose(model.inertia_, rbf.inertia_)
    across = pairwise_kernels(new, X, metric="rbf", gamma=0.2)
    np.testing.assert_array_equal(model.predict(across), rbf.predict(new))
    np.testing.assert_allclose(model.fit_transform(K), rbf.transform(X), atol=1e-6)
    with pytest.raises(ValueError, match="Use fit_transform"):
        model.transform(across)
    with pytest.raises(ValueError, match="square"):
        model.fit(across)


@pytest.mark.parametrize("max_gram_mb", [1024, 0], ids=["kept", "streamed"])
@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csr_array])
def test_sparse_rows(make, max_gram_mb):
    X = groups()
    X[abs(X) < 1] = 0
    dense = KernelKMeans(4, gamma=0.1, random_state=0).fit(X)
    model = KernelKMeans(4, gamma=0.1, random_state=0, max_gram_mb=max_gram_mb).fit(make(X))
    np.testing.assert_array_equal(model.labels_, dense.labels_)
    np.testing.assert_allclose(model.transform(make(X)), dense.transform(X), atol=1e-6)


@pytest.mark.parametrize("init", ["k-means++", "given"])
def test_weights_are_repeated_rows(init):
    X = groups()
    w = np.random.default_rng(1).integers(0, 4, len(X))
    kept, n = X[w > 0], w[w > 0]
    init = X[:5] if init == "given" else init
    weighted = KernelKMeans(5, init=init, random_state=0).fit(kept, sample_weight=n)
    repeated = KernelKMeans(5, init=init, random_state=0).fit(np.repeat(X, w, axis=0))
    np.testing.assert_array_equal(np.repeat(weighted.labels_, n), repeated.labels_)
    np.testing.assert_allclose(weighted.inertia_, repeated.inertia_)
    with_zeros = KernelKMeans(5, init=X[:5]).fit(X, sample_weight=w)
    without = KernelKMeans(5, init=X[:5]).fit(kept, sample_weight=n)
    np.testing.assert_array_equal(with_zeros.labels_[w > 0], without.labels_)


def test_inertia_never_rises(capsys):
    KernelKMeans(8, init="random", n_init=3, random_state=0, tol=0, verbose=1).fit(groups(1000))
    runs = capsys.readouterr().out.split("Initialization complete\n")[1:]
    for run in runs:
        lines = [line for line in run.splitlines() if "inertia" in line]
        inertias = np.array([float(line.rpartition(" ")[2]) for line in lines])
        assert len(inertias) > 3
        assert np.all(np.diff(inertias) <= 1e-12 * inertias[0])


def test_a_kernel_that_is_not_positive_definite_ends():
    rng = np.random.default_rng(0)
    K = rng.normal(size=(60, 60))
    model = KernelKMeans(4, kernel="precomputed", tol=0, random_state=0).fit(K + K.T)
    assert model.n_iter_ < 300
    np.testing.assert_array_equal(model.predict(K + K.T), model.labels_)


def test_fewer_distinct_rows_than_clusters():
    X = np.repeat([[0.0, 1.0], [5.0, 5.0]], 10, axis=0)
    with pytest.warns(ConvergenceWarning, match=r"clusters \(2\) found smaller than n_clusters"):
        model = KernelKMeans(4, random_state=0).fit(X)
    np.testing.assert_allclose(model.inertia_, 0, atol=1e-12)
    assert model.n_iter_ < 5
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_an_empty_cluster_takes_the_farthest_row():
    X = np.array([[0.0, 0], [1, 0], [0, 1], [10, 10], [11, 10], [200, 0]])
    model = KernelKMeans(3, kernel="linear", init=[[0, 0], [10, 10], [1e4, 1e4]]).fit(X)
    np.testing.assert_array_equal(model.labels_, [0, 0, 0, 1, 1, 2])
    by_labels = KernelKMeans(3, kernel="linear", init=[0, 0, 0, 1, 1, 1]).fit(X)
    np.testing.assert_array_equal(by_labels.labels_, [0, 0, 0, 1, 1, 2])


def test_inits_and_their_errors():
    X = groups(100)
    by_index = KernelKMeans(2, init=[3, 5]).fit(X)
    for init in (X[[3, 5]], lambda X, k, random_state: X[[3, 5]]):
        model = KernelKMeans(2, init=init, n_init=1 if callable(init) else "auto").fit(X)
        np.testing.assert_array_equal(model.labels_, by_index.labels_)
    for wrong in ([3, 100], [0.5, 1.0], np.zeros(99, int), np.zeros((2, 3)), np.full(100, 2)):
        with pytest.raises(ValueError, match="init"):
            KernelKMeans(2, init=wrong).fit(X)
    with pytest.raises(ValueError, match="kernel"):
        KernelKMeans(2, kernel="none").fit(X)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("max_gram_mb", [1024, 0], ids=["kept", "streamed"])
def test_same_bits_for_any_number_of_threads(dtype, max_gram_mb):
    X, fits = groups(3000, 10, dtype=dtype), []
    for threads in (1, 2, 3):
        with fastml.config_context(threads=threads):
            model = KernelKMeans(6, max_gram_mb=max_gram_mb, random_state=0).fit(X)
            fits.append((model.labels_, model.inertia_, model.center_sqnorms_, model.transform(X)))
    for fit in fits[1:]:
        for one, many in zip(fits[0], fit, strict=True):
            np.testing.assert_array_equal(one, many)


def never(x, y):
    return np.nan if x[0] > y[0] else 1.0


@pytest.mark.parametrize("max_gram_mb", [None, 0])
@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_kernels_that_are_none_are_refused(max_gram_mb, init):
    X = groups(40)
    model = KernelKMeans(3, kernel=lambda x, y: np.nan, init=init, max_gram_mb=max_gram_mb)
    with pytest.raises(ValueError, match="gives NaN or infinity"):
        model.fit(X)
    with pytest.raises(ValueError, match="NaN"):
        model.set_params(kernel=never).fit(X)
    with pytest.raises(ValueError, match="must be symmetric"):
        model.set_params(kernel="precomputed").fit(np.triu(X @ X.T))


def test_parameters_without_a_use_are_refused():
    X = groups(40)
    for kernel in ("rbf", RBF()):
        with pytest.raises(TypeError, match="does not take kernel_params"):
            KernelKMeans(3, kernel=kernel, kernel_params={"foo": 1}).fit(X)
    with pytest.raises(ValueError, match="Negative values"):
        KernelKMeans(3).fit(X, sample_weight=np.linspace(-1, 1, 40))
