"""The neighbour searches against naive twins, and the estimators against scikit-learn's."""

import warnings
from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import pytest
import sklearn.neighbors as stock
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.exceptions import DataConversionWarning
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import DistanceMetric
from sklearn.metrics.pairwise import haversine_distances

import fastml
from fastml import neighbors
from fastml._native import neighbors as native

DTYPES = (np.float32, np.float64)
METRICS = {
    "euclidean": "euclidean",
    "sqeuclidean": "sqeuclidean",
    "manhattan": "cityblock",
    "chebyshev": "chebyshev",
    "cosine": "cosine",
}
N_ROWS = (1, 9, 100, 701)
N_COLUMNS = (1, 2, 7, 33, 600)  # 600: beyond what a tile takes at once


def rows_of(kind, n, d, dtype, seed=0):
    rng = np.random.default_rng([seed, n, d])
    if kind == "normal":
        X = rng.normal(size=(n, d)) + 3
    elif kind == "grid":  # all ties
        X = rng.integers(3, size=(n, d)) + 0.0
    else:  # far groups of near rows: products cancel
        X = 1e-3 * rng.normal(size=(n, d)) + 1e4 * rng.integers(2, size=(n, 1))
    return np.ascontiguousarray(X, dtype=dtype)


def unit(X):
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)


def table_naive(queries, X, metric):
    Q, X = queries.astype(np.float64), X.astype(np.float64)
    return 1 - Q @ X.T if metric == "cosine" else cdist(Q, X, METRICS[metric])


def nearest_naive(table, k):
    order = np.argsort(table, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(table, order, axis=1), order


def search(queries, X, metric, k, threads=1, itself=False):
    distances, rows = np.empty((len(queries), k)), np.empty((len(queries), k), np.int64)
    native.nearest(queries, X, metric, itself, distances, rows, threads)
    return distances, rows


def assert_nearest(distances, rows, table, exact_rows):
    """The right distances, of the rows that are named; the right rows too, ties apart."""
    expected, order = nearest_naive(table, rows.shape[1])
    scale = np.abs(table).max(initial=1e-300)
    np.testing.assert_allclose(distances, expected, rtol=1e-9, atol=1e-14 * scale)
    named = np.take_along_axis(table, rows, axis=1)
    np.testing.assert_allclose(named, distances, rtol=1e-9, atol=1e-14 * scale)
    assert all(len(set(row)) == len(row) for row in rows)
    if exact_rows:
        np.testing.assert_array_equal(rows, order)


@pytest.mark.parametrize("kind", ["normal", "grid", "groups"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", N_COLUMNS)
@pytest.mark.parametrize("n", N_ROWS)
def test_nearest(n, d, metric, dtype, kind):
    X, Q = rows_of(kind, n, d, dtype), rows_of(kind, 57, d, dtype, seed=1)
    if metric == "cosine":
        X, Q = unit(X.astype(np.float64)), unit(Q.astype(np.float64))
    table = table_naive(Q, X, metric)
    exact_rows = kind == "grid" and metric not in ("cosine", "euclidean")
    for k in {1, min(n, 5), min(n, 30), min(n, 600)}:
        distances, rows = search(Q, X, metric, k)
        assert_nearest(distances, rows, table, exact_rows)
        for outcome, one in zip(search(Q, X, metric, k, threads=2), (distances, rows), strict=True):
            np.testing.assert_array_equal(outcome, one)
        np.testing.assert_array_equal(search(Q[:1], X, metric, k, threads=2)[1], rows[:1])


@pytest.mark.parametrize("kind", ["normal", "grid", "groups"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", (1, 3, 40))
@pytest.mark.parametrize("share", [(0, 0.1), (0.5, 1)])  # through a filter, and without
def test_within(share, d, metric, dtype, kind):
    X, Q = rows_of(kind, 700, d, dtype), rows_of(kind, 90, d, dtype, seed=1)
    if metric == "cosine":
        X, Q = unit(X.astype(np.float64)), unit(Q.astype(np.float64))
    table = table_naive(Q, X, metric)
    radius = np.quantile(table, np.linspace(*share, len(Q)) ** 2, axis=1).diagonal().copy()
    radius = radius * 1.0000001 + 1e-9  # beside the border, where rounding decides
    outcomes = [native.within(Q, X, metric, False, radius, True, False, t) for t in (1, 2)]
    for one, two in zip(*outcomes, strict=True):
        np.testing.assert_array_equal(one, two)
    offsets, rows, distances = outcomes[0]
    queries, expected = np.nonzero(table <= radius[:, None])
    np.testing.assert_array_equal(np.diff(offsets), np.bincount(queries, minlength=len(Q)))
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_allclose(distances, table[queries, expected], rtol=1e-9, atol=1e-11)
    few = native.within(Q[:3], X, metric, False, radius[:3], True, False, 2)
    for one, all_of_them in zip(few[1:], (rows, distances), strict=True):
        np.testing.assert_array_equal(one, all_of_them[: offsets[3]])
    without = native.within(Q, X, metric, False, radius, False, False, 2)
    np.testing.assert_array_equal(without[1], rows)
    assert without[2] is None
    _, rows, distances = native.within(Q, X, metric, False, radius, True, True, 2)
    for a, b in pairwise(offsets):
        pairs = list(zip(distances[a:b], rows[a:b], strict=True))
        assert pairs == sorted(pairs)


@pytest.mark.parametrize("dtype", DTYPES)
def test_smallest_entries(dtype):
    rng = np.random.default_rng(0)
    table = rng.integers(50, size=(40, 300)).astype(dtype)
    table[rng.random(table.shape) < 0.1] = np.nan
    table[3] = np.nan
    for k in (1, 7, 299):
        values, columns = np.empty((40, k), dtype), np.empty((40, k), np.int64)
        native.smallest(table, -1, values, columns, 2)
        expected = np.argsort(table, axis=1, kind="stable")[:, :k]
        np.testing.assert_array_equal(columns, expected)
        np.testing.assert_array_equal(values, np.take_along_axis(table, expected, axis=1))
        native.smallest(table, 2, values, columns, 1)
        assert not (columns == np.arange(2, 42)[:, None]).any()


@pytest.mark.parametrize("scale", [1e-140, 1e-30, 1e30, 1e140])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev"])
def test_extreme_magnitudes(metric, scale):
    X, Q = rows_of("normal", 900, 8, np.float64), rows_of("normal", 30, 8, np.float64, seed=1)
    X[5] *= 1e6
    _, expected = search(Q, X, metric, 7)
    distances, rows = search(Q * scale, X * scale, metric, 7)
    np.testing.assert_array_equal(rows, expected)
    assert np.isfinite(distances).all()


def test_one_row_far_off_does_not_matter():
    X, Q = rows_of("normal", 3000, 8, np.float32), rows_of("normal", 30, 8, np.float32, seed=1)
    expected = search(Q, X, "euclidean", 7)
    for far in (1e10, 1e20, 3e38):
        X[-1] = far
        for got, one in zip(search(Q, X, "euclidean", 7), expected, strict=True):
            np.testing.assert_array_equal(got, one)
    assert (search(Q, X, "euclidean", 3000)[1][:, -1] == 2999).all()


def test_row_is_its_nearest_at_distance_zero():
    X = rows_of("groups", 2000, 20, np.float64)
    distances, rows = search(X, X, "euclidean", 1)
    assert (distances == 0).all()
    np.testing.assert_array_equal(rows[:, 0], np.arange(2000))


# -- estimators

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 6))
QUERIES = rng.normal(size=(60, 6))
CLASSES = rng.integers(4, size=400)
PARAMS = [
    {},
    {"metric": "cosine"},
    {"metric": "manhattan"},
    {"metric": "chebyshev"},
    {"metric": "sqeuclidean"},
    {"metric": "minkowski", "p": 3},
    {"metric": "minkowski", "p": 1, "metric_params": {"w": np.arange(1.0, 7)}},
    {"metric": "minkowski", "metric_params": {"w": np.arange(1.0, 7)}},
    {"metric": "mahalanobis", "metric_params": {"VI": np.linalg.inv(np.cov(X.T))}},
    {"metric": "seuclidean", "metric_params": {"V": X.var(axis=0)}},
    {"metric": "nan_euclidean"},
    {"metric": "correlation"},
    {"metric": "canberra"},
    {"metric": "p"},
    {"metric": "braycurtis", "algorithm": "brute"},
]


def both(name, *data, **params):
    """Fastml's and scikit-learn's, fitted."""
    return [getattr(module, name)(**params).fit(*data) for module in (neighbors, stock)]


@pytest.fixture
def strict():
    with fastml.config_context(strict=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("params", PARAMS, ids=lambda p: p.get("metric", "default"))
def test_kneighbors_is_scikit_learns(params, dtype):
    ours, theirs = both("NearestNeighbors", X.astype(dtype), **params)
    assert ours._fit_method == theirs._fit_method
    tolerance = (
        {"rtol": 1e-4, "atol": 1e-6} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-12}
    )
    for queries in (None, QUERIES.astype(dtype), QUERIES[:1].astype(dtype)):
        got, expected = ours.kneighbors(queries), theirs.kneighbors(queries)
        np.testing.assert_array_equal(got[1], expected[1])
        assert got[0].dtype == expected[0].dtype or queries is not None
        np.testing.assert_allclose(got[0], expected[0], **tolerance)
        radius = float(np.quantile(expected[0], 0.7)) * 1.00001
        got = ours.radius_neighbors(queries, radius, sort_results=True)
        expected = theirs.radius_neighbors(queries, radius, sort_results=True)
        for i in range(len(got[0])):
            np.testing.assert_array_equal(got[1][i], expected[1][i])
            np.testing.assert_allclose(got[0][i], expected[0][i], **tolerance)


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("algorithm", ["auto", "brute", "ball_tree"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["euclidean", "minkowski", "canberra"])
def test_metric_objects(name, dtype, algorithm):
    params = {"p": 3} if name == "minkowski" else {}
    metric = DistanceMetric.get_metric(name, dtype=dtype, **params)
    named = neighbors.NearestNeighbors(metric=name, metric_params=params).fit(X)
    model = neighbors.NearestNeighbors(metric=metric, algorithm=algorithm).fit(X)
    for queries in (None, QUERIES):
        got, expected = model.kneighbors(queries), named.kneighbors(queries)
        np.testing.assert_array_equal(got[1], expected[1])
        np.testing.assert_allclose(got[0], expected[0], rtol=1e-5 if dtype == np.float32 else 1e-9)


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("algorithm", ["brute", "ball_tree"])
@pytest.mark.parametrize(
    "metric",
    ["dice", "jaccard", "rogerstanimoto", "russellrao", "sokalmichener", "sokalsneath", "yule"],
)
def test_boolean_rows(metric, algorithm):
    if metric not in stock.VALID_METRICS[algorithm]:
        pytest.skip("scikit-learn has it not")
    B = np.random.default_rng(0).random((300, 12)) < 0.4
    for data in (B, B * 0.5):
        ours, theirs = both("NearestNeighbors", data, metric=metric, algorithm=algorithm)
        for queries in (None, data[:40]):
            got, expected = ours.kneighbors(queries), theirs.kneighbors(queries)
            np.testing.assert_allclose(got[0], expected[0], rtol=1e-12)
    with pytest.warns(DataConversionWarning) if algorithm == "brute" else nullcontext():
        ours.kneighbors(data[:2])


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
def test_sparse_rows(metric):
    S = sparse.random(300, 40, 0.2, format="csr", random_state=0)
    ours, theirs = both("NearestNeighbors", S, metric=metric)
    dense = stock.NearestNeighbors(metric=metric, algorithm="brute").fit(S.toarray())
    for queries in (None, S[:30]):
        got, expected = ours.kneighbors(queries), theirs.kneighbors(queries)
        np.testing.assert_allclose(got[0], expected[0], atol=1e-7)
        exact = dense.kneighbors(None if queries is None else queries.toarray())[0]
        np.testing.assert_allclose(got[0], exact, atol=1e-7)


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("weights", ["uniform", "distance", lambda d: 1 / (1 + d)])
@pytest.mark.parametrize("y", [CLASSES, np.c_[CLASSES, CLASSES % 2]], ids=["one", "two"])
@pytest.mark.parametrize("name", ["KNeighbors", "RadiusNeighbors"])
def test_votes_are_scikit_learns(name, y, weights):
    reach = {"n_neighbors": 7} if name == "KNeighbors" else {"radius": 3.5}
    queries = np.r_[QUERIES, X[:20]]
    ours, theirs = both(f"{name}Classifier", X, y, weights=weights, **reach)
    np.testing.assert_array_equal(ours.predict(queries), theirs.predict(queries))
    got, expected = ours.predict_proba(queries), theirs.predict_proba(queries)
    if y.ndim == 1:
        got, expected = [got], [expected]
    for share, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(share, other, rtol=1e-7, atol=1e-12)
    ours, theirs = both(f"{name}Regressor", X, y + 0.5, weights=weights, **reach)
    np.testing.assert_allclose(ours.predict(queries), theirs.predict(queries), rtol=1e-7)


@pytest.mark.usefixtures("strict")
def test_graphs_are_scikit_learns():
    for mode in ("connectivity", "distance"):
        for itself in (False, True):
            params = {"mode": mode, "include_self": itself}
            for name, reach in (("kneighbors_graph", 4), ("radius_neighbors_graph", 2.5)):
                got = getattr(neighbors, name)(X, reach, **params)
                expected = getattr(stock, name)(X, reach, **params)
                assert type(got) is type(expected)
                assert abs(got - expected).max() < 1e-12
    for name in ("KNeighborsTransformer", "RadiusNeighborsTransformer"):
        ours, theirs = both(name, X)
        assert abs(ours.transform(QUERIES) - theirs.transform(QUERIES)).max() < 1e-12


@pytest.mark.usefixtures("strict")
def test_outlier_factors_are_scikit_learns():
    ours, theirs = both("LocalOutlierFactor", X, novelty=True)
    np.testing.assert_allclose(ours.negative_outlier_factor_, theirs.negative_outlier_factor_)
    np.testing.assert_allclose(ours.score_samples(QUERIES), theirs.score_samples(QUERIES))


@pytest.mark.usefixtures("strict")
def test_kernel_as_metric_is_distance_in_feature_space():
    kernel = RBF(1.5)
    gram = kernel(QUERIES, X)
    table = np.sqrt(2 - 2 * gram)
    expected, order = nearest_naive(table, 5)
    for metric, params in ((kernel, None), ("rbf", {"gamma": 1 / (2 * 1.5**2)})):
        model = neighbors.NearestNeighbors(metric=metric, metric_params=params).fit(X)
        distances, rows = model.kneighbors(QUERIES)
        np.testing.assert_array_equal(rows, order)
        np.testing.assert_allclose(distances, expected, rtol=1e-7)
        assert (model.kneighbors(X, 1)[0] == 0).all()
        with pytest.raises(TypeError, match="feature space"):
            fastml.to_sklearn(model)
    linear = neighbors.NearestNeighbors(metric="linear").fit(X)
    np.testing.assert_allclose(linear.kneighbors(QUERIES)[0], np.sort(cdist(QUERIES, X))[:, :5])


def test_model_converts_to_scikit_learn():
    for algorithm in ("auto", "brute", "ball_tree"):
        model = neighbors.KNeighborsClassifier(algorithm=algorithm).fit(X, CLASSES)
        theirs = fastml.to_sklearn(model)
        assert type(theirs) is stock.KNeighborsClassifier
        np.testing.assert_array_equal(theirs.predict(QUERIES), model.predict(QUERIES))
        back = fastml.from_sklearn(theirs)
        np.testing.assert_array_equal(back.predict(QUERIES), model.predict(QUERIES))
        assert (theirs._tree is None) == (algorithm == "brute")


@pytest.mark.parametrize("p", [1, 2, 3])
def test_trees_find_what_brute_force_finds(p):
    pytest.importorskip("fastml._native.kdtree")
    data = rows_of("normal", 9000, 2, np.float32)
    tree = neighbors.NearestNeighbors(p=p).fit(data)
    brute = neighbors.NearestNeighbors(p=p, algorithm="brute").fit(data)
    assert tree._searcher().tree is not None
    for queries in (None, data[:50] + 0.25):
        got, expected = tree.kneighbors(queries), brute.kneighbors(queries)
        np.testing.assert_array_equal(got[1], expected[1])
        np.testing.assert_allclose(got[0], expected[0])
    for queries in (None, data[:50]):
        got, expected = (
            model.radius_neighbors(queries, 0.02, sort_results=True) for model in (tree, brute)
        )
        np.testing.assert_array_equal(np.concatenate(got[1]), np.concatenate(expected[1]))
        np.testing.assert_allclose(np.concatenate(got[0]), np.concatenate(expected[0]))


@pytest.mark.parametrize("spread", [1, 1e-7, 0])
def test_on_a_sphere(spread):
    rng = np.random.default_rng(0)
    X = np.column_stack([np.arcsin(rng.uniform(-1, 1, 3000)), rng.uniform(-4, 4, 3000)])
    X[1000:] = X[rng.integers(1000, size=2000)] + spread * rng.normal(size=(2000, 2))
    Q = X[::30] + spread * rng.normal(size=(100, 2))
    models = [
        module.NearestNeighbors(n_neighbors=4, metric="haversine", algorithm=algorithm).fit(X)
        for module, algorithm in ((neighbors, "auto"), (stock, "brute"))
    ]
    exact = haversine_distances(Q, X)
    with fastml.config_context(strict=True):
        for queries in (Q, None):
            ours, theirs = (model.kneighbors(queries) for model in models)
            np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-9, atol=1e-15)
            if queries is not None:
                chosen = np.take_along_axis(exact, ours[1], axis=1)
                np.testing.assert_allclose(chosen, ours[0], rtol=1e-9, atol=1e-15)
            else:
                assert not (ours[1] == np.arange(len(X))[:, None]).any()
            radius = 0.02 if spread == 1 else 1.5e-7
            found, expected = (
                model.radius_neighbors(queries, radius, sort_results=True) for model in models
            )
            for a, b in zip(found[0], expected[0], strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-15)
    y = rng.integers(3, size=3000)
    votes = [
        module.KNeighborsClassifier(5, weights="distance", metric="haversine").fit(X, y)
        for module in (neighbors, stock)
    ]
    if spread:  # else nobody says which of the equals are near
        a, b = (model.predict_proba(Q) for model in votes)
        np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.parametrize("metric", ["braycurtis", "minkowski"])
def test_metrics_that_compiled_tables_and_trees_take(metric):
    rng = np.random.default_rng(0)
    X = rng.random((2500, 3)).round(2)
    params = {"p": 3, "metric_params": {"w": [1.0, 0.0, 2.5]}} if metric == "minkowski" else {}
    for Z in (X, np.vstack([X, [[0, 0, 0]]]), X - 0.5):
        distances = []
        for module, algorithm in ((neighbors, "auto"), (stock, "ball_tree")):
            model = module.NearestNeighbors(
                n_neighbors=4, metric=metric, algorithm=algorithm, **params
            )
            distances.append(model.fit(Z).kneighbors(Z[-300:])[0])
        np.testing.assert_allclose(*distances, rtol=1e-12, atol=1e-14)


@pytest.mark.filterwarnings("ignore:One or more samples have no neighbors")
@pytest.mark.parametrize("weights", ["uniform", "distance", lambda distances: distances])
@pytest.mark.parametrize("lonely", [[], [0], [4, 5], [1, 9], range(10)])
def test_radius_regression_where_some_have_no_neighbors(lonely, weights):
    rng = np.random.default_rng(0)
    X, y = rng.random((50, 2)), rng.random((50, 3)).astype(np.float32)
    Q = np.vstack([X[:5], rng.random((5, 2))])
    Q[list(lonely)] += 10
    ours, theirs = (
        module.RadiusNeighborsRegressor(radius=0.4, weights=weights).fit(X, y).predict(Q)
        for module in (neighbors, stock)
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("name", ["KNeighborsClassifier", "KNeighborsRegressor"])
def test_small_fits_validate_as_scikit_learn_does(name):
    X, y = np.arange(60.0).reshape(30, 2), np.arange(30) % 3
    not_finite = np.where(X == 7, np.nan, X)
    huge = np.full((30, 2), 1e300)  # finite, though squares of it are not
    ours, theirs = (getattr(module, name)(3) for module in (neighbors, stock))
    for rows, targets in ((not_finite, y), (X, y[:-1]), (X[:0], y[:0]), (X, None), (X, y * np.nan)):
        messages = []
        for model in (ours, theirs):
            with pytest.raises(ValueError) as error:
                model.fit(rows, targets)
            messages.append(str(error.value))
        assert messages[0] == messages[1]
    for rows, targets in ((huge, y), (X, y.astype(bool)), (X, y.astype(float)), (X, y[:, None])):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataConversionWarning)
            predicted = [m.fit(rows, targets).predict(rows[:1]) for m in (ours, theirs)]
        np.testing.assert_array_equal(*predicted)
    pd = pytest.importorskip("pandas")
    named = pd.DataFrame(X, columns=["a", "b"])
    assert hasattr(ours.fit(named, y), "feature_names_in_")
    assert not hasattr(ours.fit(X, y), "feature_names_in_")
    with pytest.raises(ValueError, match="features"):
        ours.fit(X, y).predict(X[:, :1])


def test_so_many_classes_are_questioned():
    X = np.arange(60.0).reshape(30, 2)
    for n_classes in (15, 16):
        for module in (neighbors, stock):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                module.KNeighborsClassifier(3).fit(X, np.arange(30) % n_classes)
            assert len(seen) == (n_classes > 15)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev", "minkowski", "cosine"])
@pytest.mark.parametrize("algorithm", ["auto", "brute"])
def test_nothing_is_within_a_negative_radius(metric, algorithm):
    X = np.random.default_rng(0).normal(size=(300, 4))
    model = neighbors.NearestNeighbors(metric=metric, algorithm=algorithm, p=3).fit(X)
    for n in (1, 60):
        assert [len(rows) for rows in model.radius_neighbors(X[:n], -1.0)[1]] == n * [0]
        if metric != "cosine":  # of itself that is next to 0
            assert [len(rows) for rows in model.radius_neighbors(X[:n], 0.0)[1]] == n * [1]


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("algorithm", ["kd_tree", "ball_tree"])
@pytest.mark.parametrize(
    ("metric", "params"),
    [("p", {"p": 3}), ("p", {"p": 1.5}), ("p", None), ("infinity", None), ("l1", None)],
)
def test_names_that_trees_alone_know(metric, params, algorithm):
    options = {"metric": metric, "metric_params": params, "algorithm": algorithm}
    ours, theirs = both("NearestNeighbors", X, **options)
    for k in (1, 7):
        np.testing.assert_allclose(
            ours.kneighbors(QUERIES, k)[0], theirs.kneighbors(QUERIES, k)[0], rtol=1e-9
        )
    found = ours.radius_neighbors(QUERIES, 1.0, return_distance=False)
    expected = theirs.radius_neighbors(QUERIES, 1.0, return_distance=False)
    assert [set(rows) for rows in found] == [set(rows) for rows in expected]
