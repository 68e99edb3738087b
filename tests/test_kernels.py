"""Kernel objects: values, gradients, algebra, scikit-learn's estimators, the check of Mercer."""

import math
import pickle
from types import FunctionType

import numpy as np
import pytest
import sklearn.gaussian_process.kernels as stock
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVC

import fastml
from fastml.gaussian_process import kernels
from fastml.gaussian_process.kernels import (
    RBF,
    AdditiveChiSquared,
    ChiSquared,
    Composed,
    ConstantKernel,
    DotProduct,
    Exp,
    Intersection,
    Laplacian,
    Normalized,
    Polynomial,
    QuadraticForm,
    Sigmoid,
    UserKernel,
    WhiteKernel,
    check_mercer,
)
from fastml.jit import kernel
from fastml.metrics.pairwise import gram_apply

A = np.array([[2.0, 0.5, 0.0, 0.0], [0.5, 1.0, 0.0, 0.0], [0.0, 0.0, 3.0, 1.0], [0, 0, 1, 1.0]])


def cauchy(x, y, gamma=1.0, power=1.0):
    return 1 / (1 + gamma * np.sum((x - y) ** 2)) ** power


def squares(X):
    return np.hstack([X, X**2])


def user(**bounds):
    return UserKernel(cauchy, {"gamma": 0.7, "power": 1.5}, bounds)


# A kernel, and its formula for two vectors.
VECTORS = [
    (Laplacian(0.3), lambda x, y: math.exp(-0.3 * abs(x - y).sum())),
    (Polynomial(3, 0.5, 1.5), lambda x, y: (0.5 * x @ y + 1.5) ** 3),
    (Polynomial(2, 1.0, 0.0, coef0_bounds="fixed"), lambda x, y: (x @ y) ** 2),
    (Sigmoid(0.2, 0.1), lambda x, y: math.tanh(0.2 * x @ y + 0.1)),
    (Sigmoid(0.2, -0.1, coef0_bounds="fixed"), lambda x, y: math.tanh(0.2 * x @ y - 0.1)),
    (Intersection(), lambda x, y: np.minimum(x, y).sum()),
    (
        Intersection(normalize=True),
        lambda x, y: np.minimum(x, y).sum() / (x.sum() * y.sum()) ** 0.5,
    ),
    (ChiSquared(0.4), lambda x, y: math.exp(-0.4 * ((x - y) ** 2 / (x + y)).sum())),
    (AdditiveChiSquared(), lambda x, y: (2 * x * y / (x + y)).sum()),
    (QuadraticForm(A), lambda x, y: x @ A @ y),
    (QuadraticForm([1.0, 2.0, 0.0, 3.0]), lambda x, y: x @ np.diag([1.0, 2.0, 0.0, 3.0]) @ y),
]
MADE = [
    (user(), lambda x, y: cauchy(x, y, 0.7, 1.5)),
    (Exp(DotProduct(0.5) * 0.1), lambda x, y: math.exp(0.1 * (0.25 + x @ y))),
    (
        Normalized(Polynomial(2)),
        lambda x, y: (1 + x @ y) ** 2 / ((1 + x @ x) * (1 + y @ y)),
    ),
    (
        Composed(Polynomial(2), squares),
        lambda x, y: (1 + x @ y + (x**2) @ (y**2)) ** 2,
    ),
    (
        2.0 * Laplacian(0.3) * Polynomial(2) + RBF(2.0),
        lambda x, y: (
            2 * math.exp(-0.3 * abs(x - y).sum()) * (1 + x @ y) ** 2
            + math.exp(-((x - y) @ (x - y)) / 8)
        ),
    ),
    (
        (Laplacian(0.3) + 1.0) ** 2,
        lambda x, y: (math.exp(-0.3 * abs(x - y).sum()) + 1) ** 2,
    ),
]
TUNED = [
    Laplacian(0.3),
    Laplacian(0.3, "fixed"),
    Polynomial(3, 0.5, 1.5),
    Polynomial(3, 0.5, 1.5, gamma_bounds="fixed"),
    Sigmoid(0.2, 0.1),
    Sigmoid(0.2, -0.1, coef0_bounds="fixed"),
    ChiSquared(0.4),
    Intersection(),
    AdditiveChiSquared(),
    QuadraticForm(A),
    user(),
    user(gamma=(1e-3, 1e3)),
    user(power=(0.1, 10), gamma=(1e-3, 1e3)),
    user(power="fixed", gamma=(1e-3, 1e3)),
    Exp(Laplacian(0.3) * 2.0),
    Normalized(Polynomial(3, 0.5, 1.5)),
    Normalized(Exp(DotProduct(0.5) * 0.1)),
    Normalized(RBF([1.0, 2.0, 3.0, 4.0]) * DotProduct(2.0)),
    Composed(Polynomial(2) * Laplacian(0.1), squares),
    Laplacian(0.3) * Polynomial(2) + ConstantKernel(2.0) * RBF(2.0) + WhiteKernel(0.1),
    (Laplacian(0.3) + ChiSquared(0.1)) ** 2.5,
]


def short(value):
    """A name that is the same in every process, which an address in it is not."""
    return "formula" if isinstance(value, FunctionType) else str(value)[:40]


def data(n=12, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).uniform(0.1, 2, size=(n, 4)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("k", "formula"), VECTORS + MADE, ids=short)
def test_matches_its_formula(k, formula, dtype):
    X, Y = data(dtype=dtype), data(7, dtype, seed=1)
    rtol = 2e-5 if dtype == np.float32 else 1e-9
    expected = np.array([[formula(x, y) for y in Y] for x in X.astype(np.float64)])
    np.testing.assert_allclose(k(X, Y), expected, rtol=rtol)
    expected = np.array([[formula(x, y) for y in X] for x in X.astype(np.float64)])
    np.testing.assert_allclose(k(X), expected, rtol=rtol)
    np.testing.assert_allclose(k.diag(X), np.diag(expected), rtol=rtol)


@pytest.mark.parametrize(("k", "formula"), VECTORS, ids=short)
def test_sparse_rows(k, formula):
    if isinstance(k, (ChiSquared, AdditiveChiSquared)):
        pytest.skip("scikit-learn's function takes dense rows")
    X, Y = data(), data(7, seed=1)
    X[X < 0.7] = 0
    for convert in (sparse.csr_matrix, sparse.csr_array):
        np.testing.assert_allclose(k(convert(X), convert(Y)), k(X, Y), rtol=1e-12)
        np.testing.assert_allclose(k(convert(X)), k(X), rtol=1e-12)
        np.testing.assert_allclose(k.diag(convert(X)), k.diag(X), rtol=1e-12)


@pytest.mark.parametrize("k", TUNED, ids=str)
def test_gradients(k):
    X = data()
    K, gradient = k(X, eval_gradient=True)
    np.testing.assert_allclose(K, k(X), rtol=1e-12)
    assert gradient.shape == (12, 12, k.n_dims)
    assert len(k.bounds) == k.n_dims
    step = 1e-5
    for i in range(k.n_dims):
        up, down = k.theta.copy(), k.theta.copy()
        up[i] += step
        down[i] -= step
        difference = (k.clone_with_theta(up)(X) - k.clone_with_theta(down)(X)) / (2 * step)
        np.testing.assert_allclose(gradient[:, :, i], difference, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("k", TUNED, ids=str)
def test_scikit_learns_conventions(k):
    again = clone(k)
    assert again == k
    assert again is not k
    assert pickle.loads(pickle.dumps(k)).get_params().keys() == k.get_params().keys()
    other = k.clone_with_theta(k.theta + 0.1)
    np.testing.assert_allclose(other.theta, k.theta + 0.1)
    if k.n_dims:
        assert other != k
        assert [h.name for h in other.hyperparameters] == [h.name for h in k.hyperparameters]
        for h in k.hyperparameters:
            name = h.name
            if not isinstance(k, UserKernel):
                assert name in k.get_params()
    assert isinstance(k, stock.Kernel)
    assert type(k).__name__ in repr(k) or isinstance(k, stock.KernelOperator | stock.Exponentiation)
    assert k.is_stationary() in (True, False)
    with pytest.raises(ValueError, match="Gradient"):
        k(data(), data(), eval_gradient=True)


def test_stationary_kernels_say_so():
    assert Laplacian().is_stationary()
    assert Exp(Laplacian() + RBF()).is_stationary()
    assert not Composed(RBF(), squares).is_stationary()
    assert not any(k.is_stationary() for k in (Polynomial(), Sigmoid(), ChiSquared(), user()))


def test_nothing_of_scikit_learns_is_hidden():
    assert kernels.RBF is stock.RBF
    assert {name for name in dir(stock) if not name.startswith("_")} <= set(dir(kernels))
    assert fastml.gaussian_process.kernels is kernels
    assert kernels.__name__ == "fastml.gaussian_process.kernels"
    assert fastml.gaussian_process.GaussianProcessRegressor is GaussianProcessRegressor


# -- algebra


def test_normalized_zero_rows():
    X = np.array([[0.0, 0.0], [1.0, 2.0], [0.0, 3.0]])
    K = Normalized(DotProduct(sigma_0=0.0, sigma_0_bounds="fixed"))(X)
    np.testing.assert_allclose(K[0], 0)
    np.testing.assert_allclose(np.diag(K), [0, 1, 1])
    k = Normalized(DotProduct(sigma_0=0.0, sigma_0_bounds="fixed"))
    np.testing.assert_array_equal(k.diag(X), [0, 1, 1])


def test_composed_with_transformers():
    X = data(30)
    scaler = StandardScaler().fit(X)
    k = Composed(RBF(), scaler)
    np.testing.assert_allclose(k(X), RBF()(scaler.transform(X)))
    assert clone(k + 1.0).k1.feature_map is scaler  # still fitted
    features = PolynomialFeatures(2).fit(X)
    linear = DotProduct(sigma_0=0.0, sigma_0_bounds="fixed")
    K = Composed(linear, features)(X, X[:3])
    np.testing.assert_allclose(K, features.transform(X) @ features.transform(X[:3]).T)
    with pytest.raises(NotFittedError):
        Composed(RBF(), StandardScaler())(X)
    gp = GaussianProcessRegressor(k, alpha=1e-6).fit(X, X[:, 0])
    assert gp.score(X, X[:, 0]) > 0.99


def test_set_params_reaches_inside():
    k = Exp(Laplacian(1.0) * 2.0)
    k.set_params(kernel__k1__gamma=3.0)
    assert k.kernel.k1.gamma == 3
    assert k.get_params()["kernel__k1__gamma"] == 3
    assert k != Exp(Laplacian(1.0) * 2.0)


# -- in estimators


@pytest.mark.parametrize(
    "k",
    [
        Laplacian(),
        Polynomial(2),
        ChiSquared(),
        user(gamma=(1e-3, 1e3)),
        Exp(Laplacian() * 0.5),
        Normalized(Polynomial(2)),
        Composed(RBF(), squares),
    ],
    ids=str,
)
def test_gaussian_processes_tune_them(k):
    X = data(40)
    y = np.sin(3 * X[:, 0])
    gp = GaussianProcessRegressor(k + WhiteKernel(1e-2, "fixed"), random_state=0).fit(X, y)
    start = gp.log_marginal_likelihood((k + WhiteKernel(1e-2, "fixed")).theta)
    assert gp.log_marginal_likelihood_value_ >= start
    _, deviation = gp.predict(data(5, seed=2), return_std=True)
    assert (deviation > 0).all()


def test_classifiers_and_ridge():
    X, y = make_classification(60, 4, random_state=0)
    X = X - X.min(axis=0)
    for k in (Laplacian(0.5), ChiSquared(0.5), user(), QuadraticForm(A)):
        K = k(X)
        svc = SVC(kernel=k).fit(X, y)
        np.testing.assert_array_equal(
            svc.predict(X), SVC(kernel="precomputed").fit(K, y).predict(K)
        )
        ridge = KernelRidge(kernel=k, alpha=0.1).fit(X, y)
        same = KernelRidge(kernel="precomputed", alpha=0.1).fit(K, y)
        np.testing.assert_allclose(ridge.predict(X), same.predict(K), rtol=1e-6)
    gp = GaussianProcessClassifier(1.0 * Laplacian(), random_state=0).fit(X, y)
    assert gp.score(X, y) > 0.9


# -- the user's kernel


@kernel
def overlap(x, y):
    return np.minimum(x, y).sum()


def test_user_kernel_takes_what_the_decorator_makes():
    X = data()
    k = UserKernel(overlap)
    np.testing.assert_allclose(k(X, X[:3]), overlap(X, X[:3]))
    assert repr(k) == "UserKernel(overlap)"
    assert repr(user()) == "UserKernel(cauchy, gamma=0.7, power=1.5)"
    assert k.n_dims == 0
    assert k.bounds.size == 0


def test_user_kernel_without_a_compiled_path_runs_in_python():
    k = UserKernel(lambda x, y: float(eval("x @ y")))
    X = data()
    np.testing.assert_allclose(k(X), X @ X.T)


# -- Mercer


@pytest.mark.parametrize("k", [k for k, _ in VECTORS + MADE if not isinstance(k, Sigmoid)], ids=str)
def test_mercer_kernels_pass(k):
    report = check_mercer(k, data(30))
    assert report, str(report)
    assert report.margin >= -report.tolerance
    assert str(report).startswith("Mercer's condition holds on these 30 objects")


def test_in_single_precision_rounding_is_larger():
    X = data(60, np.float32)
    assert check_mercer("rbf", X, gamma=1e-3)
    assert check_mercer(Polynomial(2), X)


def test_a_negative_eigenvalue_comes_with_its_vector():
    X = np.random.default_rng(0).normal(size=(20, 3))
    report = check_mercer(Sigmoid(1.0, -1.0, coef0_bounds="fixed"), X)
    assert not report
    K = Sigmoid(1.0, -1.0, coef0_bounds="fixed")(X)
    alpha = report.coefficients
    assert alpha @ K @ alpha == pytest.approx(report.margin)
    assert report.margin < 0
    assert f"negative eigenvalue {report.margin:.3g}" in str(report)
    assert report.negative_diagonal is not None
    assert report.too_large is not None


def test_asymmetry_names_the_pair():
    @kernel  # which says that it is symmetric
    def skewed(x, y):
        return x @ y + (0.5 * (x[0] - y[0]) if x[0] > 1.9 or y[0] > 1.9 else 0.0)

    X = data(10)
    X[3, 0], X[7, 0] = 1.95, 0.1
    report = check_mercer(skewed, X)
    i, j, difference = report.asymmetry
    assert 3 in (i, j)
    x, y = X[i], X[j]
    assert difference == pytest.approx(skewed(x, y) - skewed(y, x))
    assert f"not symmetric: k({i}, {j}) - k({j}, {i})" in str(report)


def test_not_finite():
    X = data(5)
    X[2, 1] = 0.0

    @kernel
    def quotient(x, y):
        return x[1] / y[1]

    with np.errstate(all="ignore"):
        report = check_mercer(quotient, X)
    assert report.not_finite[:2] == (0, 2)
    assert str(report) == "Not a Mercer kernel: k(0, 2) = inf."


def test_what_can_be_checked():
    X = data(6)
    assert check_mercer("precomputed", X @ X.T)
    assert not check_mercer("precomputed", -(X @ X.T))
    assert check_mercer(lambda X, Y: X @ Y.T, X)
    assert check_mercer("chi2", X, gamma=0.3)
    assert not check_mercer("additive_chi2", X)  # only conditionally so
    assert not check_mercer("precomputed", np.diag([1.0, 1e-3, -1e-5]))
    assert check_mercer("precomputed", np.diag([1.0, 1e-3, -1e-5]), tol=1e-4)
    assert check_mercer("precomputed", np.zeros((3, 3)))
    with pytest.raises(ValueError, match="not a square matrix"):
        check_mercer("precomputed", X)


def test_misuse_is_told():
    X = data(6)
    with pytest.raises(ValueError, match=r"fastml\.jit\.kernel"):
        check_mercer(lambda x, y: 1.0, X)
    with pytest.raises(ValueError, match="not be negative"):
        check_mercer("rbf", X, tol=-1)
    with pytest.raises(ValueError, match="no objects"):
        check_mercer(RBF(), [])
    for matrix in (np.eye(3), np.ones(3)):
        with pytest.raises(ValueError, match="X has 4 features, but A is for 3"):
            QuadraticForm(matrix)(X)
    with pytest.raises(ValueError, match="square matrix"):
        QuadraticForm(np.ones((4, 3)))(X)
    for metric in (RBF(), "rbf"):
        with pytest.raises(ValueError, match="V has 5 rows, but there are 6 columns"):
            gram_apply(X, None, np.ones(5), metric=metric)
    with pytest.raises(ValueError, match="'gamma' has bounds, but no value"):
        _ = UserKernel(cauchy, {"power": 1.5}, {"gamma": (0.1, 1)}).theta
    with pytest.raises(ValueError, match=r"'gamma' is -0\.7, but what is tuned is its logarithm"):
        _ = UserKernel(cauchy, {"gamma": -0.7}, {"gamma": (0.1, 1)}).theta
