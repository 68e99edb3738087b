"""Leading eigenpairs by Lanczos' method, against NumPy's."""

import os

import numpy as np
import pytest
import test_eigen as eigen_tests
from suites.harness import run_python

from fastml._native import eigen
from fastml._runtime.eigen import few_pairs

DTYPES = eigen_tests.DTYPES


def check(A, k, sure=None):
    """Pairs that are found are the first k, to rounding: the same bits with 1 and 2 threads.

    sure: whether they must be, or must not.
    """
    n, found = len(A), []
    for threads in (1, 2):
        values, vectors = np.full(k, np.nan, A.dtype), np.full((k, n), np.nan, A.dtype)
        found.append((eigen.few_pairs(A, 0, values, vectors, threads), values, vectors))
    assert found[0][0] == found[1][0]
    assert sure is None or found[0][0] == sure
    if not found[0][0]:
        return
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)
    size = float(abs(A).max()) or 1.0
    exact, V = A.astype(np.float64) / size, vectors.astype(np.float64)
    values = values.astype(np.float64) / size
    expected, _ = eigen_tests.eigenpairs_naive(exact)
    eps, norm = np.finfo(A.dtype).eps, abs(expected).max()
    assert abs(values - expected[:k]).max() <= eps * norm * (10 + 3 * n**0.5)
    assert abs(V @ V.T - np.eye(k)).max() <= eps * (20 + 2 * n**0.5)
    assert abs(exact @ V.T - V.T * values).max() <= eps * norm * (10 + n**0.5)


def gram(n, d, dtype=np.float64, gamma=0.2):
    X = np.random.default_rng(n).normal(size=(n, d))
    return np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=-1)).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("n", "k"), [(80, 1), (97, 2), (130, 3), (257, 10), (401, 5), (520, 20), (700, 2), (1030, 3)]
)
def test_gram_matrices(n, k, dtype):
    check(gram(n, 4, dtype), k, sure=True)


@pytest.mark.parametrize("k", [1, 2, 3, 5, 8, 20])
@pytest.mark.parametrize("name", eigen_tests.SPECTRA)
@pytest.mark.parametrize("dtype", DTYPES)
def test_spectra(name, k, dtype):
    check(eigen_tests.with_spectrum(eigen_tests.SPECTRA[name]).astype(dtype), k)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 33, 150])
def test_matrices_that_are_special(n, dtype):
    for A in eigen_tests.special(n):
        for k in {1, min(2, n), min(9, n)}:
            check(np.ascontiguousarray(A, dtype), k)


@pytest.mark.parametrize("often", [2, 3, 7])
@pytest.mark.parametrize("apart", [0, 1e-15, 1e-9])
def test_eigenvalues_that_are_there_more_than_once(often, apart):
    rest = np.linspace(0, 1, 300 - often)
    A = eigen_tests.with_spectrum(np.r_[2 + apart * np.arange(often), rest])
    # Two are told apart by two start vectors; of more, those that are seen might not be all.
    for k in (1, 2, 3, often + 1):
        check(A, k)
        check(A + 9 * np.outer(A[0], A[0]), k)
    if apart < 1e-9:
        check(A, 4, sure=False)


def test_twice():
    angle = np.linspace(0, 2 * np.pi, 300, endpoint=False)
    A = np.exp(-2 * (1 - np.cos(angle[:, None] - angle)))
    check(A, 2, sure=True)
    for k in (3, 4, 5, 9):
        check(A, k)


@pytest.mark.parametrize("rank", [1, 2, 5, 8])
def test_low_rank(rank):
    X = np.random.default_rng(rank).normal(size=(200, rank))
    check(X @ X.T, min(rank, 3), sure=True)
    check(X @ X.T, rank, sure=True)
    check(X @ X.T, rank + 3)


@pytest.mark.parametrize("power", [-1000, -520, 300, 1000])
def test_any_size_of_entries(power):
    check(np.ldexp(gram(150, 3), power), 3, sure=True)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_not_found(bad):
    A = gram(150, 3)
    A[3, 40] = bad
    check(A, 2, sure=False)


def test_half_of_the_matrix_is_read():
    A = gram(150, 3)
    half = np.where(np.tril(np.ones_like(A), -1) > 0, np.nan, A)
    for one, two in zip(few_pairs(A, 3), few_pairs(half, 3), strict=True):
        np.testing.assert_array_equal(one, two)


def test_tolerance():
    A = gram(400, 8, gamma=0.1)
    values, vectors = few_pairs(A, 3, 1e-4)
    off = np.linalg.norm(A @ vectors.T - vectors.T * values, axis=0)
    assert 1e-12 * values[0] < off.max() < 1e-4 * values[0]


def test_none_and_all():
    A = gram(100, 3)
    assert few_pairs(A, 0) is None
    assert few_pairs(A, 100) is None


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_every_instruction_set(isa):
    code = """
import test_few_pairs as t
for dtype in t.DTYPES:
    for n, k in ((110, 2), (259, 3), (401, 7), (610, 4)): t.check(t.gram(n, 4, dtype), k, True)
"""
    run_python(code, FASTML_ISA=isa, PYTHONPATH=os.path.dirname(__file__))
