"""Random features: cosines against NumPy's, samplers against scikit-learn's and their kernels."""

import numpy as np
import pytest
import sklearn.kernel_approximation as stock
from scipy import sparse
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.utils.estimator_checks import check_estimator
from suites.harness import run_python

import fastml
from fastml._native import sketch
from fastml.kernel_approximation import (
    Nystroem,
    RandomFourierFeatures,
    RBFSampler,
    SkewedChi2Sampler,
)

DTYPES = (np.float32, np.float64)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "m", "d"), [(1, 1, 1), (7, 25, 3), (97, 49, 17), (500, 130, 700)])
def test_cosine_features(n, m, d, dtype, threads):
    rng = np.random.default_rng(n)
    X, W = rng.normal(size=(n, d)).astype(dtype), rng.normal(size=(m, d)).astype(dtype)
    offset, out = rng.random(m).astype(dtype), np.empty((n, m), dtype)
    sketch.cosine_features(X, W, offset, 0.25, out, threads)
    angles = X.astype(np.float64) @ W.T.astype(np.float64) + offset
    atol = np.finfo(dtype).eps * (1 + np.abs(X).max() * np.abs(W).max() * d)
    np.testing.assert_allclose(out, 0.25 * np.cos(angles), rtol=0, atol=atol)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e3, 1e5, 1e9])
def test_cosines(scale, dtype):
    x = (np.random.default_rng(0).normal(size=(50, 33)) * scale).astype(dtype)
    out, zeros = x.copy(), np.zeros(33, dtype)
    sketch.cosines(out, zeros, 2.0, 2)
    expected = 2 * np.cos(x.astype(np.longdouble))
    np.testing.assert_allclose(out, expected, rtol=0, atol=2.5 * np.finfo(dtype).eps)
    for special in (np.nan, np.inf):
        out = np.full((1, 33), special, dtype)
        sketch.cosines(out, zeros, 1.0, 1)
        assert np.isnan(out).all()


@pytest.mark.parametrize("isa", ["baseline", "avx2"])
def test_every_instruction_set(isa):
    code = """
import numpy as np
from fastml._native import sketch
rng = np.random.default_rng(0)
for dtype in (np.float32, np.float64):
    X, W = rng.normal(size=(70, 9)).astype(dtype), rng.normal(size=(31, 9)).astype(dtype)
    b, out = rng.random(31).astype(dtype), np.empty((70, 31), dtype)
    sketch.cosine_features(X, W, b, 1.0, out, 2)
    assert np.abs(out - np.cos(X @ W.T + b)).max() < 100 * np.finfo(dtype).eps
"""
    run_python(code, FASTML_ISA=isa)


MAKERS = {
    "RBFSampler": {"gamma": 0.3},
    "SkewedChi2Sampler": {"skewedness": 0.5},
    "Nystroem": {"gamma": 0.3, "n_components": 40},
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MAKERS)
def test_the_features_of_scikit_learn(name, dtype):
    X = np.random.default_rng(0).random((200, 6)).astype(dtype)
    theirs = getattr(stock, name)(random_state=0, **MAKERS[name]).fit(X)
    ours = getattr(fastml.kernel_approximation, name)(random_state=0, **MAKERS[name])
    # Small singular values of the basis amplify rounding.
    tol = 1e-3 if name == "Nystroem" else 30 * np.finfo(dtype).eps
    tol = 5e-1 if name == "Nystroem" and dtype == np.float32 else tol
    with fastml.config_context(strict=True):
        ours.fit(X)
        for rows in (X, X[:3], X[:0:-2], np.asfortranarray(X)):
            got, expected = ours.transform(rows), theirs.transform(rows)
            assert got.dtype == expected.dtype
            np.testing.assert_allclose(got, expected, rtol=0, atol=tol)
        if name != "SkewedChi2Sampler":
            got = ours.transform(sparse.csr_matrix(X))
            np.testing.assert_allclose(got, theirs.transform(X), rtol=0, atol=tol)
    twin = fastml.to_sklearn(ours)
    assert type(twin) is type(theirs)
    np.testing.assert_allclose(twin.transform(X), ours.transform(X), rtol=0, atol=tol)


def cauchy_kernel(X, gamma):
    return np.prod(1 / (1 + gamma * (X[:, None] - X) ** 2), axis=2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "cauchy"])
def test_products_of_features_are_the_kernel(kernel, dtype):
    X = np.random.default_rng(0).normal(size=(30, 3)).astype(dtype)
    exact = {"rbf": rbf_kernel, "laplacian": laplacian_kernel, "cauchy": cauchy_kernel}[kernel]
    model = RandomFourierFeatures(kernel, gamma=0.4, n_components=20_000, random_state=0)
    for rows in (X, sparse.csr_matrix(X)):
        Z = model.fit_transform(rows)
        assert Z.dtype == dtype
        np.testing.assert_allclose(Z @ Z.T, exact(X, gamma=0.4), atol=0.05)


def test_the_gaussian_kernel_is_that_of_the_sampler():
    X = np.random.default_rng(0).normal(size=(20, 4))
    ours = RandomFourierFeatures(gamma=0.25, random_state=3).fit_transform(X)
    np.testing.assert_allclose(ours, RBFSampler(gamma=0.25, random_state=3).fit_transform(X))


def test_a_sampler_and_importance_of_ones_own():
    X, s = np.random.default_rng(0).normal(size=(20, 2)), 2.0

    def wide(d, m, rng):
        return s * rng.normal(size=(d, m))

    def ratio(W):  # of N(0, 1) to N(0, s²)
        return s ** len(W) * np.exp(-0.5 * (1 - s**-2) * (W**2).sum(axis=0))

    model = RandomFourierFeatures(wide, importance=ratio, n_components=40_000, random_state=0)
    Z = model.fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, rbf_kernel(X, gamma=0.5), atol=0.05)
    with pytest.raises(ValueError, match="shape"):
        RandomFourierFeatures(lambda d, m, rng: np.ones((m, d + 1))).fit(X)
    with pytest.raises(ValueError, match="importance"):
        RandomFourierFeatures(importance=lambda W: -np.ones(W.shape[1])).fit(X)


@pytest.mark.parametrize("make", [RBFSampler, SkewedChi2Sampler, Nystroem])
def test_same_bits_for_any_number_of_threads(make):
    X, results = np.random.default_rng(0).random((3000, 8)), []
    for threads in (1, 2):
        with fastml.config_context(threads=threads):
            results.append(make(random_state=0).fit_transform(X))
    np.testing.assert_array_equal(*results)


@pytest.mark.filterwarnings("ignore")
def test_check_estimator():
    results = check_estimator(RandomFourierFeatures(random_state=0), on_fail=None)
    assert not [r["check_name"] for r in results if r["status"] == "failed"]
