"""NearestCentroid against scikit-learn's, and by Mahalanobis distances against its twin."""

import warnings

import numpy as np
import pytest
import sklearn.neighbors as stock
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from threadpoolctl import threadpool_limits

import fastml
from fastml.neighbors import NearestCentroid

rng = np.random.default_rng(5)
X, QUERIES = rng.normal(size=(300, 6)) + 2, rng.normal(size=(40, 6)) + 2
CLASSES = np.concatenate([np.arange(4), rng.integers(4, size=296)])

KINDS = {
    "double": X,
    "single": X.astype(np.float32),
    "whole": np.round(4 * X).astype(int),
    "columns": np.asfortranarray(X),
    "few": X[:7],
    "a constant": np.column_stack([X, np.ones(300)]),
    "csr": sparse.csr_matrix(X * (X > 2)),
    "csc": sparse.csc_array(X * (X > 2)),
    "csr of numbers": sparse.csr_array(np.round(X).astype(int)),
    "nothing in a column": sparse.csr_matrix(X * [1, 0, 1, 1, 1, 1]),
}


@pytest.fixture(autouse=True)
def strict():
    with fastml.config_context(strict=True):
        yield


def fitted(model, X, y):
    """What a fit leaves, warnings too, or the error."""
    with warnings.catch_warnings(record=True) as told, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            model.fit(X, y)
        except ValueError as error:
            return str(error).partition(":")[0]
    return {str(w.message) for w in told if not issubclass(w.category, RuntimeWarning)}


@pytest.mark.parametrize("shrink_threshold", [None, 0.3])
@pytest.mark.parametrize("priors", ["uniform", "empirical", (0.1, 0.2, 0.3, 0.4), (1, 2, 3, 4)])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
@pytest.mark.parametrize("kind", KINDS)
def test_equals_scikit_learn(kind, metric, priors, shrink_threshold):
    data = KINDS[kind]
    y = CLASSES[: data.shape[0]]
    params = {"metric": metric, "priors": priors, "shrink_threshold": shrink_threshold}
    ours, theirs = NearestCentroid(**params), stock.NearestCentroid(**params)
    assert fitted(ours, data, y) == fitted(theirs, data, y)
    single = data.dtype == np.float32
    for name, theirs_is in vars(theirs).items():
        if name.endswith("_"):
            ours_is = getattr(ours, name)
            assert np.shape(ours_is) == np.shape(theirs_is), name
            assert np.asarray(ours_is).dtype == np.asarray(theirs_is).dtype, name
            close = {"rtol": 1e-3, "atol": 1e-5} if single else {"rtol": 1e-9, "atol": 1e-12}
            np.testing.assert_allclose(ours_is, theirs_is, **close, err_msg=name)
    np.testing.assert_array_equal(ours.predict(data), theirs.predict(data))
    if metric == "euclidean":
        scores, expected = (model.decision_function(data) for model in (ours, theirs))
        np.testing.assert_allclose(scores, expected, rtol=1e-3 if single else 1e-9)
        assert scores.dtype == expected.dtype
        probabilities = theirs.predict_proba(data)
        np.testing.assert_allclose(ours.predict_proba(data), probabilities, rtol=1e-2, atol=1e-9)


@pytest.mark.parametrize("labels", [np.array(["a", "b", "c", "d"]), np.array([True, False] * 2)])
def test_labels_of_any_kind(labels):
    ours, theirs = (m.fit(X, labels[CLASSES]) for m in (NearestCentroid(), stock.NearestCentroid()))
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    np.testing.assert_array_equal(ours.predict(QUERIES), theirs.predict(QUERIES))


def test_what_cannot_be_fitted_is_the_same_error():
    y, alike = CLASSES[:20] % 2, np.full((20, 3), 0.1)
    for data in (alike, sparse.csr_matrix(alike), np.full((20, 3), np.nan), alike[:, :0]):
        ours, theirs = (fitted(m, data, y) for m in (NearestCentroid(), stock.NearestCentroid()))
        assert isinstance(ours, str)
        assert ours == theirs
    for y, match in ((np.zeros(20), "greater than one"), (np.linspace(0, 1, 20), "continuous")):
        for model in (NearestCentroid(), stock.NearestCentroid()):
            with pytest.raises(ValueError, match=match):
                model.fit(X[:20], y)
    with pytest.raises(ValueError, match="non-negative"):
        NearestCentroid(priors=[-1, 2]).fit(X, CLASSES % 2)


def test_a_column_of_classes_is_taken_with_a_warning():
    with pytest.warns(UserWarning, match="column-vector"):
        model = NearestCentroid().fit(X, CLASSES[:, None])
    np.testing.assert_array_equal(model.centroids_, NearestCentroid().fit(X, CLASSES).centroids_)


def test_threads_do_not_matter():
    many = np.random.default_rng(0).normal(size=(50_000, 7))
    y = np.arange(50_000) % 5
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            models = [NearestCentroid(metric=m).fit(many, y) for m in ("euclidean", "manhattan")]
        found.append([vars(model) for model in models])
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one["centroids_"], two["centroids_"])
        np.testing.assert_array_equal(one["deviations_"], two["deviations_"])


def test_mahalanobis():
    shear = np.eye(6) + 5 * np.tri(6)
    model = NearestCentroid(metric="mahalanobis").fit(X @ shear, CLASSES)
    plain = NearestCentroid(metric="mahalanobis").fit(X, CLASSES)
    np.testing.assert_array_equal(model.predict(QUERIES @ shear), plain.predict(QUERIES))
    members = [X[np.flatnonzero(c == CLASSES)] for c in range(4)]
    within = np.mean([np.cov(each.T, bias=True) for each in members], axis=0)  # equal priors
    np.testing.assert_allclose(plain.covariance_, within)
    inverse = np.linalg.inv(within)
    table = cdist(QUERIES, plain.centroids_, "mahalanobis", VI=inverse)
    np.testing.assert_array_equal(plain.predict(QUERIES), table.argmin(axis=1))
    with pytest.raises(TypeError, match="mahalanobis"):
        fastml.to_sklearn(plain)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_nearest_mahalanobis_centroid_is_discriminant_analysis(n_classes):
    y, units = CLASSES % n_classes, [1e-9, 1e9, 1, 1e5, 1e-5, 1]
    for priors in ([k / sum(range(n_classes + 1)) for k in range(1, n_classes + 1)], "empirical"):
        model = NearestCentroid(metric="mahalanobis", priors=priors).fit(X, y)
        given = None if isinstance(priors, str) else priors
        theirs = LinearDiscriminantAnalysis(solver="lsqr", priors=given).fit(X, y)
        np.testing.assert_allclose(model.covariance_, theirs.covariance_)
        np.testing.assert_array_equal(model.predict(QUERIES), theirs.predict(QUERIES))
        probabilities = theirs.predict_proba(QUERIES)
        np.testing.assert_allclose(model.predict_proba(QUERIES), probabilities, rtol=1e-7)
        scaled = NearestCentroid(metric="mahalanobis", priors=priors).fit(X * units, y)
        np.testing.assert_allclose(scaled.predict_proba(QUERIES * units), probabilities, rtol=1e-6)
        if n_classes == 2:
            scores = theirs.decision_function(QUERIES)
            np.testing.assert_allclose(model.decision_function(QUERIES), scores, atol=1e-9)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nearest_mahalanobis_centroid_says_what_it_needs():
    model = NearestCentroid(metric="mahalanobis")
    with pytest.raises(ValueError, match="toarray"):
        model.fit(sparse.csr_matrix(X), CLASSES)
    with pytest.raises(ValueError, match="out of range"):
        model.fit(X * 1e160, CLASSES)
    assert not hasattr(NearestCentroid(metric="manhattan"), "predict_proba")
