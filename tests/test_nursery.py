"""Fitting trees and ensembles of them: what scikit-learn's leave behind, ours do."""

import pickle
import warnings

import joblib
import numpy as np
import pytest
import sklearn.ensemble
import sklearn.tree
from fastml._native.trees import draw_bootstrap
from scipy import sparse
from sklearn.base import clone
from sklearn.svm import SVC

import fastml
from fastml import ensemble, tree
from fastml.ensemble._weight_boosting import _Draws
from fastml.tree import _nursery
from fastml.tree._targets import whole

rng = np.random.default_rng(0)
N = 250
X = np.c_[rng.normal(size=(N, 3)), rng.integers(0, 4, (N, 2))]
SCORE = X[:, 0] + X[:, 3] + rng.normal(size=N)
CLASSES = np.array(["b", "a", "c"])[np.digitize(SCORE, [0.5, 2])]
COUNTS, REAL = rng.integers(0, 3, N), rng.random(N)
NAMES_OF_SPARSE = [
    *(f"{name}Classifier" for name in ("RandomForest", "ExtraTrees", "Bagging", "AdaBoost")),
    *(f"{name}Regressor" for name in ("RandomForest", "ExtraTrees", "Bagging", "AdaBoost")),
    "IsolationForest",
]
HELD_OUT = rng.normal(size=(40, 5)) * 2


def fitted(library, name, y, weights=None, **params):
    module = getattr(library, "tree" if hasattr(sklearn.tree, name) else "ensemble")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = getattr(module, name)(random_state=0, **params).fit(X, y, weights)
    return model, [str(warning.message) for warning in caught]


def assert_same_trees(ours, theirs):
    ours, theirs = (getattr(model, "estimators_", [model]) for model in (ours, theirs))
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        a, b = mine.tree_.__getstate__(), other.tree_.__getstate__()
        np.testing.assert_array_equal(a.pop("values"), b.pop("values"))
        assert a.keys() == b.keys()
        assert all(np.array_equal(a[key], b[key]) for key in a)
        assert vars(mine).keys() == vars(other).keys()
        assert mine.get_params() == other.get_params()
        assert type(mine).__module__.startswith("fastml.")


def answers(model):
    methods = ("predict", "predict_proba", "score_samples", "decision_function", "apply")
    methods = [m for m in (*methods, "transform", "decision_path") if hasattr(model, m)]
    with np.errstate(divide="ignore"):
        found = {method: getattr(model, method)(HELD_OUT) for method in methods}
    for method, value in found.items():
        value = value[0] if isinstance(value, tuple) else value
        found[method] = value.toarray() if sparse.issparse(value) else np.asarray(value)
    return found


def arrays(model):
    kinds = (np.ndarray, np.generic, float, int)
    return {name: value for name, value in vars(model).items() if isinstance(value, kinds)}


def assert_same_model(ours, theirs):
    assert_same_trees(ours, theirs)
    assert vars(ours).keys() == vars(theirs).keys()
    for found, expected in ((answers(ours), answers(theirs)), (arrays(ours), arrays(theirs))):
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value, err_msg=name)
            assert np.asarray(found[name]).dtype == np.asarray(value).dtype, name


BOOT = {"bootstrap": True, "oob_score": True, "max_samples": 0.6}
MODELS = [
    ("DecisionTreeClassifier", {"class_weight": "balanced", "ccp_alpha": 0.01}),
    ("ExtraTreeRegressor", {"max_leaf_nodes": 9}),
    ("RandomForestClassifier", {"n_estimators": 30, **BOOT}),
    ("RandomForestClassifier", {"n_estimators": 9, "class_weight": "balanced_subsample"}),
    ("RandomForestClassifier", {"n_estimators": 9, "min_weight_fraction_leaf": 0.03}),
    ("RandomForestRegressor", {"n_estimators": 30, **BOOT}),
    ("ExtraTreesClassifier", {"n_estimators": 9, "ccp_alpha": 0.01}),
    ("ExtraTreesRegressor", {"n_estimators": 9}),
    ("RandomTreesEmbedding", {"n_estimators": 9}),
    ("IsolationForest", {"n_estimators": 9, "max_samples": 99}),
    ("IsolationForest", {"n_estimators": 9, "max_features": 0.5, "contamination": 0.1}),
    ("BaggingClassifier", {"n_estimators": 9, "oob_score": True}),
    ("BaggingClassifier", {"n_estimators": 9, "max_features": 3, "bootstrap_features": True}),
    ("BaggingRegressor", {"n_estimators": 9, **BOOT}),
    ("AdaBoostClassifier", {"n_estimators": 9}),
    ("AdaBoostRegressor", {"n_estimators": 9, "loss": "square"}),
]


@pytest.mark.skipif(sklearn.__version__ < "1.9", reason="scikit-learn 1.9's trees and bootstraps")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("weights", [None, COUNTS, REAL], ids=["", "counts", "real"])
@pytest.mark.parametrize(("name", "params"), MODELS)
def test_same_model(name, params, weights):
    if name == "IsolationForest" and weights is COUNTS:
        weights = COUNTS + 1  # it draws without replacement
    y = SCORE if name.endswith("Regressor") else CLASSES
    with fastml.config_context(strict=True):
        ours, said = fitted(fastml, name, y, weights, **params)
    theirs, expected = fitted(sklearn, name, y, weights, **params)
    assert said == expected
    assert_same_model(ours, theirs)


@pytest.mark.filterwarnings("ignore:Warm-start")
def test_warm_start():
    models = []
    for library in (fastml, sklearn):
        model, _ = fitted(library, "RandomForestClassifier", CLASSES, n_estimators=4)
        model.set_params(warm_start=True).fit(X, CLASSES)
        before = model.predict_proba(X)
        model.set_params(n_estimators=11).fit(X, CLASSES)
        assert (model.predict_proba(X) != before).any()
        models.append(model)
    np.testing.assert_array_equal(*(model.predict_proba(X) for model in models))


@pytest.mark.parametrize("backend", ["threading", "loky"])
@pytest.mark.parametrize("name", ["RandomForestClassifier", "BaggingClassifier"])
def test_a_backend_of_the_users(name, backend):
    expected, _ = fitted(fastml, name, CLASSES, n_estimators=5)
    with joblib.parallel_config(backend, n_jobs=2):
        found, _ = fitted(fastml, name, CLASSES, n_estimators=5)
    assert_same_trees(found, expected)


def test_what_is_left_to_scikit_learn():
    with fastml.config_context(strict=True):
        with pytest.raises(fastml.NotAcceleratedError, match="SVC"):
            ensemble.BaggingClassifier(SVC()).fit(X, CLASSES)
        with pytest.raises(fastml.NotAcceleratedError, match="negative"):
            tree.DecisionTreeClassifier().fit(X, CLASSES, REAL - 0.1)
        with pytest.raises(fastml.NotAcceleratedError, match=r"Bagging.*criterion objects"):
            base = tree.DecisionTreeRegressor(criterion=sklearn.tree._criterion.MSE(1, N))
            ensemble.BaggingRegressor(base, n_estimators=2).fit(X, SCORE)
    weights = REAL - 0.1
    expected = sklearn.tree.DecisionTreeClassifier(random_state=0).fit(X, CLASSES, weights)
    found = tree.DecisionTreeClassifier(random_state=0).fit(X, CLASSES, weights)
    np.testing.assert_array_equal(found.tree_.threshold, expected.tree_.threshold)


@pytest.mark.parametrize("criterion", ["squared_error", "poisson", "absolute_error"])
@pytest.mark.parametrize("decimals", [0, 2, 9])
def test_boosting_on_rows_drawn_again_and_again(decimals, criterion):
    """Copies of a row are ties that need no replay; equal values of two rows do."""
    rows = np.random.default_rng(0).normal(size=(1_500, 4)).round(decimals)
    y = np.abs(rows[:, 0] + np.random.default_rng(1).normal(size=len(rows)))
    models = [
        library.ensemble.AdaBoostRegressor(
            library.tree.DecisionTreeRegressor(criterion=criterion, max_depth=7),
            n_estimators=4,
            random_state=0,
        ).fit(rows, y)
        for library in (fastml, sklearn)
    ]
    assert_same_trees(*models)


@pytest.mark.parametrize("n", [1, 2, 500, 4_001])
@pytest.mark.parametrize("power", [0, 1, 30, 300])
def test_rows_are_chosen_as_numpy_chooses_them(power, n):
    p = np.random.default_rng(n).random(n) ** power
    p[p < p.max() / 10] *= power < 30
    p /= p.sum()
    theirs, ours = np.random.RandomState(0), _Draws(np.random.RandomState(0)._bit_generator)
    for _ in range(2):
        expected = theirs.choice(np.arange(n), size=n, replace=True, p=p)
        np.testing.assert_array_equal(
            ours.choice(np.arange(n), size=n, replace=True, p=p), expected
        )
    assert ours.drawn.dtype == np.int64
    with pytest.raises(ValueError, match="do not sum to 1"):
        ours.choice(np.arange(n), size=n, replace=True, p=p / 2)


def test_repeated_entries_are_added_up():
    """On such float32 data scikit-learn's trees may not end."""
    S = sparse.csc_matrix(X, dtype=np.float32)
    twice = np.r_[S.data[0] - 1, 1, S.data[1:]], np.r_[S.indices[0], S.indices]
    indptr = S.indptr + (np.arange(S.shape[1] + 1) > 0)
    repeated = sparse.csc_matrix((*twice, indptr), shape=S.shape)
    trees = (
        tree.DecisionTreeClassifier(random_state=0).fit(rows, CLASSES) for rows in (repeated, S)
    )
    np.testing.assert_array_equal(*(each.tree_.threshold for each in trees))
    assert repeated.nnz == S.nnz + 1


@pytest.mark.parametrize("form", ["csr_matrix", "csc_array", "coo_array"])
@pytest.mark.parametrize("name", NAMES_OF_SPARSE)
def test_sparse_rows(name, form):
    S = getattr(sparse, form)(np.where(X > 0.5, X, 0))
    y = SCORE if name.endswith("Regressor") else CLASSES
    params = {"n_estimators": 4, "random_state": 0}
    ours = getattr(ensemble, name)(**params)
    theirs = getattr(sklearn.ensemble, name)(**params)
    with fastml.config_context(strict=True):
        assert_same_trees(ours.fit(S, y), theirs.fit(S, y))
        found, expected = ours.predict(S), theirs.predict(S)
    if name.endswith("Regressor"):
        np.testing.assert_allclose(found, expected, rtol=1e-14)
    else:
        np.testing.assert_array_equal(found, expected)


def test_nothing_half_grown_is_left(monkeypatch):
    forest = ensemble.RandomForestRegressor(3, warm_start=True, random_state=0).fit(X, SCORE)

    class Stopped:
        Columns = _nursery.native.Columns

        def Garden(self, *args, **kwargs):
            raise KeyboardInterrupt

    monkeypatch.setattr(_nursery, "native", Stopped())
    with pytest.raises(KeyboardInterrupt):
        forest.set_params(n_estimators=9).fit(X, SCORE)
    assert len(forest.estimators_) == 3
    monkeypatch.undo()
    assert not [name for name in vars(forest) if name.startswith("_fastml")]
    assert forest.predict(X).shape == (N,)
    assert len(forest.fit(X, SCORE).estimators_) == 9


@pytest.mark.parametrize("n", [1, 2, 3, 64, 65, 1000, 4096, 5000])
@pytest.mark.parametrize("seed", [0, 1, 2**31 - 2])
def test_bootstraps_are_those_of_numpy(n, seed):
    for draws in (1, n, 2 * n + 700):
        counts = np.empty(n, dtype=np.int32)
        draw_bootstrap(seed, draws, counts)
        rows = np.random.RandomState(seed).randint(0, n, draws)
        np.testing.assert_array_equal(counts, np.bincount(rows, minlength=n))


def test_a_fit_leaves_bootstrap_as_it_was_given(monkeypatch):
    def stopped(*args):
        raise KeyboardInterrupt

    forest = ensemble.RandomForestRegressor(30, bootstrap=np.bool_(True), random_state=0)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(_nursery.Nursery, "plant", stopped)
        forest.fit(X, SCORE)
    assert isinstance(forest.bootstrap, np.bool_)
    assert forest.set_params(bootstrap=True, oob_score=True).fit(X, SCORE).bootstrap is True


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("RandomForestClassifier", {}),
        ("ExtraTreesClassifier", {}),
        ("BaggingClassifier", {}),
        ("IsolationForest", {"max_features": 0.5}),
    ],
)
def test_trees_of_a_fit_that_was_interrupted(name, params, monkeypatch):
    def stopped(tree, *grown):
        if len(taken) == 3:
            raise KeyboardInterrupt
        taken.append(tree)
        take_in(tree, *grown)

    taken, take_in = [], _nursery.Nursery._take_in
    model = getattr(ensemble, name)(n_estimators=9, warm_start=True, random_state=0, **params)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(_nursery.Nursery, "_take_in", staticmethod(stopped))
        model.fit(X, CLASSES)
    assert all(hasattr(tree, "tree_") for tree in model.estimators_)
    at_once = clone(model).fit(X, CLASSES)
    np.testing.assert_array_equal(model.fit(X, CLASSES).predict(X), at_once.predict(X))
    assert len(model.estimators_) == 9


def test_pickles_hold_the_model_alone():
    ours, _ = fitted(fastml, "RandomForestClassifier", CLASSES, n_estimators=9)
    theirs, _ = fitted(sklearn, "RandomForestClassifier", CLASSES, n_estimators=9)
    ours.predict(X)
    assert len(pickle.dumps(ours)) < 1.02 * len(pickle.dumps(theirs))
    back = fastml.to_sklearn(ours)
    assert type(back) is type(theirs)
    assert type(back.estimators_[0]) is sklearn.tree.DecisionTreeClassifier
    for model in (back, fastml.from_sklearn(theirs), pickle.loads(pickle.dumps(ours))):
        np.testing.assert_array_equal(model.predict_proba(X), theirs.predict_proba(X))


class Enough:
    """A callback that stops a fit after some trees."""

    def __init__(self, trees):
        self.trees, self.seen = trees, []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        if context.task_name == "tree":
            self.seen.append(len(fitted_estimator.estimators_))
            assert set(fitted_estimator.predict(X)) <= {"a", "b", "c"}
        return len(self.seen) >= self.trees


def test_callbacks_follow_and_stop_a_forest():
    callback = Enough(3)
    forest = ensemble.RandomForestClassifier(50, oob_score=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows that few trees leave out
        forest.set_callbacks(callback).fit(X, CLASSES)
    assert callback.seen == [1, 2, 3]
    assert len(forest.estimators_) == 3
    assert forest.predict(X).shape == (N,)


def misclassified(y, w):
    return 1 - max(np.bincount(y, w)) / w.sum()


def test_misclassification():
    codes = np.unique(CLASSES, return_inverse=True)[1]
    params = {"criterion": "misclassification", "max_depth": 4, "random_state": 0}
    model = tree.DecisionTreeClassifier(**params).fit(X, CLASSES, sample_weight=REAL)
    passes = model.decision_path(X).toarray().astype(bool)
    expected = [misclassified(codes[rows], REAL[rows]) for rows in passes.T]
    np.testing.assert_allclose(model.tree_.impurity, expected, atol=1e-12)
    best = min(
        sum(REAL[side].sum() * misclassified(codes[side], REAL[side]) for side in (low, ~low))
        for column in X.astype(np.float32).T
        for value in np.unique(column)[:-1]
        for low in [column <= value]
    )
    left = X[:, model.tree_.feature[0]].astype(np.float32) <= model.tree_.threshold[0]
    found = sum(REAL[side].sum() * misclassified(codes[side], REAL[side]) for side in (left, ~left))
    np.testing.assert_allclose(found, best)
    forest = ensemble.RandomForestClassifier(5, criterion="misclassification", random_state=0)
    assert forest.fit(X, CLASSES).score(X, CLASSES) > 0.8
    with pytest.raises(ValueError, match="misclassification"):
        tree.DecisionTreeClassifier(criterion="misclassification").fit(X, CLASSES, REAL - 0.1)
    with pytest.raises(ValueError, match="criterion"):
        tree.DecisionTreeRegressor(criterion="misclassification").fit(X, SCORE)


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        ([0, 3], np.int32),
        ([0.0, 3.0], np.int32),
        ([0.5, 3.0], np.float64),
        ([0.0, 2.0**31], np.float64),
        ([0, 2**31], np.float64),
        ([1.0] * 99 + [0.5], np.float64),
    ],
)
def test_weights_that_are_counts(given, dtype):
    weights = whole(np.array(given))
    assert weights.dtype == dtype
    np.testing.assert_array_equal(weights, given)
