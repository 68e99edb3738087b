"""Kernels of strings, sets and histograms, and kernel objects on sparse rows, in whatever takes a
kernel."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF

import fastml
from fastml.cluster import KernelKMeans
from fastml.decomposition import KernelPCA
from fastml.gaussian_process.kernels import Laplacian, NGram, Normalized, SetIntersection
from fastml.kernel_approximation import Nystroem
from fastml.kernel_logistic import KernelLogisticRegression
from fastml.kernel_ridge import KernelRidge
from fastml.metrics.pairwise import intersection_kernel, pairwise_kernels
from fastml.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    KNeighborsTransformer,
    LocalOutlierFactor,
    NearestNeighbors,
    RadiusNeighborsClassifier,
    RadiusNeighborsRegressor,
    kneighbors_graph,
    radius_neighbors_graph,
)

WORDS = ["banana", "cabin", "band", "cab", "bandana", "crab", "can", "nab"]
SETS = [set(word) for word in WORDS]
KINDS = [
    (WORDS, Normalized(NGram(2, n_min=1))),
    (np.array(WORDS), NGram(2)),
    (np.array(WORDS, dtype=object), NGram(2)),
    (SETS, SetIntersection()),
]
Y = np.array([0, 1, 0, 1, 0, 1, 1, 1])


def apart(k, rows, others=None):
    """Distances in the feature space, from the Gram matrix."""
    others = rows if others is None else others
    squares = k.diag(rows)[:, None] + k.diag(others) - 2 * k(rows, others)
    return np.sqrt(np.maximum(squares, 0))


@pytest.mark.parametrize("rows, k", KINDS)
def test_neighbours_are_those_of_the_distances(rows, k):
    D, new = apart(k, rows), rows[:3]
    given = {"metric": "precomputed"}
    for model in (
        KNeighborsClassifier(3, weights="distance"),
        KNeighborsRegressor(3),
        RadiusNeighborsClassifier(3.0),
        RadiusNeighborsRegressor(3.0),
    ):
        ours = type(model)(**model.get_params() | {"metric": k}).fit(rows, Y).predict(new)
        theirs = type(model)(**model.get_params() | given).fit(D, Y).predict(D[:3])
        np.testing.assert_allclose(ours, theirs)
    distances, found = NearestNeighbors(n_neighbors=2, metric=k).fit(rows).kneighbors()
    np.testing.assert_allclose(distances, D[np.arange(8)[:, None], found], atol=1e-7)
    graph = KNeighborsTransformer(n_neighbors=2, metric=k).fit_transform(rows).toarray()
    np.testing.assert_allclose(graph, np.where(graph > 0, D, 0), atol=1e-7)
    for ours, theirs in (
        (kneighbors_graph(rows, 2, metric=k), kneighbors_graph(D, 2, **given)),
        (radius_neighbors_graph(rows, 2, metric=k), radius_neighbors_graph(D, 2, **given)),
    ):
        assert (ours != theirs).nnz == 0


@pytest.mark.parametrize("rows, k", KINDS)
def test_outliers_among_objects(rows, k):
    D, given = apart(k, rows), {"metric": "precomputed", "n_neighbors": 3}
    ours = LocalOutlierFactor(3, metric=k).fit(rows).negative_outlier_factor_
    np.testing.assert_allclose(ours, LocalOutlierFactor(**given).fit(D).negative_outlier_factor_)
    novel = LocalOutlierFactor(3, metric=k, novelty=True).fit(rows)
    theirs = LocalOutlierFactor(**given, novelty=True).fit(D)
    np.testing.assert_allclose(novel.score_samples(rows[:3]), theirs.score_samples(D[:3]))
    assert (novel.predict(rows[:3]) == theirs.predict(D[:3])).all()


@pytest.mark.parametrize("solver", ["dense", "power", "randomized", "arpack"])
@pytest.mark.parametrize("rows, k", KINDS)
def test_components_of_objects(rows, k, solver):
    options = {"n_components": 2, "eigen_solver": solver, "random_state": 0}
    ours = KernelPCA(kernel=k, **options).fit(rows).transform(rows[:3])
    theirs = KernelPCA(kernel="precomputed", **options).fit(k(rows)).transform(k(rows[:3], rows))
    np.testing.assert_allclose(abs(ours), abs(theirs), atol=1e-6)
    streamed = KernelPCA(2, kernel=k, eigen_solver="power", max_gram_mb=0, random_state=0)
    np.testing.assert_allclose(abs(streamed.fit(rows).transform(rows[:3])), abs(ours), atol=1e-6)
    with pytest.raises(ValueError, match="rows that are no vectors"):
        KernelPCA(2, kernel=k, fit_inverse_transform=True).fit(rows)


@pytest.mark.parametrize("rows, k", KINDS)
def test_features_of_objects(rows, k):
    Z = Nystroem(kernel=k, n_components=8, random_state=0).fit(rows).transform(rows)
    np.testing.assert_allclose(Z @ Z.T, k(rows), atol=1e-5)


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize(
    "model",
    [
        KernelKMeans(2, kernel=Laplacian(0.3), random_state=0),
        KernelKMeans(2, kernel=Laplacian(0.3), max_gram_mb=0, random_state=0),
        KernelRidge(kernel=Laplacian(0.3)),
        KernelRidge(kernel=Laplacian(0.3), solver="cg"),
        KernelLogisticRegression(kernel=Laplacian(0.3)),
        KernelPCA(2, kernel=Laplacian(0.3)),
    ],
)
def test_kernel_objects_take_sparse_rows(model, make):
    rng = np.random.default_rng(0)
    X, y = rng.random((30, 4)) * (rng.random((30, 4)) < 0.6), np.arange(30) % 2
    use = "transform" if isinstance(model, KernelPCA) else "predict"
    dense = getattr(model.fit(X, y), use)(X[:5])
    np.testing.assert_allclose(getattr(model.fit(make(X), y), use)(make(X[:5])), dense, atol=1e-6)


def test_kernel_objects_that_take_dense_rows_alone_say_so():
    X = sparse.random(20, 4, 0.5, "csr", random_state=0)
    for use in (
        lambda: KernelRidge(kernel=RBF()).fit(X, np.arange(20)),
        lambda: NearestNeighbors(metric=RBF()).fit(X).kneighbors(),
        lambda: pairwise_kernels(X, metric=Laplacian(0.3) + RBF()),
    ):
        with pytest.raises(TypeError, match=r"takes no sparse rows: pass X.toarray"):
            use()


@pytest.mark.parametrize("name", ["intersection", "normalized_intersection"])
@pytest.mark.parametrize(
    "model",
    [
        KernelKMeans(2, random_state=0),
        KernelRidge(),
        KernelLogisticRegression(),
        KNeighborsClassifier(3),
    ],
)
def test_intersection_by_name(model, name):
    rng = np.random.default_rng(0)
    X, y = rng.random((30, 4)), np.arange(30) % 2
    K = intersection_kernel(X, normalize=name != "intersection")
    if isinstance(model, KNeighborsClassifier):
        squares = K.diagonal()[:, None] + K.diagonal() - 2 * K
        by_name, K = {"metric": name}, np.sqrt(np.maximum(squares, 0))
        given = {"metric": "precomputed"}
    else:
        by_name, given = {"kernel": name}, {"kernel": "precomputed"}
    expected = clone(model).set_params(**given).fit(K, y).predict(K)
    for rows in (X, sparse.csr_array(X)):
        found = clone(model).set_params(**by_name).fit(rows, y).predict(rows)
        np.testing.assert_allclose(found, expected, atol=1e-10)


def test_scikit_learn_has_no_intersection():
    model = KernelRidge(kernel="intersection").fit([[1.0], [2.0]], [0, 1])
    with pytest.raises(TypeError, match="no kernel 'intersection'"):
        fastml.to_sklearn(model)
