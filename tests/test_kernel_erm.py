"""Any loss and regulariser in a kernel's space, against machines that have one of them."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import check_estimator

import fastml
from fastml.callback import ProgressBar
from fastml.kernel_erm import KernelERM
from fastml.kernel_erm._losses import NAMES, SIGNS, Corners, named
from fastml.kernel_logistic import KernelLogisticRegression
from fastml.kernel_ridge import KernelRidge
from fastml.svm import SVC, SVR

OPTIONS = {"delta": 0.7, "quantile": 0.8, "epsilon": 0.2}


def data(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)
    return X, y


def target(loss, y):
    if loss in SIGNS:
        return np.where(y > 0, 1.0, -1.0)
    return np.round(np.exp(y / 2)) if loss == "poisson" else y


def loss_naive(loss, y, f):
    e, m = y - f, y * f
    delta, q, epsilon = OPTIONS.values()
    outside = np.maximum(abs(e) - epsilon, 0)
    return {
        "squared": e**2 / 2,
        "absolute": abs(e),
        "huber": np.where(abs(e) < delta, e**2 / 2, delta * (abs(e) - delta / 2)),
        "quantile": np.maximum(q * e, (q - 1) * e),
        "epsilon_insensitive": outside,
        "squared_epsilon_insensitive": outside**2 / 2,
        "hinge": np.maximum(1 - m, 0),
        "squared_hinge": np.maximum(1 - m, 0) ** 2 / 2,
        "log": np.log1p(np.exp(-m)),
        "exponential": np.exp(-m),
        "sigmoid": 1 / (1 + np.exp(m)),
        "poisson": np.exp(f) - m,
    }[loss]


@pytest.mark.parametrize("loss", NAMES)
def test_losses_and_their_derivatives(loss):
    rng = np.random.default_rng(0)
    y, f = target(loss, rng.normal(size=500)), rng.normal(size=500)
    found = named(loss, **OPTIONS)
    corners = isinstance(found, Corners)
    if corners and not found.width:
        found = found._replace(width=1e-3)
        exact = named(loss, **OPTIONS)._replace(width=1e-12).at(y, f)[0]
        assert (abs(found.at(y, f)[0] - exact) <= found.error() + 1e-9).all()
        np.testing.assert_allclose(exact, loss_naive(loss, y, f), atol=1e-9)
    at = found.at if corners else found
    if not corners or found.width == 1:
        np.testing.assert_allclose(at(y, f)[0], loss_naive(loss, y, f), atol=1e-12)
    above, below = at(y, f + 1e-7), at(y, f - 1e-7)
    smooth = abs(above[2] - below[2]) < 1e-3 * np.maximum(1, abs(above[2]))
    first, second = ((a - b)[smooth] / 2e-7 for a, b in zip(above[:2], below[:2], strict=True))
    np.testing.assert_allclose(at(y, f)[1][smooth], first, atol=1e-6)
    np.testing.assert_allclose(at(y, f)[2][smooth], second, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("solver", ["newton", "gradient"])
def test_squared_is_kernel_ridge(solver, intercept):
    X, y = data()
    model = KernelERM(alpha=0.5, gamma=0.3, solver=solver, fit_intercept=intercept, tol=1e-14)
    model.fit(X, y)
    b = model.intercept_
    assert (b != 0) == intercept
    ridge = KernelRidge(alpha=0.5, kernel="rbf", gamma=0.3).fit(X, y - b)
    np.testing.assert_allclose(model.dual_coef_, ridge.dual_coef_, atol=1e-5)
    np.testing.assert_allclose(model.predict(X), ridge.predict(X) + b, atol=1e-5)
    if intercept:
        assert abs(model.dual_coef_.sum()) < 1e-5


@pytest.mark.parametrize(("loss", "machine"), [("hinge", SVC), ("epsilon_insensitive", SVR)])
def test_corners_are_those_of_support_vector_machines(loss, machine):
    X, y = data()
    y = target(loss, y)
    model = KernelERM(loss, alpha=0.5, gamma=0.3, epsilon=0.1).fit(X, y)
    svm = machine(C=2, gamma=0.3, tol=1e-7).fit(X, y)
    expected = svm.decision_function(X) if machine is SVC else svm.predict(X)
    np.testing.assert_allclose(model.predict(X), expected, atol=2e-3)
    assert model.dual_gap_ < 1e-4 * model.objective_


def test_log_is_kernel_logistic_regression():
    X, y = data()
    y = target("log", y)
    model = KernelERM("log", alpha=0.25, gamma=0.3).fit(X, y)
    other = KernelLogisticRegression(C=4, gamma=0.3).fit(X, y)
    np.testing.assert_allclose(model.predict(X), other.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("loss", NAMES)
def test_both_solvers_find_the_least_risk(loss):
    X, y = data(60)
    y, w = target(loss, y), np.random.default_rng(1).random(60)
    K, alpha = rbf_kernel(X, gamma=0.3), 0.4

    def risk(theta):
        f = K @ theta[:-1] + theta[-1]
        return w @ loss_naive(loss, y, f) + alpha * theta[:-1] @ K @ theta[:-1] / 2

    for solver in ("auto", "gradient"):
        model = KernelERM(loss, alpha=alpha, gamma=0.3, solver=solver, tol=1e-7, **OPTIONS)
        model.fit(X, y, w)
        theta = np.r_[model.dual_coef_, model.intercept_]
        assert model.objective_ == pytest.approx(risk(theta), rel=1e-4)
        for scale in (1e-2, 1e-1):
            for seed in range(5):
                off = scale * np.random.default_rng(seed).normal(size=len(theta))
                assert risk(theta + off) >= risk(theta) - 1e-4 * abs(risk(theta))


def test_loss_and_regulariser_of_the_user():
    def cauchy(y, f):
        return np.log(1 + (y - f) ** 2)

    def slope(y, f):
        return 2 * (f - y) / (1 + (y - f) ** 2)

    X, y = data(60)
    with fastml.config_context(strict=True):
        found = [KernelERM(loss, alpha=0.2).fit(X, y) for loss in (cauchy, (cauchy, slope))]
    np.testing.assert_allclose(found[0].predict(X), found[1].predict(X), atol=1e-3)
    assert found[1].dual_gap_ < 1e-6

    def cube(t):
        return t**3

    K = rbf_kernel(X)

    def objective(theta):
        norm = np.sqrt(theta[:-1] @ K @ theta[:-1])
        return cauchy(y, K @ theta[:-1] + theta[-1]).sum() + 0.2 * norm**3

    for R in (cube, (cube, lambda t: 3 * t * t)):
        model = KernelERM((cauchy, slope), alpha=0.2, regularizer=R).fit(X, y)
        theta = np.r_[model.dual_coef_, model.intercept_]
        assert model.objective_ == pytest.approx(objective(theta), rel=1e-6)
        better = minimize(objective, theta, method="L-BFGS-B", options={"maxiter": 50}).fun
        assert model.objective_ <= better * (1 + 1e-4)


def test_what_cannot_be_compiled_is_called():
    def loss(y, f):
        return float(str((y - f) ** 2))

    X, y = data(30)
    expected = KernelERM(alpha=0.5, gamma=0.3, solver="gradient", tol=1e-8).fit(X, y)
    model = KernelERM(loss, alpha=1.0, gamma=0.3, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-3)


def test_a_heavy_norm_leaves_the_intercept():
    X, y = data()
    model = KernelERM(alpha=1e6, regularizer="norm").fit(X, y)
    assert (model.dual_coef_ == 0).all()
    assert model.intercept_ == pytest.approx(y.mean())
    light = KernelERM(alpha=1.0, gamma=0.3, regularizer="norm").fit(X, y)
    norm = np.sqrt(light.dual_coef_ @ rbf_kernel(X, gamma=0.3) @ light.dual_coef_)
    same = KernelERM(alpha=1 / norm, gamma=0.3).fit(X, y)  # R' = alpha there
    np.testing.assert_allclose(light.predict(X), same.predict(X), atol=1e-3)


def test_rows_of_all_kinds():
    X, y = data()
    model = KernelERM("huber", gamma=0.3, alpha=0.5).fit(X, y)
    few = KernelERM("huber", gamma=0.3, alpha=0.5).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(few.predict(sparse.csr_matrix(X)), model.predict(X), atol=1e-7)
    K = rbf_kernel(X, gamma=0.3)
    given = KernelERM("huber", kernel="precomputed", alpha=0.5).fit(K, y)
    np.testing.assert_allclose(given.predict(K), model.predict(X), atol=1e-7)
    single = KernelERM("huber", gamma=0.3, alpha=0.5).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.predict(X), model.predict(X), atol=1e-2)
    for solver in ("newton", "gradient"):
        streamed = KernelERM("huber", gamma=0.3, alpha=0.5, max_gram_mb=0, solver=solver)
        np.testing.assert_allclose(streamed.fit(X, y).predict(X), model.predict(X), atol=1e-3)


def test_progress_and_complaints():
    X, y = data()
    KernelERM("hinge").set_callbacks(ProgressBar()).fit(X, target("hinge", y))
    with pytest.raises(ValueError, match="must be -1 or 1"):
        KernelERM("hinge").fit(X, y)
    with pytest.raises(ValueError, match="must not be negative"):
        KernelERM("poisson").fit(X, y)
    with pytest.raises(ValueError, match="solver='newton'"):
        KernelERM("sigmoid", solver="newton").fit(X, target("sigmoid", y))
    with pytest.raises(ValueError, match="square"):
        KernelERM(kernel="precomputed").fit(X, y)
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        KernelERM("log", solver="gradient", max_iter=1, alpha=1e-3).fit(X, target("log", y))


def test_is_an_estimator():
    check_estimator(KernelERM())
