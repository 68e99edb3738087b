"""Large matrices by products alone, small ones by what they span."""

import doctest
import inspect

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import hilbert
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import randomized_svd

from fastml import linalg

METHODS = ["krylov", "subspace", "power"]


def spectrum(values, seed=0, dtype=np.float64):
    """A symmetric matrix of these eigenvalues."""
    n = len(values)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]
    A = (Q * values) @ Q.T
    return ((A + A.T) / 2).astype(dtype)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_eigenvalues_with_their_signs(dtype, method):
    values = np.r_[-9.0, 7.0, -5.0, 3.0, np.linspace(-1, 1, 60)]
    A = spectrum(values, dtype=dtype)
    found = linalg.eigenpairs(A, 4, method=method, random_state=0)
    eps = np.finfo(dtype).eps
    assert found.converged and found.values.dtype == dtype
    np.testing.assert_allclose(found.values, values[:4], rtol=1e3 * eps)
    V = found.vectors.astype(float)
    np.testing.assert_allclose(V.T @ V, np.eye(4), atol=100 * eps**0.5)
    exact = np.linalg.norm(A @ V - V * found.values, axis=0)
    np.testing.assert_allclose(found.residuals, exact, atol=100 * eps)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["dense", "fortran", "strided", "csr", "csc", "memmap"])
@pytest.mark.parametrize("centre", [False, True])
def test_gram(centre, kind, method, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 30)) * 0.5 ** np.arange(30) + 2
    X[rng.random(X.shape) < 0.3] = 0
    exact = np.linalg.svd(X - X.mean(axis=0) * centre)[1][:3] ** 2
    given = {
        "fortran": lambda: np.asfortranarray(X),
        "strided": lambda: np.repeat(X, 2, axis=1)[:, ::2],
        "csr": lambda: sparse.csr_array(X),
        "csc": lambda: sparse.csc_matrix(X),
        "memmap": lambda: np.memmap(tmp_path / "X", X.dtype, "w+", shape=X.shape),
    }.get(kind, lambda: X)()
    if kind == "memmap":
        given[:] = X
        given.flush()
        given = np.memmap(tmp_path / "X", X.dtype, "r", shape=X.shape)
    found = linalg.eigenpairs(given, 3, method=method, gram=True, centre=centre, random_state=0)
    np.testing.assert_allclose(found.values, exact, rtol=1e-7)
    assert (abs(found.values - exact) <= found.residuals + 1e-9).all()
    svd = linalg.truncated_svd(given, 3, centre=centre, random_state=0)
    np.testing.assert_allclose(svd.s**2, exact, rtol=1e-7)


def test_krylov_needs_fewest_iterations():
    A = spectrum(np.linspace(0.9, 1, 400))
    few = linalg.eigenpairs(A, 2, tol=1e-6, random_state=0)
    more = linalg.eigenpairs(A, 2, tol=1e-6, method="subspace", max_iter=10_000, random_state=0)
    np.testing.assert_allclose(few.values, more.values, rtol=1e-6)
    assert 5 * few.n_iter < more.n_iter


@pytest.mark.parametrize("method", METHODS)
def test_degenerate_matrices(method):
    zero = linalg.eigenpairs(np.zeros((5, 5)), 2, method=method)
    assert (zero.values == 0).all() and zero.converged
    one = linalg.eigenpairs([[-3.0]], 1, method=method)
    assert one.values == pytest.approx(-3, rel=1e-15)  # of a vector whose length is 1 to rounding
    same = linalg.eigenpairs(np.eye(6), 3, method=method)
    np.testing.assert_allclose(same.values, 1)
    np.testing.assert_allclose(same.vectors.T @ same.vectors, np.eye(3), atol=1e-12)
    low = np.outer([1.0, 2, 3, 4], [1, 2, 3, 4])
    np.testing.assert_allclose(
        linalg.eigenpairs(low, 3, method=method).values, [30, 0, 0], atol=1e-12
    )


def test_signs_of_one_magnitude():
    A = np.diag([2.0, -2.0, 1.0, 0.5])
    np.testing.assert_allclose(sorted(linalg.eigenpairs(A, 2).values), [-2, 2])
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        linalg.eigenpairs(A, 1, method="power", max_iter=20)


@pytest.mark.parametrize("method", METHODS)
def test_progress_stops(method):
    seen = []

    def progress(n_iter, residuals):
        seen.append((n_iter, residuals.max()))
        return n_iter == 3

    A = spectrum(np.linspace(0.99, 1, 200))
    found = linalg.eigenpairs(A, 2, method=method, progress=progress)
    assert [n for n, _ in seen] == [1, 2, 3] and not found.converged


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linalg.eigenpairs(np.ones((3, 2))), "gram=True"),
        (lambda: linalg.eigenpairs(np.triu(np.ones((9, 9)))), "not symmetric"),
        (lambda: linalg.eigenpairs(np.eye(3), 4), "from 1 to 3"),
        (lambda: linalg.eigenpairs(np.eye(3), centre=True), "goes with gram=True"),
        (lambda: linalg.eigenpairs(np.eye(3), method="qr"), "none of"),
        (lambda: linalg.eigenpairs([[np.nan]]), "NaN"),
        (lambda: linalg.truncated_svd(np.ones((3, 2)), 3), "from 1 to 2"),
        (lambda: linalg.truncated_svd(np.ones((3, 2)), 1, method="qr"), "neither"),
        (lambda: linalg.definiteness([[1.0, 2.0], [0.0, 1.0]]), "not symmetric"),
    ],
)
def test_errors_say_what_is_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("shape", [(400, 60), (60, 400)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_truncated_svd(dtype, shape):
    rng = np.random.default_rng(1)
    n, d = shape
    X = (rng.normal(size=(n, 60)) * 0.8 ** np.arange(60) @ rng.normal(size=(60, d))).astype(dtype)
    _, s, Vt = np.linalg.svd(X.astype(float), full_matrices=False)
    found = linalg.truncated_svd(X, 5, random_state=0)
    eps = np.finfo(dtype).eps
    assert found.converged and found.U.dtype == found.s.dtype == found.Vt.dtype == dtype
    np.testing.assert_allclose(found.s, s[:5], rtol=100 * eps)
    np.testing.assert_allclose(abs((found.Vt * Vt[:5]).sum(axis=1)), 1, rtol=eps**0.5)
    np.testing.assert_allclose(found.U * found.s, X @ found.Vt.T, atol=1e3 * eps * s[0])
    drawn = linalg.truncated_svd(X, 5, method="randomized", random_state=0)
    expected = randomized_svd(X, 5, random_state=0)
    np.testing.assert_allclose(drawn.s, expected[1], rtol=1e3 * eps)
    np.testing.assert_allclose(abs((drawn.Vt * expected[2]).sum(axis=1)), 1, rtol=1e3 * eps)


@pytest.mark.parametrize("method", ["krylov", "randomized"])
@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("exponent", [-600, 600])
def test_svd_of_what_has_no_squares(exponent, centre, method):
    X = np.random.default_rng(0).normal(size=(60, 12)) + 1
    expected = np.linalg.svd(X - X.mean(axis=0) if centre else X)[1][:3]
    given = np.ldexp(X, exponent)
    found = linalg.truncated_svd(given, 3, centre=centre, method=method, n_iter=20, random_state=0)
    np.testing.assert_allclose(np.ldexp(found.s, -exponent), expected, rtol=1e-6)
    assert method == "randomized" or found.converged


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gram_schmidt_is_orthogonal_whatever_the_condition(dtype):
    eps = np.finfo(dtype).eps
    for X in (hilbert(80)[:, :50], np.vander(np.linspace(0, 1, 200), 90)):
        found = linalg.orthonormalize(X.astype(dtype))
        r = len(found.columns)
        np.testing.assert_allclose(found.Q.T @ found.Q, np.eye(r), atol=40 * eps)
        np.testing.assert_allclose(
            found.Q @ found.R, X, atol=2 * max(X.shape) * eps * np.linalg.norm(X, axis=0).max()
        )
        assert np.tril(found.R[:, found.columns], -1).max() == 0


def test_gram_schmidt_reveals_rank():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 40))
    X[:, 20:30] = X[:, :10] @ rng.normal(size=(10, 10))
    X[:, 35] = 0
    found = linalg.orthonormalize(X)
    np.testing.assert_array_equal(found.columns, np.r_[0:20, 30:35, 36:40])
    np.testing.assert_allclose(found.Q @ found.R, X, atol=1e-12)
    wide = linalg.orthonormalize(X[:7])
    assert wide.Q.shape == (7, 7)
    np.testing.assert_allclose(wide.Q @ wide.R, X[:7], atol=1e-12)


@pytest.mark.parametrize("shape", [(50, 8), (8, 50), (12, 12), (1, 1), (3, 1)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_spaces(dtype, shape):
    n, d = shape
    r = max(1, min(shape) - 3)
    rng = np.random.default_rng(2)
    A = (rng.normal(size=(n, r)) @ rng.normal(size=(r, d))).astype(dtype)
    atol = 1e3 * np.finfo(dtype).eps
    assert linalg.rank(A) == r
    Z, C, P = linalg.null_space(A), linalg.column_space(A), linalg.pseudo_inverse(A)
    assert Z.shape == (d, d - r) and C.shape == (n, r) and Z.dtype == C.dtype == P.dtype == dtype
    np.testing.assert_allclose(A @ Z, 0, atol=atol)
    np.testing.assert_allclose(Z.T @ Z, np.eye(d - r), atol=atol)
    np.testing.assert_allclose(C @ (C.T @ A), A, atol=atol)
    np.testing.assert_allclose(A @ P @ A, A, atol=atol)
    np.testing.assert_allclose(P @ A @ P, P, atol=atol)
    np.testing.assert_allclose(P, np.linalg.pinv(A, rcond=1e-4), atol=atol)


def test_zero_matrix_spans_nothing():
    Z = np.zeros((4, 3))
    assert linalg.rank(Z) == 0 and linalg.column_space(Z).shape == (4, 0)
    np.testing.assert_array_equal(linalg.null_space(Z) @ linalg.null_space(Z).T, np.eye(3))
    np.testing.assert_array_equal(linalg.pseudo_inverse(Z), Z.T)
    assert linalg.orthonormalize(Z).Q.shape == (4, 0)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, 3], "positive definite"),
        ([0, 2, 3], "positive semidefinite"),
        ([-1, -2, -3], "negative definite"),
        ([-1, 0, 0], "negative semidefinite"),
        ([-1, -1, 5], "indefinite"),
        ([0, 0, 0], "zero"),
    ],
)
def test_definiteness(values, kind):
    A = spectrum(np.array(values, dtype=float))
    found = linalg.definiteness(A)
    assert found.kind == kind
    quadratic = (found.vectors * (A @ found.vectors)).sum(axis=0)
    np.testing.assert_allclose(quadratic, [min(values), max(values)], atol=1e-12)


@pytest.mark.parametrize("name", linalg.__all__)
def test_examples_in_docstrings(name):
    value = getattr(linalg, name)
    if inspect.isclass(value):
        assert "Attributes\n----------" in inspect.getdoc(value)
        return
    assert "Parameters\n----------" in inspect.getdoc(value)
    (test,) = doctest.DocTestFinder(recurse=False).find(value, name)
    assert len(test.examples) >= 2 and doctest.DocTestRunner().run(test).failed == 0
