"""FactorAnalysis: what scikit-learn's own tests do not ask."""

import numpy as np
import pytest
import sklearn.decomposition

import fastml
from fastml._runtime.convert import to_sklearn
from fastml.decomposition import FactorAnalysis
from fastml.decomposition._factor_analysis import _sketched

DTYPES = [np.float32, np.float64]


def data(n, d, k=3, dtype=np.float64):
    rng = np.random.default_rng(n + d)
    X = rng.normal(size=(n, k)) @ rng.normal(size=(k, d)) * 2
    return (X + rng.normal(size=(n, d)) * np.linspace(0.3, 2, d) + 5).astype(dtype)


def assert_like_stock(X, rtol=1e-8, **params):
    params = {"n_components": 3, "random_state": 0} | params
    stock = sklearn.decomposition.FactorAnalysis(**params).fit(X)
    with fastml.config_context(strict=True):
        ours = FactorAnalysis(**params).fit(X)
        Z = ours.transform(X)
        scores = ours.score_samples(X)
    assert ours.n_iter_ == stock.n_iter_
    for name in ("mean_", "noise_variance_", "loglike_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(stock, name), rtol=rtol)
    found, expected = ours.components_, stock.components_
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    signs = np.where(np.sum(found * expected, axis=1) < 0, -1, 1)
    if params.get("svd_method") != "lapack" and not params.get("rotation"):
        assert (signs == 1).all()  # those of LAPACK are any
    np.testing.assert_allclose(found * signs[:, None], expected, atol=10 * rtol)
    expected = stock.transform(X)
    assert Z.dtype == expected.dtype
    np.testing.assert_allclose(Z * signs, expected, atol=500 * rtol)
    np.testing.assert_allclose(scores, stock.score_samples(X), rtol=100 * rtol)
    return ours


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(400, 12), (60, 60), (30, 50)], ids=str)
@pytest.mark.parametrize("method", ["lapack", "randomized"])
def test_equals_stock(method, shape, dtype):
    X = data(*shape, dtype=dtype)
    # scikit-learn takes doubles of single precision, but adds the log-likelihood of rows in it.
    rtol = 1e-8 if dtype == np.float64 else 1e-5
    assert_like_stock(X, rtol, svd_method=method, max_iter=50)


@pytest.mark.filterwarnings("ignore:FactorAnalysis did not converge")
@pytest.mark.parametrize(
    "params",
    [
        {"n_components": 1, "rotation": None, "max_iter": 3},
        {"rotation": "varimax"},
        {"rotation": "quartimax", "svd_method": "lapack"},
        {"noise_variance_init": np.linspace(1, 2, 12)},
        {"iterated_power": 0, "max_iter": 5},
        {"iterated_power": 8},
        {"n_components": None, "svd_method": "lapack", "max_iter": 4},
        {"n_components": 0, "svd_method": "lapack"},
        {"tol": 1e-5},
    ],
    ids=str,
)
def test_parameters(params):
    assert_like_stock(data(400, 12), 1e-6, **params)


@pytest.mark.filterwarnings("ignore:FactorAnalysis did not converge")
def test_columns_that_depend_are_decomposed_as_they_are():
    X = data(100, 6)
    X[:, 5] = X[:, 0] + X[:, 1]
    # Their log-likelihood is what rounding makes it, and so is the number of iterations.
    params = {"n_components": 6, "svd_method": "lapack", "max_iter": 1}
    ours = FactorAnalysis(**params).fit(X)
    stock = sklearn.decomposition.FactorAnalysis(**params).fit(X)
    np.testing.assert_allclose(ours.get_covariance(), stock.get_covariance(), rtol=1e-8)
    assert np.isfinite(ours.loglike_).all()


def test_sketches_of_a_covariance_are_those_of_the_data():
    X = data(300, 20)
    X -= X.mean(axis=0)
    squares, vectors = _sketched(X.T @ X, 4, 2, np.random.RandomState(0))
    _, s, Vt = sklearn.utils.extmath.randomized_svd(
        X, 4, n_iter=2, random_state=np.random.RandomState(0)
    )
    np.testing.assert_allclose(squares[:4], s**2)
    np.testing.assert_allclose(abs(np.sum(vectors[:4] * Vt, axis=1)), 1)
    squares, _ = _sketched(np.diag([2.0, 1.0, 0.0]), 1, 2, np.random.RandomState(0))
    np.testing.assert_allclose(squares[0], 2)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("shape", [(30, 4), (4, 30)], ids=str)
def test_what_is_not_finite_is_refused(shape, bad):
    X = data(*shape)
    model = FactorAnalysis(2).fit(X)
    X[2, 1] = bad
    for call in (model.transform, model.score_samples, FactorAnalysis(2).fit):
        with pytest.raises(ValueError, match="contains"):
            call(X)


def test_data_stays_as_it_is_and_models_become_stock_ones():
    X = data(50, 5)
    before = X.copy()
    model = FactorAnalysis(2, copy=False, random_state=0).fit(X)
    np.testing.assert_array_equal(X, before)
    stock = to_sklearn(model)
    assert type(stock) is sklearn.decomposition.FactorAnalysis
    np.testing.assert_allclose(stock.transform(X), model.transform(X), atol=1e-10)
