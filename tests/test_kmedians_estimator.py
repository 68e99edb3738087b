"""K-medians, whole: against a naive fit, weights against repeated rows, degenerate data."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

import fastml
from fastml.cluster import KMedians


def groups(n=400, d=6, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    centers = rng.normal(scale=4, size=(5, d))
    return (centers[rng.integers(5, size=n)] + rng.normal(size=(n, d))).astype(dtype)


def fit_naive(X, centers, max_iter=100):
    labels = None
    for _ in range(max_iter):
        nearest = cdist(X, centers, "cityblock").argmin(axis=1)
        if labels is not None and (nearest == labels).all():
            break
        labels = nearest
        centers = np.array([np.median(X[labels == j], axis=0) for j in range(len(centers))])
    return centers, labels


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fit_equals_the_naive_one(make, dtype):
    X = groups(dtype=dtype)
    X[abs(X) < 1] = 0
    centers, labels = fit_naive(X.astype(np.float64), X[:5].astype(np.float64))
    model = KMedians(5, init=X[:5], tol=0).fit(make(X))
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_allclose(model.cluster_centers_, centers, rtol=1e-6)
    assert model.cluster_centers_.dtype == dtype
    distance = cdist(X, centers, "cityblock")
    np.testing.assert_allclose(model.inertia_, distance.min(axis=1).sum(), rtol=1e-6)
    np.testing.assert_allclose(model.transform(make(X)), distance, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(model.predict(make(X)), labels)
    np.testing.assert_allclose(model.score(make(X)), -model.inertia_)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("init", ["k-medians++", "given"])
def test_weights_are_repeated_rows(make, init):
    X = groups()
    w = np.random.default_rng(1).integers(0, 4, len(X))
    init = X[:5] if init == "given" else init
    kept = X[w > 0]
    weighted = KMedians(5, init=init, random_state=0).fit(make(kept), sample_weight=w[w > 0])
    repeated = KMedians(5, init=init, random_state=0).fit(make(np.repeat(X, w, axis=0)))
    np.testing.assert_array_equal(weighted.cluster_centers_, repeated.cluster_centers_)
    np.testing.assert_allclose(weighted.inertia_, repeated.inertia_)
    np.testing.assert_array_equal(np.repeat(weighted.labels_, w[w > 0]), repeated.labels_)
    with_zeros = KMedians(5, init=X[:5]).fit(make(X), sample_weight=w)
    without = KMedians(5, init=X[:5]).fit(make(kept), sample_weight=w[w > 0])
    np.testing.assert_array_equal(with_zeros.cluster_centers_, without.cluster_centers_)


def test_seeding_beats_random_rows_and_ignores_rows_without_weight():
    X = groups(2000)
    plus = [KMedians(5, max_iter=1, random_state=i).fit(X).inertia_ for i in range(10)]
    random = [
        KMedians(5, init="random", n_init=1, max_iter=1, random_state=i).fit(X).inertia_
        for i in range(10)
    ]
    assert np.mean(plus) < 0.8 * np.mean(random)
    X = np.repeat(np.arange(4.0)[:, None], 50, axis=0)
    w = np.repeat([1.0, 0.0, 1.0, 0.0], 50)
    for i in range(5):
        model = KMedians(2, random_state=i).fit(X, sample_weight=w)
        np.testing.assert_array_equal(np.sort(model.cluster_centers_[:, 0]), [0, 2])


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_an_empty_cluster_takes_the_farthest_row(make):
    X = np.array([[0.0, 0], [1, 0], [0, 1], [10, 10], [11, 10], [200, 0]])
    init = np.array([[0.0, 0], [10, 10], [1e4, 1e4]])
    model = KMedians(3, init=init).fit(make(X))
    np.testing.assert_array_equal(model.labels_, [0, 0, 0, 1, 1, 2])
    assert model.n_iter_ < 10


def test_fewer_distinct_rows_than_clusters():
    X = np.repeat([[0.0, 1.0], [5.0, 5.0]], 10, axis=0)
    with pytest.warns(ConvergenceWarning, match=r"clusters \(2\) found smaller than n_clusters"):
        model = KMedians(4, random_state=0).fit(X)
    assert model.inertia_ == 0
    assert model.n_iter_ < 5
    assert np.isfinite(model.cluster_centers_).all()


def test_inertia_never_rises(capsys):
    KMedians(8, init="random", n_init=1, random_state=0, tol=0, verbose=1).fit(groups(1000))
    lines = [line for line in capsys.readouterr().out.splitlines() if "inertia" in line]
    inertias = [float(line.rpartition(" ")[2]) for line in lines]
    assert len(inertias) > 3
    assert np.all(np.diff(inertias) <= 1e-9 * inertias[0])


def test_outliers_do_not_pull_centers():
    X = groups(500)
    clean = KMedians(5, init=X[:5]).fit(X).cluster_centers_
    dirty = X.copy()
    dirty[::100] *= 1e6
    moved = KMedians(5, init=X[:5]).fit(dirty).cluster_centers_
    assert abs(moved - clean).max() < 1


def test_inits_and_their_errors():
    X = groups(100)
    made = KMedians(2, init=lambda X, k, random_state: X[:k], n_init=1).fit(X)
    given = KMedians(2, init=X[:2]).fit(X)
    np.testing.assert_array_equal(made.cluster_centers_, given.cluster_centers_)
    with pytest.raises(ValueError, match="shape of the initial centers"):
        KMedians(3, init=X[:2]).fit(X)
    with pytest.warns(RuntimeWarning, match="only one init"):
        KMedians(2, init=X[:2], n_init=3).fit(X)
    with pytest.raises(ValueError, match="n_samples=2 should be >= n_clusters=3"):
        KMedians(3).fit(X[:2])
    with pytest.raises(ValueError, match="init"):
        KMedians(3, init="k-means++").fit(X)
    best = KMedians(5, init="random", n_init=10, random_state=0).fit(X)
    once = KMedians(5, init="random", n_init=1, random_state=0).fit(X)
    assert best.inertia_ <= once.inertia_


def test_it_runs_natively_and_names_its_columns():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(groups(), columns=list("abcdef"))
    with fastml.config_context(strict=True):
        model = KMedians(3, random_state=0).set_output(transform="pandas").fit(X)
        out = model.transform(X)
    assert list(out.columns) == ["kmedians0", "kmedians1", "kmedians2"]
    assert list(model.feature_names_in_) == list("abcdef")


def test_callbacks_see_every_iteration():
    class Recorder:
        def __init__(self):
            self.inertias = []

        def setup(self, estimator, context):
            pass

        teardown = setup

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, X, fitted_estimator):
            if context.task_name == "iteration":
                self.inertias.append(-fitted_estimator.score(X))

    recorder, X = Recorder(), groups()
    model = KMedians(5, init=X[:5], tol=0).set_callbacks(recorder).fit(X)
    assert len(recorder.inertias) == model.n_iter_
    np.testing.assert_allclose(recorder.inertias[-1], model.inertia_)


def test_negative_weights_are_refused():
    X = groups(40)
    with pytest.raises(ValueError, match="Negative values"):
        KMedians(3).fit(X, sample_weight=np.linspace(-1, 1, 40))
