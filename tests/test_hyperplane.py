"""Machines of the linear kernel that start from their hyperplane: to the same solution."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.exceptions import ConvergenceWarning

from fastml.svm import SVC, SVR, _hyperplane

MODELS = {"SVC": (SVC, sklearn.svm.SVC), "SVR": (SVR, sklearn.svm.SVR)}


def problem(model, n, d, noise=1.5, seed=0):
    """Two classes that overlap, or a plane with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    f = X @ rng.normal(size=d) + noise * rng.normal(size=n) + 0.5
    return X, f if model == "SVR" else (f > 0).astype(int)


@pytest.fixture
def starts(monkeypatch):
    """Whether each problem that took long got a start."""
    found = []
    started = _hyperplane.started

    def noted(values, problem, *rest):
        result = started(values, problem, *rest)
        found.append(result.start is not None)
        return result

    monkeypatch.setattr(_hyperplane, "started", noted)
    return found


def dual(model, X, y):
    coef, rows = model.dual_coef_, model.support_
    if sp.issparse(coef):
        coef = coef.toarray()
    rows = X[rows].toarray() if sp.issparse(X) else X[rows]
    w = coef[0] @ rows.astype(float)
    if isinstance(model, sklearn.svm.SVR):
        linear = coef[0] @ y[model.support_] - model.epsilon * abs(coef).sum()
    else:
        linear = abs(coef).sum()
    return linear - w @ w / 2


@pytest.mark.parametrize("C", [1e-3, 1, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("model", MODELS)
def test_solution_is_that_of_libsvm(model, dtype, C, starts):
    X, y = problem(model, 1500, 7)
    X = X.astype(dtype)
    ours, theirs = (cls(kernel="linear", C=C).fit(X, y) for cls in MODELS[model])
    assert starts == [True]
    assert np.max(ours.kkt_violation_) <= 1e-3
    assert abs(ours.dual_coef_.sum()) <= 1e-9 * C * len(X)
    assert abs(ours.dual_coef_).max() <= C
    assert dual(ours, X, y) >= dual(theirs, X, y) * (1 - 1e-6)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=5e-3 * abs(theirs.coef_).max())
    # Nothing but those on the margins is off its bounds.
    free = (abs(ours.dual_coef_) > 0) & (abs(ours.dual_coef_) < C)
    assert free.sum() <= X.shape[1] + 2


@pytest.mark.parametrize("model", MODELS)
def test_two_variable_steps_find_the_same(model, starts, monkeypatch):
    X, y = problem(model, 2000, 4, seed=3)
    cls = MODELS[model][0]
    ours = cls(kernel="linear", C=3, tol=1e-6).fit(X, y)
    assert starts == [True]
    monkeypatch.setattr(_hyperplane, "pays", lambda *_: False)
    steps = cls(kernel="linear", C=3, tol=1e-6).fit(X, y)
    assert np.max(ours.n_iter_) < np.max(steps.n_iter_) / 5
    np.testing.assert_array_equal(ours.support_, steps.support_)
    np.testing.assert_allclose(ours.dual_coef_, steps.dual_coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, steps.intercept_, atol=1e-5)


def test_classes_weights_and_folds(starts):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1800, 5))
    y = np.digitize(X[:, 0] + rng.normal(size=1800), [-0.6, 0.6])
    weights = rng.random(1800) * (rng.random(1800) > 0.1)
    options = {"kernel": "linear", "C": 2, "class_weight": {0: 1.5, 1: 1.0, 2: 0.8}}
    ours = SVC(**options).fit(X, y, weights)
    theirs = sklearn.svm.SVC(**options).fit(X, y, weights)
    assert len(starts) == 3 and all(starts)
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.999
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-2)


@pytest.mark.parametrize("model", MODELS)
def test_sparse_rows(model, starts):
    X, y = problem(model, 45_000, 6)  # a smaller matrix would be taken as a dense one
    X[abs(X) < 0.7] = 0
    cls = MODELS[model][0]
    dense = cls(kernel="linear", tol=1e-6).fit(X, y)
    sparse = cls(kernel="linear", tol=1e-6).fit(sp.csr_array(X), y)
    assert starts == [True, True]
    np.testing.assert_allclose(sparse.coef_.toarray(), dense.coef_, atol=1e-4)


DEGENERATE = {
    "duplicates": lambda X: np.repeat(X[:100], 15, axis=0),
    "few values": np.round,
    "constant column": lambda X: np.column_stack([X, np.full(len(X), 7.0)]),
    "equal columns": lambda X: np.column_stack([X, X[:, 0]]),
    "all equal": np.ones_like,
    "far away": lambda X: X + 1e4,
    "scales": lambda X: X * 10.0 ** np.arange(-3, X.shape[1] - 3),
    "huge": lambda X: X * 1e150,
    "tiny": lambda X: X * 1e-150,
}


@pytest.mark.filterwarnings("ignore:Solver terminated early")
@pytest.mark.parametrize("kind", DEGENERATE)
@pytest.mark.parametrize("model", MODELS)
def test_degenerate_rows_change_nothing(model, kind, monkeypatch):
    X, y = problem(model, 1500, 5)
    X = DEGENERATE[kind](X)
    cls, C = MODELS[model][0], 1.0 if kind != "huge" else 1e-300

    def fitted():
        try:
            return cls(kernel="linear", C=C).fit(X, y)
        except ValueError as error:
            return str(error)

    ours = fitted()
    monkeypatch.setattr(_hyperplane, "pays", lambda *_: False)
    steps = fitted()
    if isinstance(steps, str):
        assert ours == steps
        return
    assert ours.fit_status_ <= steps.fit_status_
    if not steps.fit_status_:
        assert np.max(ours.kkt_violation_) <= 1.1e-3
        assert dual(ours, X, y) >= dual(steps, X, y) * (1 - 1e-6) - 1e-12


class Enough:
    """Follows a fit and ends it at its n-th check."""

    def __init__(self, checks):
        self.checks = checks

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        self.checks -= context.task_name == "check"
        return self.checks <= 0

    def teardown(self, estimator, context):
        pass


@pytest.mark.parametrize("checks", [1, 2, 3])
def test_a_callback_ends_it(checks):
    X, y = problem("SVR", 20_000, 20)
    model = SVR(kernel="linear", C=100).set_callbacks(Enough(checks))
    with pytest.warns(ConvergenceWarning, match="terminated early"):
        model.fit(X, y)
    assert model.fit_status_ == 1
    assert model.kkt_violation_ > model.tol
