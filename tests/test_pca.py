"""PCA and IncrementalPCA: what scikit-learn's own tests do not ask."""

import warnings

import numpy as np
import pytest
import sklearn.decomposition
from scipy import linalg, sparse
from sklearn.exceptions import NotFittedError

import fastml
from fastml._runtime.convert import from_sklearn, to_sklearn
from fastml._runtime.eigen import Tridiagonal
from fastml.decomposition import PCA, IncrementalPCA, _spectra
from fastml.decomposition._spectra import covariance

ATTRIBUTES = (
    "mean_",
    "components_",
    "explained_variance_",
    "explained_variance_ratio_",
    "singular_values_",
    "noise_variance_",
)
DTYPES = [np.float32, np.float64]


def data(n, d, dtype=np.float64, offset=3.0):
    rng = np.random.default_rng(n + d)
    return (rng.normal(size=(n, d)) * np.linspace(1, 5, d) + offset).astype(dtype)


def assert_like_stock(X, kind=PCA, **params):
    stock = getattr(sklearn.decomposition, kind.__name__)(**params).fit(X)
    with fastml.config_context(strict=True):
        ours = kind(**params).fit(X)
    rtol = 1e-9 if X.dtype == np.float64 else 2e-3
    told = stock.explained_variance_ratio_ > 1e-9
    for name in ATTRIBUTES:
        found, expected = np.asarray(getattr(ours, name)), np.asarray(getattr(stock, name))
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), name
        if name == "components_":  # those without variance can be any
            found, expected = found[told], expected[told]
        scale = abs(expected).max() if expected.size else 0
        np.testing.assert_allclose(found, expected, rtol=0, atol=rtol * scale, err_msg=name)
    Z = ours.transform(X)
    np.testing.assert_allclose(Z, stock.transform(X), atol=rtol * 10 * abs(Z).max())
    back, expected = ours.inverse_transform(Z), stock.inverse_transform(Z)
    np.testing.assert_allclose(back, expected, atol=rtol * abs(expected).max())
    return ours, stock


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(300, 10), (60, 30), (40, 90), (90, 90), (240, 160), (44, 50), (160, 170)], ids=str
)
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"n_components": 3},
        {"n_components": 0.7},
        {"n_components": 3, "svd_solver": "full"},
        {"n_components": 2, "svd_solver": "arpack"},
        {"n_components": 2, "svd_solver": "randomized", "random_state": 0},
        {"n_components": 4, "svd_solver": "covariance_eigh"},
    ],
    ids=str,
)
def test_equals_stock(shape, params, dtype):
    assert_like_stock(data(*shape, dtype), **params)


def test_mle_and_no_components():
    X = data(200, 6)
    assert PCA("mle").fit(X).n_components_ == sklearn.decomposition.PCA("mle").fit(X).n_components_
    shares = [each(0.8).fit(X).n_components_ for each in (PCA, sklearn.decomposition.PCA)]
    assert shares[0] == shares[1]
    assert type(shares[0]) is type(shares[1])
    nothing = PCA(0, svd_solver="full").fit(X)
    stock = sklearn.decomposition.PCA(0, svd_solver="full").fit(X)
    assert nothing.transform(X).shape == stock.transform(X).shape == (200, 0)
    np.testing.assert_allclose(nothing.noise_variance_, stock.noise_variance_)
    np.testing.assert_allclose(nothing.score_samples(X), stock.score_samples(X))


def test_full_is_as_exact_as_an_svd_over_sixteen_orders_of_magnitude():
    rng = np.random.default_rng(0)
    U = linalg.qr(rng.normal(size=(400, 60)), mode="economic")[0]
    U = linalg.qr(U - U.mean(axis=0), mode="economic")[0]
    V = linalg.qr(rng.normal(size=(60, 60)))[0]
    s = np.logspace(0, -12, 60)
    for X in ((U * s) @ V.T, np.hstack([(U * s) @ V.T] * 10)):
        pca = PCA(svd_solver="full").fit(X)
        exact = s * (1 if X.shape[1] == 60 else 10**0.5)
        np.testing.assert_allclose(pca.singular_values_[:60], exact, rtol=0, atol=3e-15)
        np.testing.assert_allclose(pca.singular_values_[:40], exact[:40], rtol=1e-6)
        gram = pca.components_ @ pca.components_.T
        np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-12)
        few = PCA(50, svd_solver="full").fit(X)
        np.testing.assert_allclose(few.singular_values_, exact[:50], rtol=0, atol=3e-15)


@pytest.mark.parametrize("decay", [1.0, 0.9], ids=["flat", "steep"])
@pytest.mark.parametrize("shape", [(520, 500), (500, 560), (500, 600)], ids=str)
def test_nearly_square_data_equals_an_svd(shape, decay):
    X = np.random.default_rng(0).normal(size=shape) * decay ** np.arange(shape[1])
    Z = X - X.mean(axis=0)
    product = Z.T @ Z if shape[0] >= shape[1] else Z @ Z.T
    # Of the flat spectrum it keeps most, of the steep one less than half.
    lost = np.count_nonzero(linalg.eigvalsh(product) < 1e-4 * linalg.norm(product, 2))
    form = Tridiagonal(product)
    assert abs(form.count_below(1e-4) - lost) <= 1
    assert _spectra._wants_svd(form, X, None) == (decay < 1)
    assert not _spectra._wants_svd(form, X, 10)
    pca = PCA(svd_solver="full").fit(X)
    s, Vt = linalg.svd(Z, full_matrices=False)[1:]
    np.testing.assert_allclose(pca.singular_values_, s, rtol=0, atol=1e-14 * s[0])
    told = s > 1e-8 * s[0]
    np.testing.assert_allclose(pca.singular_values_[told], s[told], rtol=1e-6)
    np.testing.assert_allclose(pca.components_ @ pca.components_.T, np.eye(len(s)), atol=1e-12)
    np.testing.assert_allclose(abs(np.sum(pca.components_ * Vt, axis=1))[:5], 1)


def test_what_is_not_positive_in_single_precision_is_counted_in_double(monkeypatch):
    cholesky = linalg.cholesky

    def refusing(A, **how):
        if A.dtype == np.float32:
            raise linalg.LinAlgError
        return cholesky(A, **how)

    X = np.random.default_rng(0).normal(size=(520, 500)) * 0.97 ** np.arange(500)
    monkeypatch.setattr(_spectra.linalg, "cholesky", refusing)
    assert _spectra._wants_svd(Tridiagonal(X.T @ X), X, None)
    assert not _spectra._wants_svd(Tridiagonal(np.zeros((500, 500))), X, None)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_large_mean_costs_no_digits(dtype):
    X = data(20_000, 10, offset=0.0)
    far = (X + 1e3).astype(dtype)
    expected = sklearn.decomposition.PCA(svd_solver="full").fit(far.astype(np.float64))
    got = PCA().fit(far)
    rtol = 2e-6 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(got.explained_variance_, expected.explained_variance_, rtol=rtol)


def test_rows_that_come_in_order_are_read_again():
    X = np.zeros((100_000, 3))
    X[::390] += 1e6  # the rows that are looked at first
    X += np.random.default_rng(0).normal(size=X.shape)
    mean, C = covariance(X)
    Z = X - X.mean(axis=0)
    np.testing.assert_allclose(mean, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(C, Z.T @ Z, rtol=1e-12)


@pytest.mark.parametrize("solver", ["auto", "arpack", "covariance_eigh"])
@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_array])
def test_sparse_equals_stock(make, solver):
    X = make(sparse.random(900, 40, 0.1, random_state=0))
    assert_like_stock(X, n_components=3, svd_solver=solver)
    wide = make(sparse.random(60, 1200, 0.1, random_state=0))
    large = make(sparse.random(1500, 1200, 0.02, random_state=0))
    large.data += 10  # and so a mean that is not nearly zero
    if solver != "covariance_eigh":
        assert_like_stock(wide, n_components=3, svd_solver=solver)
        assert_like_stock(large, n_components=3, svd_solver=solver)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_power_finds_what_is_exact(make):
    X = data(500, 40)
    pca = PCA(4, svd_solver="power", random_state=0).fit(make(X))
    exact = sklearn.decomposition.PCA(4, svd_solver="full").fit(X)
    for name in ATTRIBUTES:
        np.testing.assert_allclose(getattr(pca, name), getattr(exact, name), atol=1e-6)
    assert pca.n_iter_ > 1
    with pytest.warns(sklearn.exceptions.ConvergenceWarning, match="1 passes"):
        PCA(4, svd_solver="power", iterated_power=1, random_state=0).fit(X)
    stock = to_sklearn(pca)
    assert stock.svd_solver == "arpack"
    np.testing.assert_allclose(stock.transform(X), pca.transform(X))


def test_exact_where_stock_approximates():
    X = data(700, 510)
    ours = PCA(40, random_state=0).fit(X)
    stock = sklearn.decomposition.PCA(40, random_state=0).fit(X)
    exact = sklearn.decomposition.PCA(40, svd_solver="full").fit(X)
    assert ours._fit_svd_solver == stock._fit_svd_solver == "randomized"
    np.testing.assert_allclose(ours.explained_variance_, exact.explained_variance_)
    assert stock.explained_variance_.sum() < ours.explained_variance_.sum()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("params", [{"batch_size": 40}, {"n_components": 3, "batch_size": 25}])
@pytest.mark.parametrize("shape", [(300, 10), (100, 90)], ids=str)
def test_batches_equal_stock(shape, params, dtype):
    ours, stock = assert_like_stock(data(*shape, dtype), IncrementalPCA, **params)
    assert vars(ours).keys() == vars(stock).keys()
    np.testing.assert_allclose(ours.var_, stock.var_, rtol=1e-6)
    more = data(50, shape[1], dtype)
    if params.get("n_components"):
        np.testing.assert_allclose(
            ours.partial_fit(more).singular_values_,
            stock.partial_fit(more.copy()).singular_values_,
            rtol=1e-5,
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["PCA", "IncrementalPCA"])
def test_type_of_what_is_turned_back(kind, dtype):
    X = data(60, 5, dtype)
    stock = getattr(sklearn.decomposition, kind)(2).fit(X)
    ours = getattr(fastml.decomposition, kind)(2).fit(X)
    projected = stock.transform(X)
    expected, found = stock.inverse_transform(projected), ours.inverse_transform(projected)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", ["PCA", "FactorAnalysis"])
def test_a_fit_that_is_refused_changes_nothing(kind):
    X, wide = data(60, 5), data(60, 7)
    wide[3, 2] = np.nan
    model = getattr(fastml.decomposition, kind)(2)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(wide)
    with pytest.raises(NotFittedError):
        model.transform(X)
    expected = model.fit(X).transform(X)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(wide)
    np.testing.assert_array_equal(model.transform(X), expected)


def test_whitened_and_likelihoods_equal_stock():
    X = data(300, 12)
    ours, stock = assert_like_stock(X, n_components=4, whiten=True)
    np.testing.assert_allclose(ours.score_samples(X), stock.score_samples(X))
    np.testing.assert_allclose(PCA(4, whiten=True).fit_transform(X), stock.transform(X))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(bad):
    for shape in ((300, 10), (10, 300), (700, 510)):
        X = data(*shape)
        model = PCA(2).fit(X)
        X[-1, -1] = bad
        for call in (PCA(2).fit, PCA(2, svd_solver="arpack").fit, model.transform):
            with pytest.raises(ValueError, match="Input X contains"):
                call(X)
        with pytest.raises(ValueError, match="Input X contains"):
            model.transform(X[-1:])


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("solver", ["auto", "full", "randomized"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 40])
def test_projections_that_come_with_the_fit(n, dtype, solver, whiten):
    X = data(n, 6, dtype)
    found, expected = (
        module.PCA(1, svd_solver=solver, whiten=whiten, random_state=0).fit_transform(X)
        for module in (fastml.decomposition, sklearn.decomposition)
    )
    assert found.dtype == expected.dtype
    tolerance = 1e-9 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_awkward_arrays():
    X = data(300, 10)
    expected = PCA(3).fit(X)
    X.setflags(write=False)
    for other in (X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], X.astype(">f8")):
        pca = PCA(3).fit(other)
        np.testing.assert_allclose(pca.components_, expected.components_, rtol=1e-12)
        np.testing.assert_allclose(pca.transform(other), expected.transform(X), rtol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        constant = PCA(2).fit(np.full((60, 5), 0.1))
    assert (constant.explained_variance_ == 0).all()
    np.testing.assert_array_equal(constant.transform(np.full((1, 5), 0.1)), 0)


def test_conversion():
    X = data(100, 5)
    for kind in (PCA, IncrementalPCA):
        model = kind(2).fit(X)
        stock = to_sklearn(model)
        assert type(stock) is getattr(sklearn.decomposition, kind.__name__)
        np.testing.assert_allclose(stock.transform(X), model.transform(X), atol=1e-12)
        np.testing.assert_array_equal(from_sklearn(stock).transform(X), model.transform(X))


def test_a_callback_ends_power_iteration():
    class Stop:
        def setup(self, estimator, context):
            self.steps = 0

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            self.steps += context.task_name == "iteration"
            return self.steps == 2

        def teardown(self, estimator, context):
            pass

    pca = PCA(4, svd_solver="power", random_state=0).set_callbacks(Stop()).fit(data(500, 90))
    assert pca.n_iter_ == 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solver", ["full", "randomized", "power"])
@pytest.mark.parametrize("shape", [(60, 8), (8, 60)])
@pytest.mark.parametrize("part", [-0.95, -0.6, 0.6, 0.95])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # as of scikit-learn's squares
def test_data_whose_squares_are_no_numbers(part, shape, solver, dtype):
    X = np.random.default_rng(0).normal(size=shape)
    exponent = int(part * np.finfo(dtype).maxexp)
    model = PCA(4, svd_solver=solver, random_state=0).fit(np.ldexp(X, exponent).astype(dtype))
    plain = PCA(4, svd_solver="full").fit(X)
    loose = {"rtol": 1e-8 if dtype == np.float64 else 1e-4, "atol": 0}
    np.testing.assert_allclose(
        np.ldexp(model.singular_values_, -exponent), plain.singular_values_, **loose
    )
    np.testing.assert_allclose(
        model.explained_variance_ratio_, plain.explained_variance_ratio_, **loose
    )
    np.testing.assert_allclose(np.ldexp(model.mean_, -exponent), plain.mean_, rtol=1e-3)
    assert abs(abs(np.diag(model.components_ @ plain.components_.T)) - 1).max() < 1e-4
    squares = np.ldexp(plain.explained_variance_, 2 * exponent).astype(dtype)
    np.testing.assert_allclose(model.explained_variance_, squares, rtol=1e-3, atol=1e-44)


@pytest.mark.parametrize("exponent", [-1000, -600, 600, 1000])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_batches_whose_squares_are_no_numbers(exponent):
    X = np.random.default_rng(0).normal(size=(60, 8))
    model = IncrementalPCA(4, batch_size=20).fit(np.ldexp(X, exponent))
    plain = IncrementalPCA(4, batch_size=20).fit(X)
    np.testing.assert_allclose(
        np.ldexp(model.singular_values_, -exponent), plain.singular_values_, rtol=1e-12
    )
