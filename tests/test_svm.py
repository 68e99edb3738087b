"""Machines: as scikit-learn's, and what they have beyond."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm as stock
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._test_common import instance_generator
from sklearn.utils.estimator_checks import check_estimator

import fastml
from fastml import from_sklearn, jit, svm, to_sklearn
from fastml.gaussian_process.kernels import Laplacian

NAMES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")
KERNELS = ("linear", "poly", "rbf", "sigmoid")
FITTED = (
    "support_",
    "support_vectors_",
    "n_support_",
    "dual_coef_",
    "intercept_",
    "coef_",
    "n_iter_",
    "shape_fit_",
    "fit_status_",
    "class_weight_",
    "classes_",
    "offset_",
    "n_features_in_",
    "_gamma",
    "_sparse",
    "_n_support",
    "_dual_coef_",
    "_intercept_",
    "_probA",
    "_probB",
    "_num_iter",
    "_effective_probability",
)
pytestmark = pytest.mark.filterwarnings("ignore:The `probability` parameter:FutureWarning")


@pytest.fixture(autouse=True)
def strict():
    with fastml.config_context(strict=True):
        yield


def rows(n=120, d=4, k=2, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    codes = rng.integers(k, size=n)
    codes[:k] = range(k)
    X = rng.normal(size=(k, d))[codes] * 1.5 + rng.normal(size=(n, d))
    return X.astype(dtype), codes


def targets(name, X, codes):
    if name.endswith("SVC"):
        return codes
    return np.sin(X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=len(X))


def both(name, X, y, weight=None, **params):
    params = {"tol": 1e-6} | params
    ours = getattr(svm, name)(**params).fit(X, y, sample_weight=weight)
    return ours, getattr(stock, name)(**params).fit(X, y, sample_weight=weight)


def dense(value):
    return value.toarray() if sparse.issparse(value) else np.asarray(value)


def assert_alike(ours, theirs, X, atol=1e-3):
    """The same form everywhere; the same values up to the precision of the solvers."""
    for name in FITTED:
        assert hasattr(ours, name) == hasattr(theirs, name), name
        # For sparse rows without classes scikit-learn leaves n_support_ uninitialised.
        forgotten = "n_support" in name and ours._sparse and not hasattr(ours, "classes_")
        if forgotten or not hasattr(theirs, name):
            continue
        got, expected = getattr(ours, name), getattr(theirs, name)
        assert type(got) is type(expected), name
        got, expected = dense(got), dense(expected)
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape), name
        if "iter" not in name:
            scale = max(1, abs(expected).max(initial=0)) if expected.dtype.kind == "f" else 1
            np.testing.assert_allclose(got, expected, rtol=0, atol=atol * scale, err_msg=name)
    for name in ("decision_function", "predict_proba", "score_samples", "predict"):
        assert hasattr(ours, name) == hasattr(theirs, name), name
        if hasattr(theirs, name):
            got, expected = getattr(ours, name)(X), getattr(theirs, name)(X)
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape), name
            if got.dtype.kind == "f":
                np.testing.assert_allclose(got, expected, rtol=0, atol=atol, err_msg=name)
            elif type(ours).__name__ != "OneClassSVM":  # support vectors are on its boundary
                np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("kind", ["dense", "csr_matrix", "csr_array"])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("name", NAMES)
def test_as_scikit_learn(name, k, kernel, kind):
    if k > 2 and not name.endswith("SVC"):
        pytest.skip("it has no classes")
    X, codes = rows(k=k)
    y = targets(name, X, codes)
    params = {"kernel": kernel}
    if name == "NuSVC":
        params["nu"] = 0.3
    if kind != "dense":
        X = getattr(sparse, kind)(X * (abs(X) > 0.3))
    weight = np.random.default_rng(2).uniform(0.5, 1.5, X.shape[0])
    assert_alike(*both(name, X, y, **params), X)
    assert_alike(*both(name, X, y, weight, **params), X)


@pytest.mark.parametrize(
    "params",
    [
        {"C": 30.0, "class_weight": "balanced"},
        {"class_weight": {0: 2.0, 2: 0.5}},
        {"decision_function_shape": "ovo", "gamma": "auto"},
        {"break_ties": True, "gamma": 0.7},
        {"kernel": "sigmoid", "C": 0.1, "gamma": 0.05},
        {"probability": True, "random_state": 3},
        {"shrinking": False, "cache_size": 0.01},
    ],
    ids=str,
)
def test_parameters(params):
    X, y = rows(k=3)
    assert_alike(*both("SVC", X, y, **params), X)


def test_probabilities_of_nu_machines_and_of_sparse_rows():
    X, y = rows(k=3)
    params = {"probability": True, "random_state": 0}
    assert_alike(*both("NuSVC", X, y, nu=0.3, **params), X)
    assert_alike(*both("SVC", sparse.csr_matrix(X), y, **params), sparse.csr_matrix(X))
    machine = svm.SVC(probability=False).fit(X, y)
    assert not hasattr(machine, "predict_proba")
    with pytest.raises(NotFittedError, match="fitted with probability=False"):
        machine.set_params(probability=True).predict_proba(X)


@pytest.mark.parametrize("name", NAMES)
def test_precomputed_and_functions(name):
    X, codes = rows()
    y = targets(name, X, codes)

    def laplacian(A, B):
        return laplacian_kernel(A, B, gamma=0.2)

    assert_alike(*both(name, X, y, kernel=laplacian), X)
    K = laplacian(X, X)
    assert_alike(*both(name, K, y, kernel="precomputed"), K)
    with pytest.raises(ValueError, match="square matrix"):
        getattr(svm, name)(kernel="precomputed").fit(K[:, :50], y)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("cache_size", [200, 0.01])
def test_kernel_objects_by_rows_are_the_whole_matrix(name, cache_size):
    X, codes = rows()
    y = targets(name, X, codes)
    for kernel in (RBF(2.0) + 0.1 * DotProduct(), Laplacian(0.2)):
        ours = getattr(svm, name)(kernel=kernel, tol=1e-6, cache_size=cache_size).fit(X, y)
        K = kernel(X)
        theirs = getattr(svm, name)(kernel="precomputed", tol=1e-6).fit(K, y)
        np.testing.assert_allclose(ours.dual_coef_.sum(), theirs.dual_coef_.sum(), atol=1e-3)
        got, expected = ours._decisions(X[:50]), theirs._decisions(K[:50])
        np.testing.assert_allclose(got, expected, atol=1e-4)


def test_functions_of_two_vectors():
    pytest.importorskip("numba")

    @jit.kernel
    def cauchy(x, y):
        return 1 / (1 + np.sum((x - y) ** 2))

    X, y = rows(k=3)
    K = cauchy(X)
    ours = svm.SVC(kernel=cauchy, tol=1e-6).fit(X, y)
    theirs = stock.SVC(kernel="precomputed", tol=1e-6).fit(K, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(K), atol=1e-3)
    assert clone(ours).fit(X, y).score(X, y) == theirs.score(K, y)


def test_objects_that_are_no_vectors():
    words = ["aa", "ab", "ba", "bb", "aab", "bba"] * 5
    y = [word.count("a") > word.count("b") for word in words]

    def alike(A, B):
        return np.array([[a.count("a") * b.count("a") + 1 for b in B] for a in A])

    assert svm.SVC(kernel=alike, C=100).fit(words, y).score(words, y) > 0.6


@pytest.mark.parametrize("name", NAMES)
def test_single_precision(name):
    X, codes = rows(n=300, d=20)
    y = targets(name, X, codes)
    model = getattr(svm, name)().fit(X, y)
    single = getattr(svm, name)().fit(X.astype(np.float32), y)
    assert single.support_vectors_.dtype == np.float64
    for Z in (X, X.astype(np.float32), X[:1].astype(np.float32)):
        for fitted in (model, single):
            got = fitted._decisions(Z)
            assert got.dtype == np.float64
            np.testing.assert_allclose(got, model._decisions(X)[: len(Z)], atol=0.02)
    np.testing.assert_allclose(
        model._decisions(X.astype(np.float32)), model._decisions(X), atol=1e-4
    )


@pytest.mark.parametrize("name", NAMES)
def test_rows_that_weigh_nothing_are_not_there(name):
    X, codes = rows()
    y = targets(name, X, codes)
    weight = np.random.default_rng(0).uniform(0.5, 1.5, len(X)) * (np.arange(len(X)) % 3 > 0)
    keep = weight > 0
    params = {"nu": 0.3} if name == "NuSVC" else {}
    ours = getattr(svm, name)(gamma=0.3, **params).fit(X, y, sample_weight=weight)
    less = getattr(svm, name)(gamma=0.3, **params).fit(X[keep], y[keep], weight[keep])
    np.testing.assert_array_equal(ours.support_, np.flatnonzero(keep)[less.support_])
    np.testing.assert_array_equal(ours.support_vectors_, X[ours.support_])
    np.testing.assert_allclose(ours.dual_coef_, less.dual_coef_, atol=1e-10)


def test_a_class_that_weighs_nothing_never_wins():
    X, y = rows(k=3)
    model = svm.SVC().fit(X, y, sample_weight=(y != 1).astype(float))
    assert set(model.predict(X)) == {0, 2}
    np.testing.assert_array_equal(model.n_support_ > 0, [True, False, True])
    assert to_sklearn(model).score(X, y) == model.score(X, y)


@pytest.mark.parametrize(
    ("name", "params", "weight", "message"),
    [
        ("SVC", {}, 0.0, "all samples have zero or negative weights"),
        ("SVR", {}, -1.0, "all samples have zero or negative weights"),
        ("SVC", {}, "one class", "samples with positive weights belong to the same class"),
        ("NuSVC", {"nu": 0.99}, "rare", "specified nu is infeasible"),
        ("SVC", {}, "short", "sample_weight and X have incompatible shapes"),
    ],
)
def test_messages(name, params, weight, message):
    X, y = rows()
    given = {
        "one class": (y == 0).astype(float),
        "rare": np.where(y == 0, 0.1, 1.0),
        "short": np.ones(7),
    }
    weight = given[weight] if isinstance(weight, str) else np.full(len(X), weight)
    for module in (svm, stock):
        with pytest.raises(ValueError, match=message):
            getattr(module, name)(**params).fit(X, y, sample_weight=weight)


def test_stops_early_with_a_warning():
    X, y = rows()
    for module in (svm, stock):
        with pytest.warns(ConvergenceWarning, match=r"Solver terminated early \(max_iter=3\)"):
            model = module.SVC(max_iter=3).fit(X, y)
        assert model.fit_status_ == 1
        np.testing.assert_array_equal(model.n_iter_, [3])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["dense", "sparse", "precomputed", "function"])
def test_converts_to_stock_and_back(name, kind):
    X, codes = rows(k=3 if name.endswith("SVC") else 2)
    y = targets(name, X, codes)
    params = {"kernel": "rbf"}
    if kind == "sparse":
        X = sparse.csr_matrix(X)
    elif kind == "precomputed":
        X, params = X @ X.T, {"kernel": "precomputed"}
    elif kind == "function":
        params = {"kernel": laplacian_kernel}
    if name.endswith("SVC"):
        params |= {"probability": True, "random_state": 0}
    ours = getattr(svm, name)(**params).fit(X, y)
    theirs = to_sklearn(ours)
    assert type(theirs) is getattr(stock, name)
    assert vars(theirs).keys() <= vars(getattr(stock, name)(**params).fit(X, y)).keys()
    back, copy = from_sklearn(theirs), pickle.loads(pickle.dumps(ours))
    assert type(back) is type(ours)
    assert clone(back).get_params().keys() == ours.get_params().keys()
    for method in ("predict", "decision_function", "predict_proba"):
        if hasattr(ours, method):
            expected = getattr(theirs, method)(X)
            for model in (ours, back, copy):
                np.testing.assert_allclose(getattr(model, method)(X), expected, atol=1e-10)


def test_prediction_follows_the_attributes_and_adds_none():
    X, y = rows()
    model = svm.SVC(kernel="rbf").fit(X, y)
    before = dict(vars(model))
    decision = model.decision_function(X)
    assert vars(model).keys() == before.keys()
    model._dual_coef_ = 2 * model._dual_coef_
    model._intercept_ = 2 * model._intercept_
    np.testing.assert_allclose(model.decision_function(X), 2 * decision, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("support_", np.array([0, 10**6], dtype=np.int32)),
        ("_n_support", np.array([10**6, 3], dtype=np.int32)),
        ("_intercept_", np.zeros(7)),
        ("support_vectors_", np.zeros((3, 4))),
    ],
)
def test_models_from_outside_are_checked(name, value):
    X, y = rows(k=2)
    model = svm.SVC().fit(X, y)
    setattr(model, name, value)
    with pytest.raises(ValueError, match="internal representation of SVC was altered"):
        pickle.loads(pickle.dumps(model)).predict(X)


def test_in_searches_pipelines_and_calibration():
    X, y = rows(k=3)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), svm.SVC()), {"svc__C": [0.1, 1, 10]}, cv=3
    )
    assert search.fit(X, y).score(X, y) > 0.7
    calibrated = CalibratedClassifierCV(svm.SVC(), ensemble=False).fit(X, y)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1)


def test_degree_zero_is_a_kernel_of_ones():
    X, y = rows(n=60, k=3)
    params = {"kernel": "poly", "degree": 0, "coef0": 1.0}
    ours, theirs = both("SVC", X, y, decision_function_shape="ovo", **params)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("k", [2, 3])
def test_certificates(kernel, k):
    X, y = rows(k=k)
    model = svm.SVC(kernel=kernel, C=2.0, decision_function_shape="ovo", tol=1e-4).fit(X, y)
    p = k * (k - 1) // 2
    assert model.dual_gap_.shape == model.kkt_violation_.shape == model.margin_.shape == (p,)
    assert (model.kkt_violation_ <= 1.1e-4).all()
    assert (model.dual_gap_ >= -1e-10).all()
    assert (model.dual_gap_ < 0.05).all()
    if kernel == "linear":
        np.testing.assert_allclose(
            model.margin_, 1 / np.linalg.norm(model.coef_, axis=1), rtol=1e-4
        )
    slacks = model.slacks(X, y)
    primal = 0.5 / model.margin_**2 + 2.0 * slacks.sum(axis=0)
    tighter = svm.SVC(kernel=kernel, C=2.0, tol=1e-9).fit(X, y)
    best = 0.5 / tighter.margin_**2 + 2.0 * tighter.slacks(X, y).sum(axis=0)
    assert (primal - best <= model.dual_gap_ + 1e-6).all()


def test_slacks_of_regression_and_of_one_class():
    X, codes = rows()
    y = targets("SVR", X, codes)
    model = svm.SVR(C=100.0, gamma=2.0, epsilon=0.05).fit(X, y)
    np.testing.assert_allclose(
        model.slacks(X, y), np.maximum(abs(model.predict(X) - y) - 0.05, 0), atol=1e-12
    )
    nu = svm.NuSVR(nu=0.4, tol=1e-6).fit(X, y)
    assert np.mean(nu.slacks(X, y) > 1e-3) <= 0.4
    assert np.mean(svm.OneClassSVM(nu=0.2).fit(X).slacks(X) > 1e-3) <= 0.2


@pytest.mark.parametrize("name", ["SVC", "SVR"])
def test_warm_starts_along_C(name):
    X, codes = rows(n=400, k=3)
    y = targets(name, X, codes)
    warm = getattr(svm, name)(warm_start=True, gamma=0.5)
    saved = 0
    for C in (1.0, 1.5, 2.0, 1.0, 0.5):
        warm.set_params(C=C).fit(X, y)
        cold = getattr(svm, name)(C=C, gamma=0.5).fit(X, y)
        np.testing.assert_allclose(warm._decisions(X), cold._decisions(X), atol=0.02)
        saved += np.sum(cold.n_iter_) - np.sum(warm.n_iter_)
    assert saved > 0
    fewer = warm.fit(X[:300], y[:300]).predict(X)  # other rows: it starts anew
    assert len(fewer) == 400


def test_hard_margins():
    X, y = rows(n=80, d=2)
    X[y == 1] += 20
    hard = svm.SVC(kernel="linear", C=np.inf, tol=1e-6).fit(X, y)
    soft = stock.SVC(kernel="linear", C=1e6, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(hard.coef_, soft.coef_, atol=1e-4)
    assert hard.slacks(X, y).max() < 1e-4
    assert 0 <= hard.dual_gap_[0] < 1e-5 * 0.5 / hard.margin_[0] ** 2
    X[0] = X[y == 1].mean(axis=0)
    for kernel in ("linear", "poly"):
        with pytest.raises(ValueError, match="not separable in its feature space"):
            svm.SVC(kernel=kernel, degree=2, C=np.inf).fit(X, y)
    assert svm.SVC(C=np.inf, gamma=1.0).fit(X, y).score(X, y) == 1
    t = np.linspace(0, 1, 20)[:, np.newaxis]
    with pytest.raises(ValueError, match="targets not within epsilon"):
        svm.SVR(kernel="linear", C=np.inf, epsilon=0.01).fit(t, np.sin(9 * t[:, 0]))
    line = svm.SVR(kernel="linear", C=np.inf, epsilon=0.01, tol=1e-5).fit(t, 3 * t[:, 0])
    assert line.slacks(t, 3 * t[:, 0]).max() < 1e-3


def test_without_an_intercept_equal_rows_of_opposite_classes_go_to_their_bounds():
    X, _ = rows(n=60)
    X, y = np.repeat(X, 2, axis=0), np.tile([0, 1], 60)
    model = svm.SVC(solver="sdca", C=1e10).fit(X, y)
    assert model.n_iter_.sum() < 10_000
    assert model.fit_status_ == 0
    assert len(model.support_) == 120


@pytest.mark.parametrize("name", ["SVC", "SVR"])
def test_without_an_intercept(name):
    X, codes = rows()
    y = targets(name, X, codes)
    model = getattr(svm, name)(solver="sdca", gamma=0.3, tol=1e-6).fit(X, y)
    np.testing.assert_array_equal(model.intercept_, [0.0])
    alpha = model._dual_coef_[0]
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
    f = K[:, model.support_] @ alpha
    signs = np.where(codes == 0, 1.0, -1.0)
    # The conditions for an optimum, row by row.
    full = np.zeros(len(X))
    full[model.support_] = alpha
    if name == "SVC":
        slope = signs * f - 1
        assert (slope[full == 0] > -1e-5).all()
        assert (slope[abs(full) == 1] < 1e-5).all()
        assert (abs(slope[(full != 0) & (abs(full) < 1)]) < 1e-5).all()
    else:
        rest = y - f
        assert (abs(rest[full == 0]) < 0.1 + 1e-5).all()
        assert (abs(abs(rest[(full != 0) & (abs(full) < 1)]) - 0.1) < 1e-5).all()
    np.testing.assert_allclose(model.predict(X), to_sklearn(model).predict(X), atol=1e-10)
    with pytest.raises(ValueError, match="solver"):
        getattr(svm, name)(solver="other").fit(X, y)


class Follower:
    def __init__(self, stops=False):
        self.stops = stops

    def setup(self, estimator, context):
        self.names = []

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        self.names.append(context.task_name)
        return self.stops

    def teardown(self, estimator, context):
        pass


def test_callbacks_follow_a_fit():
    X, _ = rows(n=3000, d=10)
    y = np.random.default_rng(0).integers(0, 3, len(X))
    follower, params = Follower(), {"C": 1000.0, "gamma": 0.05}
    followed = svm.SVC(**params).set_callbacks(follower).fit(X, y)
    assert follower.names[-1] == "fit"
    assert set(follower.names[:-1]) == {"check"}
    whole = svm.SVC(**params).fit(X, y)
    np.testing.assert_array_equal(followed.dual_coef_, whole.dual_coef_)
    with pytest.warns(ConvergenceWarning, match="terminated early"):
        stopped = svm.SVC(**params).set_callbacks(Follower(stops=True)).fit(X, y)
    assert stopped.n_iter_.sum() < whole.n_iter_.sum()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")
def test_check_estimator(name):
    with fastml.config_context(strict=False):
        for reference in instance_generator._construct_instances(getattr(stock, name)):
            excused = instance_generator._get_expected_failed_checks(reference)
            ours = getattr(svm, name)(**reference.get_params())
            check_estimator(ours, expected_failed_checks=excused, on_skip=None)
