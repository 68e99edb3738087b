"""Kernel logistic regression: against a naive twin and scikit-learn's linear one."""

import pickle

import numpy as np
import pytest
from fastml._native.cholesky import scaled_mirror
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.estimator_checks import check_estimator

import fastml
from fastml.callback import ProgressBar
from fastml.kernel_logistic import KernelLogisticRegression
from fastml.kernel_logistic._loss import Loss

WAYS = tuple((solver, k) for solver in ("newton", "newton-cg", "gradient") for k in (2, 4))
DTYPES = (np.float32, np.float64)


@pytest.fixture(autouse=True)
def low_rank(monkeypatch):
    """A preconditioner that leaves something to do."""
    monkeypatch.setattr("fastml.kernel_logistic._estimator.RANK", 10)


def problem(n=90, k=2, d=3, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    scores = np.sin(2 * X) @ rng.normal(size=(d, k)) + 0.5 * rng.gumbel(size=(n, k))
    return X.astype(dtype), scores.argmax(axis=1), rng.random(n)


def fit_naive(K, y, C, w):
    """The minimum over expansions and intercepts, by BFGS; returns it and the scores there."""
    n, k = len(K), y.max() + 1
    Y = np.eye(k)[y]

    def objective(theta):
        beta, b = theta[: n * k].reshape(n, k), theta[n * k :]
        F = K @ beta + b
        loss = logsumexp(F, axis=1) - (Y * F).sum(axis=1)
        R = C * w[:, None] * (np.exp(F - logsumexp(F, axis=1)[:, None]) - Y)
        gradient = np.r_[(K @ (R + beta)).ravel(), R.sum(axis=0)]
        return C * w @ loss + (beta * (K @ beta)).sum() / 2, gradient

    start = np.zeros(n * k + k)
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 5000})
    beta, b = found.x[: n * k].reshape(n, k), found.x[n * k :]
    return found.fun, K @ beta + b


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("solver", "k"), WAYS)
def test_equals_the_naive_one(solver, k, dtype, weighted):
    X, y, w = problem(k=k, dtype=dtype)
    w[::9] = 0
    w = w if weighted else np.ones(len(X))
    K = pairwise_kernels(X.astype(np.float64), metric="rbf", gamma=0.5)
    C, model = 3.0, KernelLogisticRegression(3.0, gamma=0.5, solver=solver)
    with fastml.config_context(strict=True):
        model.fit(X, y, sample_weight=w if weighted else None)
    # Opposite scores of two classes have half the squared norm of their difference.
    objective, scores = fit_naive(K / 2 if k == 2 else K, y, C, w)
    scores -= logsumexp(scores, axis=1)[:, None]
    np.testing.assert_allclose(model.objective_, objective, rtol=1e-4)
    assert model.objective_ - model.dual_gap_ <= objective * (1 + 1e-6)
    np.testing.assert_allclose(model.predict_proba(X), np.exp(scores), atol=2e-2)
    assert model.dual_gap_ <= (1e-5 if dtype == np.float32 else 1e-8) * model.objective_


@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(("solver", "k"), WAYS)
def test_linear_kernel_is_logistic_regression(solver, k, fit_intercept, C):
    X, y, w = problem(200, k)
    params = {"C": C, "fit_intercept": fit_intercept, "class_weight": "balanced"}
    expected = LogisticRegression(**params, tol=1e-12, max_iter=10_000).fit(X, y, w)
    model = KernelLogisticRegression(**params, kernel="linear", solver=solver, tol=1e-12)
    model.fit(X, y, w)
    scale = max(1.0, np.abs(expected.coef_).max())
    np.testing.assert_allclose(model.dual_coef_ @ X, expected.coef_, atol=1e-5 * scale)
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=1e-5)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    np.testing.assert_allclose(model.predict_log_proba(X), expected.predict_log_proba(X), atol=1e-4)
    if fit_intercept:
        np.testing.assert_allclose(model.dual_coef_.sum(axis=1), 0, atol=1e-8 * C * len(X))
        np.testing.assert_allclose(
            model.intercept_ - model.intercept_.mean() * (k > 2),
            expected.intercept_ - expected.intercept_.mean() * (k > 2),
            atol=1e-5,
        )


@pytest.mark.parametrize(("solver", "k"), WAYS)
def test_every_kind_of_kernel_and_of_rows(solver, k):
    X, y, _ = problem(k=k)
    expected = KernelLogisticRegression(gamma=0.5, solver=solver).fit(X, y).predict_proba(X)

    def gaussian(a, b, gamma):
        return np.exp(-gamma * np.sum((a - b) ** 2))

    function = {"kernel": fastml.jit.kernel(gaussian), "kernel_params": {"gamma": 0.5}}
    for params in ({"kernel": RBF(1.0)}, function):
        model = KernelLogisticRegression(**params, solver=solver).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-4)
    for make in (sparse.csr_matrix, sparse.csc_array):
        model = KernelLogisticRegression(gamma=0.5, solver=solver).fit(make(X), y)
        np.testing.assert_allclose(model.predict_proba(make(X)), expected, atol=1e-4)
    K = pairwise_kernels(X, metric="rbf", gamma=0.5)
    before = K.copy()
    model = KernelLogisticRegression(kernel="precomputed", solver="auto").fit(K, y)
    np.testing.assert_allclose(model.predict_proba(K), expected, atol=1e-4)
    np.testing.assert_array_equal(K, before)


def test_auto_streams_what_does_not_fit():
    for k in (2, 4):
        X, y, _ = problem(k=k)
        kept = KernelLogisticRegression(gamma=0.5).fit(X, y)
        streamed = KernelLogisticRegression(gamma=0.5, max_gram_mb=0).fit(X, y)
        np.testing.assert_allclose(streamed.predict_proba(X), kept.predict_proba(X), atol=1e-4)


def test_scores_that_separate_classes_by_far():
    X = np.r_[np.zeros((40, 2)), np.ones((40, 2))]
    y = np.repeat(["a", "b"], 40)
    for C in (1e-8, 1e6):
        model = KernelLogisticRegression(C).fit(X, y)
        assert model.score(X, y) == 1
        assert model.n_iter_ < 60
        assert np.isfinite(model.predict_log_proba(1e3 * X)).all()
    weights = np.r_[np.full(40, 1e-6), np.full(40, 1e6)]
    assert np.isfinite(KernelLogisticRegression(100).fit(X, y, weights).objective_)


def test_errors_and_warnings():
    X, y, w = problem(k=4)
    with pytest.raises(ValueError, match="only one class"):
        KernelLogisticRegression().fit(X, np.ones(len(X)))
    with pytest.raises(ValueError, match="square"):
        KernelLogisticRegression(kernel="precomputed").fit(X, y)
    with pytest.raises(ValueError, match="Negative"):
        KernelLogisticRegression().fit(X, y, -w)
    with pytest.raises(ValueError, match="positive definite"):
        KernelLogisticRegression(kernel="precomputed").fit(-100 * np.eye(len(X)), y > 1)
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        KernelLogisticRegression(max_iter=1).fit(X, y)


@pytest.mark.parametrize(("solver", "k"), WAYS)
def test_callbacks_and_copies(solver, k):
    X, y, _ = problem(k=k)
    seen = []

    class Watcher(ProgressBar):
        def on_fit_task_end(self, estimator, context, **kwargs):
            seen.append(context.task_name)
            return super().on_fit_task_end(estimator, context, **kwargs)

    model = KernelLogisticRegression(solver=solver).set_callbacks(Watcher()).fit(X, y)
    assert seen.count("iteration") == model.n_iter_
    twin = pickle.loads(pickle.dumps(KernelLogisticRegression(solver=solver).fit(X, y)))
    np.testing.assert_array_equal(twin.predict_proba(X), model.predict_proba(X))
    with pytest.raises(TypeError, match="no counterpart"):
        fastml.to_sklearn(twin)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("params", [{}, {"max_gram_mb": 0}, {"solver": "gradient"}])
def test_check_estimator(params):
    results = check_estimator(KernelLogisticRegression(**params), on_fail=None)
    assert not [r["check_name"] for r in results if r["status"] == "failed"]


@pytest.mark.parametrize("k", [1, 3])
def test_derivatives(k):
    rng = np.random.default_rng(k)
    Y = rng.integers(0, 2, (20, 1)).astype(float) if k == 1 else np.eye(3)[rng.integers(0, 3, 20)]
    loss, F, V = Loss(Y, rng.random(20)), rng.normal(size=(20, k)), rng.normal(size=(20, k))
    h = 1e-4
    slope, values = loss.at(F), [loss.value(F + t * h * V) for t in (-1, 0, 1)]
    first, second = (values[2] - values[0]) / (2 * h), np.diff(values, 2)[0] / h**2
    np.testing.assert_allclose((slope.residual * V).sum(), first, rtol=1e-6)
    np.testing.assert_allclose(slope.curvature(V), second, rtol=1e-4)
    ones = np.outer(np.ones(20), V[0])
    np.testing.assert_allclose(V[0] @ slope.curvature_of_constants() @ V[0], slope.curvature(ones))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 31, 32, 33, 100, 1100])
def test_scaled_mirror(n, dtype, threads):
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n)).astype(dtype)
    diagonal, scale = rng.random((2, n)).astype(dtype)
    K = np.tril(A, -1) + np.tril(A, -1).T + np.diag(diagonal)
    expected = np.outer(scale, scale) * (K + dtype(0.5)) + 2 * np.eye(n)
    below = np.tril(A, -1)
    scaled_mirror(A, diagonal, scale, 0.5, 2.0, threads)
    np.testing.assert_allclose(np.triu(A), np.triu(expected), rtol=8 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(np.tril(A, -1), below)
