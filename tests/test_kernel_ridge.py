"""Kernel ridge regression: against scikit-learn's and a naive twin, by every solver."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import LinAlgWarning
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge as StockKernelRidge
from sklearn.metrics.pairwise import pairwise_kernels

import fastml
from fastml.callback import ProgressBar
from fastml.kernel_ridge import KernelRidge
from fastml.kernel_ridge._low_rank import Deflation, pivoted_cholesky
from fastml.metrics._kernel_function import KernelFunction

SOLVERS = ("cholesky", "cg", "gradient")
DTYPES = (np.float32, np.float64)
KERNELS = ("linear", "rbf", "laplacian", "poly", "cosine", "chi2")


@pytest.fixture
def low_rank(monkeypatch):
    """A preconditioner that leaves something to do."""
    monkeypatch.setattr("fastml.kernel_ridge._estimator.RANK", 20)


def problem(n=120, d=5, targets=None, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)).astype(dtype)
    y = np.sin(5 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)
    y = y if targets is None else y[:, None] * np.arange(1, targets + 1) + rng.random(targets)
    return X, y.astype(dtype), rng.random(n)


def fit_naive(K, Y, alpha, w):
    """The minimum of Σ w (y - K c)² + alpha cᵀ K c, for one target after the other."""
    n = len(K)
    columns = [np.linalg.solve(w[:, None] * K + a * np.eye(n), w * y) for a, y in zip(alpha, Y.T)]
    return np.array(columns).T


def assert_close(got, expected, tol):
    np.testing.assert_allclose(got, expected, rtol=tol, atol=tol * np.abs(expected).max())
    assert got.dtype == expected.dtype


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [1.0, [0.5, 2.0, 0.5]])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_equals_scikit_learn_and_the_naive_one(kernel, dtype, alpha, weighted, low_rank):
    X, Y, w = problem(targets=3, dtype=dtype)
    w[::7] = 0
    w = w if weighted else None
    # scikit-learn's stumbles over chi2 without a gamma.
    params = {"kernel": kernel, "gamma": 0.5 if kernel == "chi2" else None}
    stock = StockKernelRidge(alpha, **params).fit(X, Y, sample_weight=w)
    K = KernelFunction(kernel, params)(X.astype(np.float64), X.astype(np.float64))
    naive = fit_naive(K, Y, np.broadcast_to(alpha, 3), np.ones(len(X)) if w is None else w)
    tol = 2e-3 if dtype == np.float32 else 1e-8
    for solver in SOLVERS:
        model = KernelRidge(alpha, **params, solver=solver, tol=1e-12, max_iter=10_000)
        with fastml.config_context(strict=True):
            model.fit(X, Y, sample_weight=w)
            assert_close(model.predict(X), stock.predict(X), tol)
        assert model.dual_coef_.dtype == stock.dual_coef_.dtype
        np.testing.assert_allclose(model.predict(X), K @ naive, rtol=tol, atol=tol * 10)


@pytest.mark.parametrize("x", DTYPES)
@pytest.mark.parametrize("y", [*DTYPES, np.int64])
def test_dtypes(x, y):
    X, target, _ = problem(dtype=x)
    target = (10 * target).astype(y)
    for kernel in ("rbf", "laplacian"):
        stock = StockKernelRidge(kernel=kernel).fit(X, target, sample_weight=2.0)
        model = KernelRidge(kernel=kernel).fit(X, target, sample_weight=2.0)
        assert_close(model.dual_coef_, stock.dual_coef_, 1e-3)
        assert_close(model.predict(X[:3]), stock.predict(X[:3]), 1e-4)


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_kind_of_kernel(solver):
    X, y, _ = problem()
    expected = KernelRidge(kernel="rbf", gamma=0.5).fit(X, y).predict(X)

    def gaussian(a, b, gamma):
        return np.exp(-gamma * np.sum((a - b) ** 2))

    params = {"solver": solver, "tol": 1e-10}
    for kernel, more in ((RBF(1.0), {}), (gaussian, {"kernel_params": {"gamma": 0.5}})):
        model = KernelRidge(kernel=kernel, **more, **params).fit(X, y)
        np.testing.assert_allclose(model.predict(X), expected, atol=1e-8)
    compiled = KernelRidge(
        kernel=fastml.jit.kernel(gaussian), kernel_params={"gamma": 0.5}, **params
    )
    np.testing.assert_allclose(compiled.fit(X, y).predict(X), expected, atol=1e-8)
    K = pairwise_kernels(X, metric="rbf", gamma=0.5)
    before = K.copy()
    given = KernelRidge(kernel="precomputed", **params).fit(K, y)
    np.testing.assert_allclose(given.predict(K[:9]), expected[:9], atol=1e-10)
    np.testing.assert_array_equal(K, before)


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_array])
@pytest.mark.parametrize("solver", SOLVERS)
def test_sparse_rows(solver, make):
    X, y, w = problem()
    X[X < 0.5] = 0
    expected = StockKernelRidge(kernel="rbf").fit(X, y, w).predict(X)
    model = KernelRidge(kernel="rbf", solver=solver, tol=1e-10).fit(make(X), y, w)
    np.testing.assert_allclose(model.predict(make(X)), expected, atol=1e-8)
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-8)


def test_auto_streams_what_does_not_fit(low_rank):
    X, y, _ = problem()
    for mb, n_iter in ((None, 1), (1, 1), (0, None)):
        model = KernelRidge(kernel="rbf", alpha=0.01, max_gram_mb=mb).fit(X, y)
        assert (model.n_iter_ == 1) == (n_iter == 1)
    K = pairwise_kernels(X, metric="rbf")
    assert KernelRidge(kernel="precomputed", max_gram_mb=0).fit(K, y).n_iter_ == 1


def test_a_singular_matrix_gets_the_least_squares_solution():
    X, y, w = problem()
    for weight in (None, w):
        stock = StockKernelRidge(0, kernel="linear")
        with pytest.warns(UserWarning, match="Singular matrix"):
            model = KernelRidge(0, kernel="linear").fit(X, y, weight)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            stock.fit(X, y, weight)
        np.testing.assert_allclose(model.predict(X), stock.predict(X), atol=1e-8)
    with pytest.raises(np.linalg.LinAlgError):
        KernelRidge([0, 1], kernel="linear").fit(X, np.c_[y, y])
    with pytest.warns(LinAlgWarning, match="Ill-conditioned"):
        KernelRidge(0, kernel="precomputed").fit(np.diag([1e-15] + 50 * [1.0]), y[:51])


def test_an_indefinite_kernel():
    X, y, _ = problem()
    params = {"kernel": "sigmoid", "gamma": 2.0, "alpha": 1e-3}
    with pytest.warns(UserWarning, match="Singular matrix"):
        model = KernelRidge(**params).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stock = StockKernelRidge(**params).fit(X, y)
    np.testing.assert_allclose(model.predict(X), stock.predict(X), atol=1e-6)
    with pytest.warns(ConvergenceWarning, match="solver='cholesky'"):
        KernelRidge(**params, solver="cg").fit(X, y)


def test_errors(low_rank):
    X, y, w = problem()
    with pytest.raises(ValueError, match="3 values of alpha"):
        KernelRidge([1, 2, 3]).fit(X, y)
    with pytest.raises(ValueError, match="Negative"):
        KernelRidge().fit(X, y, -w)
    with pytest.raises(ValueError, match="square"):
        KernelRidge(kernel="precomputed").fit(X, y)
    with pytest.raises(ValueError, match="infs or NaNs"), np.errstate(all="ignore"):
        KernelRidge().fit(X * 1e200, y)
    with pytest.warns(ConvergenceWarning, match="after 1 iterations"):
        KernelRidge(1e-6, kernel="rbf", gamma=50, solver="gradient", max_iter=1).fit(X, y)
    np.testing.assert_array_equal(KernelRidge().fit(X, y, 0.0).dual_coef_, 0)


def test_conversion_and_copies():
    X, y, _ = problem()
    model = KernelRidge(kernel="rbf", solver="cg").fit(X, y)
    stock = fastml.to_sklearn(model)
    assert type(stock) is StockKernelRidge
    np.testing.assert_allclose(stock.predict(X), model.predict(X))
    again = fastml.from_sklearn(stock)
    assert again.get_params() == {**model.get_params(), "solver": "auto"}
    for twin in (again, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(twin.predict(X), model.predict(X))
    assert clone(model).solver == "cg"


@pytest.mark.parametrize("solver", SOLVERS)
def test_callbacks_see_every_step(solver, low_rank):
    X, y, _ = problem()
    seen = []

    class Watcher(ProgressBar):
        def on_fit_task_end(self, estimator, context, **kwargs):
            seen.append(context.task_name)
            return super().on_fit_task_end(estimator, context, **kwargs)

    model = KernelRidge(kernel="rbf", solver=solver).set_callbacks(Watcher())
    model.fit(X, y)
    steps = seen.count("panel" if solver == "cholesky" else "iteration")
    assert steps == model.n_iter_


@pytest.mark.parametrize("rank", [3, 64, 100, 500])
def test_the_preconditioner(rank):
    X, y, _ = problem(200)
    function = KernelFunction("rbf", {"gamma": 3.0})
    K = function(X, X)
    F = pivoted_cholesky(lambda i: K[i], K.diagonal(), rank)
    assert F.shape[1] <= rank
    values = np.linalg.eigvalsh(K)
    lost = np.trace(K - F @ F.T)
    assert lost <= 10 * np.maximum(values[: max(0, 200 - rank)], 0).sum() + 1e-6
    alpha, B = np.array([0.1, 2.0]), np.c_[y, y**2]
    low = F @ F.T
    least = Deflation(F).values.min()
    for j, a in enumerate(alpha):
        expected = np.linalg.solve(low + a * np.eye(200), B[:, j])
        inside = low @ np.linalg.pinv(low, rcond=1e-10)
        expected = (least + a) * (inside @ expected) + B[:, j] - inside @ B[:, j]
        got = Deflation(F)(B, alpha)[:, j]
        np.testing.assert_allclose(got, expected, atol=1e-5)
    assert Deflation(np.empty((200, 0)))(B, alpha) is not B


def test_cg_takes_few_iterations():
    X, y, _ = problem(1000)
    model = KernelRidge(1e-4, kernel="rbf", gamma=1.0, solver="cg").fit(X, y)
    assert model.n_iter_ < 20
    exact = KernelRidge(1e-4, kernel="rbf", gamma=1.0).fit(X, y)
    assert np.abs(model.predict(X) - exact.predict(X)).max() < 1e-5
