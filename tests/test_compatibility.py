"""Machines of features of a row and a class, against a general solver and Crammer and Singer's."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

import fastml
from fastml._native import linear_svm as native
from fastml.svm import CompatibilityClassifier, LinearSVC


def problem(n=60, d=4, k=3, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X @ rng.normal(size=(d, k)) + 0.3 * rng.normal(size=(n, k))).argmax(axis=1)
    return X.astype(dtype), y


def solved(psi, y, C, tol=1e-10, seed=0):
    codes = y.astype(np.int32)
    solver = native.compatibility_solver(psi, codes, C, tol, 100_000, seed)
    while not solver.done:
        native.advance([solver], True, 1)
    w = np.empty(psi.shape[2])
    solver.coef(w)
    return w, solver


def primal_naive(w, psi, y, C):
    scores = psi @ w
    n = np.arange(len(y))
    cost = np.ones_like(scores)
    cost[n, y] = 0
    return w @ w / 2 + C @ ((scores + cost).max(axis=1) - scores[n, y])


def optimum_naive(psi, y, C):
    """The primal with slacks, by a general solver of problems with constraints."""
    n, k, D = psi.shape
    differences = (psi[np.arange(n), y][:, None] - psi).astype(float)
    slack = np.repeat(np.eye(n), k, axis=0)
    A = np.c_[differences.reshape(n * k, D), slack]
    cost = (np.arange(k) != y[:, None]).astype(float).ravel()
    found = minimize(
        lambda v: (v[:D] @ v[:D] / 2 + C @ v[D:], np.r_[v[:D], C]),
        np.r_[np.zeros(D), np.ones(n)],
        jac=True,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda v: A @ v - cost, "jac": lambda v: A},
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    return found.fun


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "k", "D"), [(1, 2, 1), (25, 3, 5), (40, 5, 19)])
def test_solver_finds_the_optimum(n, k, D, dtype):
    rng = np.random.default_rng(D)
    psi = rng.normal(size=(n, k, D)).astype(dtype)
    y, C = rng.integers(0, k, n), rng.uniform(0.2, 2, n)
    w, solver = solved(psi, y, C, tol=1e-8)
    value = primal_naive(w, psi.astype(float), y, C)
    assert solver.converged
    assert solver.primal == pytest.approx(value, rel=1e-9)
    assert -1e-9 <= solver.gap <= 1e-6 * value
    assert value == pytest.approx(optimum_naive(psi, y, C), rel=1e-6)


def test_default_is_crammer_and_singer():
    X, y = problem(300, 6, 4)
    options = {"tol": 1e-8, "random_state": 0, "max_iter": 100_000}
    mine = CompatibilityClassifier(C=0.7, **options).fit(X, y)
    theirs = LinearSVC(C=0.7, multi_class="crammer_singer", **options).fit(X, y)
    np.testing.assert_allclose(mine.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, atol=1e-6)
    few = mine.fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(few.coef_, theirs.coef_, atol=1e-6)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_block_map_of_the_user_is_the_default(d):
    def psi(x, c, j):
        return x[j % len(x)] if j // len(x) == c else 0.0

    def of_all(X, c):
        return np.pad(X, ((0, 0), (c * d, (2 - c) * d)))

    X, y = problem(200, d, 3)
    options = {"fit_intercept": False, "tol": 1e-8, "random_state": 0, "max_iter": 100_000}
    default = CompatibilityClassifier(**options).fit(X, y)
    assert default.dual_gap_ < 1e-5
    for model in (CompatibilityClassifier(psi, n_psi=3 * d), CompatibilityClassifier(of_all)):
        with fastml.config_context(strict=True):
            model.set_params(**options).fit(X, y)
        np.testing.assert_allclose(model.coef_.reshape(3, d), default.coef_, atol=1e-5)
        np.testing.assert_allclose(
            model.decision_function(X), default.decision_function(X), atol=1e-4
        )


def test_what_cannot_be_compiled_is_called():
    def psi(x, c, j):
        return float(str(x[j % len(x)])) if j // len(x) == c else 0.0

    X, y = problem(20, 2, 2)
    model = CompatibilityClassifier(psi, n_psi=4).fit(X, y)
    assert model.score(X, y) > 0.8
    with fastml.config_context(strict=True), pytest.raises(fastml.NotAcceleratedError):
        CompatibilityClassifier(psi, n_psi=4).fit(X, y)


def test_weights_count():
    X, y = problem(100)
    w = np.random.default_rng(0).integers(0, 3, 100)
    options = {"tol": 1e-9, "max_iter": 100_000, "random_state": 0}
    weighted = CompatibilityClassifier(**options).fit(X, y, w)
    repeated = CompatibilityClassifier(**options).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-5)
    balanced = CompatibilityClassifier(class_weight="balanced", **options).fit(X, y)
    by_row = len(y) / (3 * np.bincount(y)[y])
    np.testing.assert_allclose(
        balanced.coef_, weighted.set_params(**options).fit(X, y, by_row).coef_, atol=1e-6
    )


def test_complaints():
    X, y = problem()
    with pytest.raises(ValueError, match="as many columns"):
        CompatibilityClassifier(lambda X, c: X[:, : 1 + c]).fit(X, y)
    with pytest.raises(ValueError, match="must be finite"):
        CompatibilityClassifier(lambda X, c: X * np.nan).fit(X, y)
    with pytest.raises(ValueError, match="only one class"):
        CompatibilityClassifier().fit(X, y * 0)
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        CompatibilityClassifier(C=1e4, max_iter=1).fit(X, y)


def test_is_an_estimator():
    check_estimator(CompatibilityClassifier(tol=1e-12, max_iter=10**6, random_state=0))
