"""K-means with the Mahalanobis distance, against k-means on whitened rows and SciPy's distances."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans as StockKMeans
from sklearn.covariance import LedoitWolf
from sklearn.metrics import adjusted_rand_score

import fastml
from fastml.cluster import MahalanobisKMeans


def stretched(n=400, seed=0, dtype=np.float64):
    """Two groups that only a combination of features of unlike units tells apart."""
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=n)
    X = rng.normal(size=(n, 3)) + 8 * group[:, None] * np.array([0, 0, 1.0])
    mix = np.array([[1000.0, 0, 0], [3, 0.1, 0], [500, 0.05, 0.01]])
    return (X @ mix.T + 50).astype(dtype), group


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances_are_those_of_scipy(dtype, weighted):
    X, _ = stretched(dtype=dtype)
    w = np.random.default_rng(1).random(len(X)) if weighted else None
    with fastml.config_context(strict=True):
        model = MahalanobisKMeans(3, random_state=0).fit(X, sample_weight=w)
        out = model.transform(X)
    S = np.cov(X.astype(np.float64).T, aweights=w, bias=True)
    np.testing.assert_allclose(model.covariance_, S, rtol=1e-4 if dtype == np.float32 else 1e-9)
    if dtype == np.float32:
        assert out.dtype == model.cluster_centers_.dtype == np.float32
        return  # the mix is beyond single precision
    expected = cdist(X, model.cluster_centers_, "mahalanobis", VI=np.linalg.inv(S))
    np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(model.labels_, expected.argmin(axis=1))
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    weight = np.ones(len(X)) if w is None else w
    np.testing.assert_allclose(model.inertia_, weight @ expected.min(axis=1) ** 2)
    np.testing.assert_allclose(model.score(X, sample_weight=w), -model.inertia_)
    for j in range(3):
        mine = model.labels_ == j
        mean = np.average(X[mine], axis=0, weights=weight[mine])
        np.testing.assert_allclose(model.cluster_centers_[j], mean, rtol=1e-9)


def test_units_and_correlations_do_not_matter():
    X, group = stretched()
    model = MahalanobisKMeans(2, n_init=5, random_state=0).fit(X)
    assert adjusted_rand_score(group, model.labels_) == 1
    assert adjusted_rand_score(group, StockKMeans(2, n_init=5).fit_predict(X)) < 0.5
    other = MahalanobisKMeans(2, n_init=5, random_state=0).fit(X * [1e-6, 1e3, 1e9] + 7)
    assert adjusted_rand_score(model.labels_, other.labels_) == 1


def test_the_identity_is_k_means():
    X = np.random.default_rng(0).normal(size=(300, 4))
    for init in ("k-means++", X[:5], lambda X, k, random_state: X[:k].copy()):
        ours = MahalanobisKMeans(5, covariance=np.eye(4), init=init, n_init=1, random_state=0)
        ours.fit(X)
        theirs = StockKMeans(5, init=init, n_init=1, random_state=0).fit(X)
        np.testing.assert_array_equal(ours.labels_, theirs.labels_)
        np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_)
        np.testing.assert_allclose(ours.inertia_, theirs.inertia_)


def test_inits_are_in_the_coordinates_of_the_data():
    X, _ = stretched()
    given = MahalanobisKMeans(2, init=X[:2], max_iter=50).fit(X)
    made = MahalanobisKMeans(2, init=lambda X, k, random_state: X[:k], n_init=1).fit(X)
    np.testing.assert_array_equal(given.labels_, made.labels_)
    again = MahalanobisKMeans(2, init=given.cluster_centers_).fit(X)
    assert again.n_iter_ <= 2
    with pytest.raises(ValueError, match="shape of the initial centers"):
        MahalanobisKMeans(2, init=X[:2, :2]).fit(X)


def test_covariances_and_their_errors():
    X, _ = stretched()
    lw = MahalanobisKMeans(2, covariance=LedoitWolf(), random_state=0).fit(X)
    np.testing.assert_allclose(lw.covariance_, LedoitWolf().fit(X).covariance_)
    twice = np.c_[X, X[:, 0]]
    for flat in (twice, np.c_[X, np.ones(len(X))], X[:2]):
        with pytest.raises(ValueError, match=r"singular .* Set shrinkage above 0"):
            MahalanobisKMeans(2, random_state=0).fit(flat)
        MahalanobisKMeans(2, shrinkage=0.1, random_state=0).fit(flat)
    with pytest.raises(ValueError, match="has shape"):
        MahalanobisKMeans(2, covariance=np.eye(2)).fit(X)
    with pytest.raises(ValueError, match="not symmetric"):
        MahalanobisKMeans(2, covariance=np.triu(np.ones((3, 3)))).fit(X)
    with pytest.raises(ValueError, match="singular or not positive definite"):
        MahalanobisKMeans(2, covariance=np.diag([1.0, 1, -1])).fit(X)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        MahalanobisKMeans(2).fit(sparse.csr_matrix(X))


def test_what_it_cannot_do_it_says():
    X, _ = stretched()
    with pytest.raises(ValueError, match="Negative values"):
        MahalanobisKMeans(3).fit(X, sample_weight=np.linspace(-1, 1, len(X)))
    with pytest.raises(ValueError, match="out of range"):
        MahalanobisKMeans(3).fit(X * 1e160)
    with pytest.raises(TypeError, match="has no covariance_"):
        MahalanobisKMeans(3, covariance=StockKMeans(2)).fit(X)
