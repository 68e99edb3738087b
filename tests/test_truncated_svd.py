"""TruncatedSVD, against scikit-learn's and against the exact decomposition."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import decomposition as stock

import fastml
from fastml.decomposition import TruncatedSVD


def counts(n, d, dtype=np.float64, density=0.1, seed=0):
    """Sparse counts with a few directions that stand out, as topics do."""
    rng = np.random.default_rng(seed)
    rate = rng.gamma(0.3, size=(n, 6)) @ rng.gamma(0.3, size=(6, d))
    return sparse.csr_matrix(rng.poisson(rate * density).astype(dtype))


def assert_same(ours, theirs, rtol):
    for name in ("singular_values_", "explained_variance_", "explained_variance_ratio_"):
        mine, other = getattr(ours, name), getattr(theirs, name)
        assert mine.dtype == other.dtype
        np.testing.assert_allclose(mine, other, rtol=rtol)
    assert ours.components_.dtype == theirs.components_.dtype
    np.testing.assert_allclose(ours.components_, theirs.components_, atol=rtol)


@pytest.mark.parametrize("normalizer", ["auto", "LU", "none"])
@pytest.mark.parametrize("kind", ["csr", "csc", "int64", "dense", "fortran", "integers"])
@pytest.mark.parametrize("shape", [(300, 90), (90, 300)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_randomized_is_scikit_learns(dtype, shape, kind, normalizer):
    X = counts(*shape, dtype)
    if kind == "int64":
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    X = {
        "csc": X.tocsc,
        "dense": X.toarray,
        "fortran": lambda: np.asfortranarray(X.toarray()),
        "integers": lambda: X.astype(np.int32),
    }.get(kind, lambda: X)()
    params = {"n_components": 5, "random_state": 0, "power_iteration_normalizer": normalizer}
    if normalizer == "none":
        params["n_iter"] = 2
    with fastml.config_context(strict=True):
        ours = TruncatedSVD(**params)
        scores = ours.fit_transform(X)
        again = ours.transform(X)
    theirs = stock.TruncatedSVD(**params)
    expected = theirs.fit_transform(X)
    rtol = 1e-9 if expected.dtype == np.float64 else 2e-4
    assert_same(ours, theirs, rtol)
    np.testing.assert_allclose(scores, expected, atol=rtol * abs(expected).max())
    np.testing.assert_allclose(again, theirs.transform(X), atol=rtol * abs(expected).max())
    assert scores.dtype == expected.dtype


@pytest.mark.parametrize("algorithm", ["arpack", "power"])
@pytest.mark.parametrize("kind", ["csr", "csc", "dense"])
@pytest.mark.parametrize("shape", [(300, 90), (90, 300)], ids=str)
def test_others_are_exact(shape, kind, algorithm):
    X = counts(*shape)
    X = {"csc": X.tocsc, "dense": X.toarray}.get(kind, lambda: X)()
    with fastml.config_context(strict=True):
        ours = TruncatedSVD(4, algorithm=algorithm, random_state=0).fit(X)
    assert_same(ours, stock.TruncatedSVD(4, algorithm="arpack", random_state=0).fit(X), 1e-9)


def test_residuals_certify():
    X = counts(400, 120).toarray()
    svd = TruncatedSVD(6, algorithm="power", tol=1e-5, random_state=0).fit(X)
    exact = np.linalg.eigvalsh(X.T @ X)
    near = abs(svd.singular_values_[:, None] ** 2 - exact).min(axis=1)
    assert (near <= svd.residuals_ + 1e-9).all()
    assert (svd.residuals_ <= 1e-5 * exact[-1]).all()


def test_power_becomes_a_stock_model():
    X = counts(60, 30)
    svd = TruncatedSVD(3, algorithm="power", random_state=0).fit(X)
    theirs = fastml.to_sklearn(svd)
    assert type(theirs) is stock.TruncatedSVD and theirs.algorithm == "arpack"
    assert not hasattr(theirs, "residuals_")
    np.testing.assert_allclose(theirs.transform(X), svd.transform(X), atol=1e-12)


@pytest.mark.parametrize("algorithm", ["randomized", "arpack", "power"])
@pytest.mark.parametrize("k", [1, 3, 8, 9])
def test_few_rows_of_many_columns(k, algorithm):
    X = counts(20, 5000, density=0.01)
    svd = TruncatedSVD(k, algorithm=algorithm, random_state=0).fit(X)
    for rows in (X[:1], X[3:5], X[:0:-1], sparse.csr_matrix((2, 5000))):
        np.testing.assert_allclose(svd.transform(rows), rows @ svd.components_.T, atol=1e-12)


def test_cut_products_are_whole():
    """Enough rows that products with the transposed matrix are cut to stay in cache."""
    from fastml.linalg._rows import Rows

    rng = np.random.default_rng(0)
    X = sparse.random(60_000, 40, 0.3, "csr", random_state=0)
    rows = Rows(X, X.mean(axis=0).A1)
    U = rng.normal(size=(60_000, 70))
    expected = X.T @ U - np.outer(rows.mean, U.sum(axis=0))
    np.testing.assert_allclose(rows.transposed(U), expected, atol=1e-9)
    assert len(rows._by_columns(70)) > 1


@pytest.mark.parametrize("algorithm", ["randomized", "power"])
def test_callbacks_follow_and_stop(algorithm):
    seen = []

    class Stop:
        def setup(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            seen.append(context.task_name)
            return len(seen) == 2

        def teardown(self, estimator, context):
            pass

    svd = TruncatedSVD(3, algorithm=algorithm, n_iter=7, random_state=0).set_callbacks(Stop())
    svd.fit(counts(200, 50))
    assert seen[:2] == ["iteration", "iteration"] and len(seen) == 3


@pytest.mark.parametrize("algorithm", ["randomized", "arpack", "power"])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("exponent", [-900, -550, 550, 900])
def test_data_whose_squares_are_no_numbers(exponent, make, algorithm):
    X = np.random.default_rng(0).normal(size=(60, 12))
    X[:, 0] = 2  # the variance of a column tells nothing of its size
    svd = TruncatedSVD(3, algorithm=algorithm, n_iter=20, random_state=0)
    scores = svd.fit_transform(make(np.ldexp(X, exponent)))
    plain = TruncatedSVD(3, algorithm=algorithm, n_iter=20, random_state=0).fit(X)
    np.testing.assert_allclose(np.ldexp(svd.singular_values_, -exponent), plain.singular_values_)
    np.testing.assert_allclose(svd.components_, plain.components_, atol=1e-7)
    np.testing.assert_allclose(
        np.ldexp(svd.transform(np.ldexp(X, exponent)), -exponent),
        np.ldexp(scores, -exponent),
        atol=1e-8,
    )
