"""KernelPCA against scikit-learn's."""

import numpy as np
import pytest
import sklearn.decomposition as stock
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.utils.estimator_checks import check_estimator

import fastml
from fastml.decomposition import KernelPCA

DTYPES = (np.float32, np.float64)
ATTRIBUTES = ("eigenvalues_", "eigenvectors_", "gamma_", "X_fit_")


def rows(n, d, dtype=np.float64):
    """With variances that differ, so that components do."""
    rng = np.random.default_rng(n)
    return (rng.normal(size=(n, d)) * np.linspace(1, 3, d) + 1).astype(dtype)


def same(ours, theirs, tol):
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tol * max(1e-30, abs(theirs).max()))


def compare(X, tol, new=None, strict=True, **params):
    known = {name: value for name, value in params.items() if name != "max_gram_mb"}
    theirs = stock.KernelPCA(**(known | {"eigen_solver": "dense"})).fit(X)
    with fastml.config_context(strict=strict):
        ours = KernelPCA(**params).fit(X)
        same(ours.eigenvalues_, theirs.eigenvalues_, tol)
        same(ours.eigenvectors_, theirs.eigenvectors_, tol)
        assert ours.gamma_ == theirs.gamma_
        for rows_of in (X,) if new is None else (X, new, new[:1]):
            same(ours.transform(rows_of), theirs.transform(rows_of), tol)
        same(KernelPCA(**params).fit_transform(X), theirs.fit_transform(X), tol)
    twin = fastml.to_sklearn(ours)
    assert type(twin) is stock.KernelPCA
    same(twin.transform(X), theirs.transform(X), tol)
    same(fastml.from_sklearn(twin).transform(X), theirs.transform(X), tol)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("solver", ["auto", "dense", "arpack", "power", "streamed"])
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "cosine"])
def test_the_components_of_scikit_learn(kernel, solver, dtype):
    X, new = rows(320, 6, dtype), rows(30, 6, dtype)
    params = {"n_components": 5, "kernel": kernel, "degree": 2, "random_state": 0}
    params |= {"eigen_solver": solver} if solver != "streamed" else {"max_gram_mb": 0}
    tol = 1e-9 if dtype == np.float64 else 2e-2
    compare(X, tol, new, **params)


@pytest.mark.parametrize("k", [2, 30, 100, None])
@pytest.mark.parametrize("n", [1, 2, 12, 300])
def test_numbers_of_rows_and_components(n, k):
    X = rows(n, 3)
    theirs = stock.KernelPCA(k, kernel="rbf", eigen_solver="dense").fit(X)
    ours = KernelPCA(k, kernel="rbf").fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, atol=1e-10 * n)
    np.testing.assert_allclose(
        abs(ours.transform(X)), abs(theirs.transform(X)), atol=1e-4 if k is None else 1e-6
    )


def test_other_kernels():
    X, new = rows(240, 4), rows(20, 4)
    for kernel in (RBF(1.5), Matern(2.0) + RBF(1.0)):
        compare(X, 1e-9, new, n_components=3, kernel=kernel)
        compare(X, 1e-9, new, n_components=3, kernel=kernel, eigen_solver="power", max_gram_mb=0)
    compare(
        X[:60],
        1e-9,
        new,
        strict=False,
        n_components=3,
        kernel=lambda x, y, c: x @ y + c,
        kernel_params={"c": 2},
    )
    K, Kn = laplacian_kernel(X, gamma=0.25), laplacian_kernel(new, X, gamma=0.25)
    theirs = stock.KernelPCA(3, kernel="precomputed").fit(K)
    for given in (K, np.asfortranarray(K)):
        ours = KernelPCA(3, kernel="precomputed").fit(given)
        same(ours.transform(Kn), theirs.transform(Kn), 1e-9)
        same(ours.X_fit_, theirs.X_fit_, 1e-12)
    ours = KernelPCA(3, kernel="laplacian").fit(X)
    same(ours.transform(new), theirs.transform(Kn), 1e-9)


def test_randomized():
    X = rows(300, 5)
    params = {"n_components": 3, "kernel": "rbf", "eigen_solver": "randomized", "random_state": 0}
    theirs, ours = stock.KernelPCA(**params).fit(X), KernelPCA(**params).fit(X)
    same(ours.eigenvalues_, theirs.eigenvalues_, 1e-10)
    same(ours.eigenvectors_, theirs.eigenvectors_, 1e-8)


@pytest.mark.parametrize("max_gram_mb", [0, 4096])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "sigmoid"])
def test_sparse_rows(kernel, max_gram_mb):
    X = sparse.random(320, 40, 0.2, format="csr", random_state=0)
    new = sparse.random(9, 40, 0.2, format="csr", random_state=1)
    theirs = stock.KernelPCA(4, kernel=kernel, eigen_solver="dense", coef0=0.1).fit(X.toarray())
    ours = KernelPCA(4, kernel=kernel, coef0=0.1, max_gram_mb=max_gram_mb).fit(X)
    for given in (new, new.toarray()):
        same(ours.transform(given), theirs.transform(new.toarray()), 1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
def test_inverse(dtype):
    X, new = rows(220, 4, dtype), rows(30, 4, dtype)
    params = {"n_components": 3, "kernel": "rbf", "gamma": 0.1, "fit_inverse_transform": True}
    theirs, ours = stock.KernelPCA(**params), KernelPCA(**params)
    tol = 1e-8 if dtype == np.float64 else 5e-2
    Z = theirs.fit_transform(X)
    same(ours.fit_transform(X), Z, tol)
    same(ours.dual_coef_, theirs.dual_coef_, tol)
    same(ours.X_transformed_fit_, theirs.X_transformed_fit_, tol)
    Z = theirs.transform(new)
    same(ours.inverse_transform(Z), theirs.inverse_transform(Z), tol)
    with pytest.raises(NotImplementedError, match="sparse"):
        KernelPCA(2, fit_inverse_transform=True).fit(sparse.csr_matrix(X))


def test_one_hot_rows():
    """Equal groups: an eigenvalue as often as there are groups less one."""
    X = np.repeat(np.eye(26), 12, axis=0)
    for k in (5, 25):
        ours = KernelPCA(k, eigen_solver="power").fit(X)
        np.testing.assert_allclose(ours.eigenvalues_, 12)


def test_iterations_run_out():
    X = np.random.default_rng(0).normal(size=(500, 50))
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        KernelPCA(3, kernel="rbf", max_iter=2).fit(X)


def test_same_bits_for_any_number_of_threads():
    X, results = rows(700, 5), []
    for threads in (1, 2):
        with fastml.config_context(threads=threads):
            results.append(KernelPCA(3, kernel="rbf", max_gram_mb=0).fit(X).transform(X))
    np.testing.assert_allclose(*results, rtol=0, atol=1e-12)  # of small products BLAS decides


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 203, 301, 1001])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "cosine", "sigmoid"])
def test_means_of_the_gram_matrix(kernel, n, dtype):
    X, found = rows(n, 4, dtype), []
    theirs = stock.KernelPCA(1, kernel=kernel, gamma=0.1).fit(X)._centerer
    for threads in (1, 2):
        with fastml.config_context(threads=threads, strict=True):
            found.append(KernelPCA(1, kernel=kernel, gamma=0.1).fit(X)._centerer)
    assert found[0].K_fit_rows_.tobytes() == found[1].K_fit_rows_.tobytes()
    tol = 1e-13 if dtype == np.float64 else 1e-5
    same(found[0].K_fit_rows_, theirs.K_fit_rows_, tol)
    assert found[0].K_fit_all_ == pytest.approx(theirs.K_fit_all_, rel=tol)


def test_means_of_a_gram_matrix_that_is_not_symmetric():
    K = rows(300, 300) ** 2
    exact = K.mean(axis=0)
    found = KernelPCA(2, kernel="precomputed", random_state=0).fit(K.copy())
    same(found._centerer.K_fit_rows_, exact, 1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_components_have_the_same_bits_for_any_number_of_threads(dtype):
    X, found = rows(260, 4, dtype), []
    for threads in (1, 2):
        with fastml.config_context(threads=threads, strict=True):
            found.append(KernelPCA(kernel="rbf").fit(X))
    for name in ("eigenvalues_", "eigenvectors_"):
        assert getattr(found[0], name).tobytes() == getattr(found[1], name).tobytes()


def test_half_of_a_gram_matrix_that_is_not_symmetric():
    K = rows(230, 230) ** 2
    theirs = stock.KernelPCA(3, kernel="precomputed", eigen_solver="dense").fit(K.copy())
    for given in (K.copy(), np.asfortranarray(K)):
        ours = KernelPCA(3, kernel="precomputed", eigen_solver="dense").fit(given)
        same(ours.eigenvalues_, theirs.eigenvalues_, 1e-12)
        same(ours.eigenvectors_, theirs.eigenvectors_, 1e-9)


def test_a_kernel_that_is_not_finite():
    X = rows(230, 3) * 1e200
    for model in (stock.KernelPCA, KernelPCA):
        with pytest.raises(ValueError, match="NaN"), np.errstate(all="ignore"):
            model(2, kernel="poly", gamma=1.0, eigen_solver="dense").fit(X)


@pytest.mark.parametrize("n", [1, 30])
@pytest.mark.parametrize("n_components", [None, 30, 50])
def test_arpack_where_all_components_are_wanted(n_components, n):
    params = {"kernel": "rbf", "eigen_solver": "arpack", "random_state": 0}
    X = rows(n, 4)
    with pytest.warns(RuntimeWarning, match="k >= N"):
        theirs = stock.KernelPCA(n_components, **params).fit(X)
    with pytest.warns(RuntimeWarning, match="k >= N"):
        ours = KernelPCA(n_components, **params).fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, atol=1e-12)


def test_a_gram_matrix_that_is_not_square():
    for model in (stock.KernelPCA, KernelPCA):
        for K in (rows(250, 3), sparse.csr_matrix(rows(20, 5))):
            with pytest.raises(ValueError, match=r"Got \((250, 3|20, 5)\) for"):
                model(2, kernel="precomputed").fit(K)


@pytest.mark.parametrize("n", [250, 900])
@pytest.mark.parametrize("scale", [1e-140, 1e-80, 1e80, 1e152])
def test_eigenvalues_whose_squares_are_no_numbers(scale, n):
    X = rows(n, 6) * 0.5 ** np.arange(6)
    expected = stock.KernelPCA(3, eigen_solver="dense").fit(X)
    ours = KernelPCA(3, eigen_solver="power", random_state=0).fit(X * scale)
    np.testing.assert_allclose(np.sqrt(ours.eigenvalues_) / scale, np.sqrt(expected.eigenvalues_))
    same(ours.eigenvectors_, expected.eigenvectors_, 1e-6)


def test_rows_of_the_fit_that_change_are_met_anew():
    X = rows(220, 4)
    model = KernelPCA(2, kernel="rbf").fit(X)
    before = model.transform(X[:5])
    model.gamma_ = 0.5 * model.gamma_
    assert abs(model.transform(X[:5]) - before).max() > 1e-3
    model.fit(2 * X)
    np.testing.assert_allclose(model.transform(2 * X[:5]), model.fit_transform(2 * X)[:5])


@pytest.mark.filterwarnings("ignore")
def test_check_estimator():
    results = check_estimator(KernelPCA(), on_fail=None)
    assert not [r["check_name"] for r in results if r["status"] == "failed"]


@pytest.mark.parametrize("n", [150, 300, 900])
@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_few_components_of_rows_that_lie_symmetrically(kernel, n):
    """Eigenvalues that are there twice: Lanczos' method from two vectors leaves that in doubt."""
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    X = rbf_kernel(X, gamma=2.0) if kernel == "precomputed" else X
    for k in (2, 5):
        options = {"kernel": kernel, "gamma": 2.0}
        ours, theirs = KernelPCA(k, **options), stock.KernelPCA(k, eigen_solver="dense", **options)
        same(ours.fit(X).eigenvalues_, theirs.fit(X).eigenvalues_, 1e-13)


def test_tables_are_checked_as_scikit_learn_checks_them():
    X = rows(90, 4)
    model = KernelPCA(2, kernel="rbf").fit(X)
    assert model.n_features_in_ == 4
    assert not np.shares_memory(model.X_fit_, X)
    assert np.shares_memory(KernelPCA(2, kernel="rbf", copy_X=False).fit(X).X_fit_, X)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X > 2, np.nan, X))
    with pytest.raises(ValueError, match="4 features"):
        model.transform(X[:, :3])
    for _ in range(2):
        with pytest.raises(ValueError, match="n_components"):
            KernelPCA(-1).fit(X)
