"""Symmetric eigenproblems, against NumPy's in double."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from suites.harness import run_python

from fastml._native import eigen
from fastml._runtime.eigen import Tridiagonal, eigenpairs

DTYPES = (np.float32, np.float64)
SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 32, 33, 34, 47, 48, 49, 64, 65, 97, 130, 257, 401, 700]


def eigenpairs_naive(A):
    values, vectors = np.linalg.eigh(A.astype(np.float64))
    return values[::-1], vectors.T[::-1]


def run(A, k, threads):
    n = len(A)
    values, vectors = np.full(n, np.nan, A.dtype), np.full((k, n), np.nan, A.dtype)
    # What scratch memory holds before is of no account.
    work = np.full(eigen.work_size(n), np.nan, A.dtype)
    eigen.tridiagonal_form(A, work, threads)
    eigen.eigenpairs(values, vectors, work, threads)
    return values, vectors


def check(A, k=None, slack=1.0):
    """Residuals, orthogonality and values to rounding, and the same bits with 1 and 2 threads."""
    n = len(A)
    k = n if k is None else k
    values, vectors = run(A, k, 1)
    for one, two in zip((values, vectors), run(A, k, 2), strict=True):
        np.testing.assert_array_equal(one, two)
    assert values.dtype == vectors.dtype == A.dtype
    assert (np.diff(values) <= 0).all()
    size = float(abs(A).max()) or 1.0
    exact, V = A.astype(np.float64) / size, vectors.astype(np.float64)
    values = values.astype(np.float64) / size
    expected, _ = eigenpairs_naive(exact)
    rounding = slack * np.finfo(A.dtype).eps
    norm = max(abs(expected).max(), np.finfo(np.float64).tiny)
    assert abs(values - expected).max() <= rounding * norm * (10 + n**0.5 * 3)
    assert abs(V @ V.T - np.eye(k)).max(initial=0) <= rounding * (20 + n**0.5 * 2)
    assert abs(exact @ V.T - V.T * values[:k]).max(initial=0) <= rounding * norm * (10 + n**0.5)


def check_leading(A, k, slack=1.0):
    """The same of the k largest pairs alone."""
    n, eps = len(A), np.finfo(A.dtype).eps
    found = []
    for threads in (1, 2):
        values, vectors = np.full(k, np.nan, A.dtype), np.full((k, n), np.nan, A.dtype)
        work = np.full(eigen.work_size(n), np.nan, A.dtype)
        eigen.tridiagonal_form(A, work, threads)
        for _ in range(2):
            eigen.leading_pairs(values, vectors, work, threads)
            found.append((values.copy(), vectors.copy()))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0][0], other[0])
        np.testing.assert_array_equal(found[0][1], other[1])
    assert (np.diff(values) <= 0).all()
    size = float(abs(A).max()) or 1.0
    exact, V = A.astype(np.float64) / size, vectors.astype(np.float64)
    values = values.astype(np.float64) / size
    expected, _ = eigenpairs_naive(exact)
    norm = max(abs(expected).max(), np.finfo(np.float64).tiny)
    assert abs(values - expected[:k]).max() <= slack * eps * norm * (10 + n**0.5 * 3)
    assert abs(V @ V.T - np.eye(k)).max() <= slack * eps * (20 + n**0.5 * 2)
    assert abs(exact @ V.T - V.T * values).max() <= slack * eps * norm * (10 + n**0.5)


def normal(n, dtype=np.float64, seed=0):
    X = np.random.default_rng(seed + n).normal(size=(n, n))
    return (X + X.T).astype(dtype)


def with_spectrum(values, seed=0):
    n = len(values)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]
    A = (Q * values) @ Q.T
    return (A + A.T) / 2


SPECTRA = {
    "steep": 0.9 ** np.arange(300.0),
    "sixteen_decades": np.logspace(0, -16, 300),
    "flat": np.linspace(2, 1, 301),
    "clusters": np.repeat([3.0, 1.0, 1e-3, 0.0], 75),
    "near_clusters": np.repeat([3.0, 1.0, 1e-3], 100) * (1 + 1e-14 * np.arange(300)),
    "one": np.r_[1.0, np.zeros(299)],
    "low_rank": np.r_[np.linspace(3, 2, 12), np.zeros(288)],
    "negative": np.linspace(-9, -1, 300),
    "pairs": np.r_[np.linspace(1, 2, 150), -np.linspace(1, 2, 150)],
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_matches_naive(n, dtype):
    check(normal(n, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [65, 257, 300, 513])
def test_parts_that_are_next_to_nothing(n, dtype):
    """Squares of their gaps underflow, and so did the vectors' right angles."""
    check(np.ones((n, n), dtype))
    decades = np.add.outer(np.arange(n), np.arange(n)).clip(max=150 if dtype == np.float64 else 30)
    A = np.random.default_rng(n).normal(size=(n, n)) * 10.0**-decades
    check(np.tril(A + A.T, -1).astype(dtype) + np.triu(A + A.T).astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "k"), [(1, 0), (5, 0), (5, 1), (33, 7), (200, 1), (401, 100)])
def test_some_vectors(n, k, dtype):
    A = normal(n, dtype)
    check(A, k)
    np.testing.assert_array_equal(run(A, k, 2)[0], run(A, n, 2)[0])
    np.testing.assert_array_equal(run(A, k, 2)[1], run(A, n, 2)[1][:k])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SPECTRA)
def test_spectra(name, dtype):
    check(with_spectrum(SPECTRA[name]).astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SPECTRA)
def test_leading_pairs_of_spectra(name, dtype):
    A = with_spectrum(SPECTRA[name]).astype(dtype)
    for k in (1, 7, 16, 20, 25):  # the last too many to be found one by one
        check_leading(A, k)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("n", "k"), [(1, 1), (12, 1), (13, 1), (64, 5), (131, 10), (400, 33), (1100, 80)]
)
def test_leading_pairs(n, k, dtype):
    check_leading(normal(n, dtype), k)
    check_leading(np.ones((n, n), dtype), k)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [13, 150])
def test_leading_pairs_of_matrices_that_are_special(n, dtype):
    for A in special(n):
        check_leading(np.ascontiguousarray(A, dtype), n // 12)


@pytest.mark.parametrize("power", [-1060, -1000, -520, 300, 1000, 1020])
def test_leading_pairs_of_any_size(power):
    A = normal(150)
    A /= abs(A).max()
    if power > -1000:
        check_leading(np.ldexp(A, power), 9)
    values, vectors = Tridiagonal(np.ldexp(A, power)).leading(9)
    atol = 1e-13 if power > -1000 else 1
    np.testing.assert_allclose(np.ldexp(values, -power), eigenpairs_naive(A)[0][:9], atol=atol)
    assert np.isfinite(vectors).all()


def test_leading_pairs_are_those_of_all():
    """Nearly equal eigenvalues, which inverse iteration has to tell apart."""
    values = np.r_[2 + 1e-9 * np.arange(6.0), np.linspace(0, 1, 200)]
    form = Tridiagonal(with_spectrum(values))
    for k in (3, 6):
        few, all_ = form.leading(k), form.eigenpairs()
        np.testing.assert_allclose(few[0], all_[0][:k], rtol=1e-14)
        assert abs(abs(few[1] @ all_[1][:k].T) - np.eye(k)).max() < 1e-4
    single = form.leading(3, np.float32)
    np.testing.assert_array_equal(single[0], form.leading(3)[0])
    np.testing.assert_array_equal(single[1], form.leading(3)[1].astype(np.float32))
    assert form.leading(0)[1].shape == (0, 206)


def test_leading_pairs_of_what_is_not_finite():
    for dtype in (np.float64, np.float32):
        values, vectors = Tridiagonal(np.full((90, 90), np.nan)).leading(3, dtype)
        assert np.isnan(values).all()
        assert np.isnan(vectors).all()
    with pytest.raises(TypeError, match="in double of a problem in single"):
        Tridiagonal(np.eye(50, dtype=np.float32)).leading(3, np.float64)


def special(n):
    i = np.arange(n)
    scale = np.logspace(0, -10, n)
    hilbert = 1 / (i[:, None] + i + 1.0)
    return (
        np.zeros((n, n)),
        np.eye(n),
        np.ones((n, n)),
        np.diag(np.arange(n) - n / 2.0),
        np.diag(scale[::-1]),
        2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1),
        np.diag(abs(i - n // 2)) + np.eye(n, k=1) + np.eye(n, k=-1),  # Wilkinson's
        np.eye(n)[::-1],
        hilbert,
        normal(n) * scale * scale[:, None],
        normal(n) * scale[::-1] * scale[::-1, None],
        np.kron(np.eye(2), normal(n)),
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 33, 150])
def test_matrices_that_are_special(n, dtype):
    for A in special(n):
        check(np.ascontiguousarray(A, dtype))


@pytest.mark.parametrize("n", [1, 2, 3, 40, 150])
@pytest.mark.parametrize("power", [-1060, -1000, -520, -300, 300, 520, 1000, 1020])
def test_any_size_of_entries(n, power):
    A = normal(n)
    A /= abs(A).max()
    scaled = np.ldexp(A, power)
    if power > -1000:
        check(scaled)
    values, vectors = run(scaled, n, 1)
    expected, _ = eigenpairs_naive(A)
    atol = 1e-13 if power > -1000 else 1
    np.testing.assert_allclose(np.ldexp(values, -power), expected, atol=atol)
    assert np.isfinite(vectors).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_entries_of_very_different_sizes(dtype):
    # Columns whose squares underflow beside entries of size 1.
    tiny = np.finfo(dtype).tiny
    A = normal(120) * 1e3 * tiny
    A[:10, :10] = normal(10)
    check(A.astype(dtype))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n", [1, 40, 300])
def test_nan_and_infinity_make_all_nan(n, bad):
    A = normal(n)
    A[0, n - 1] = A[n - 1, 0] = bad
    for threads in (1, 2):
        assert all(np.isnan(part).all() for part in run(A, n, threads))


def test_half_of_the_matrix_is_read():
    A = normal(90)
    half = np.where(np.tril(np.ones_like(A), -1) > 0, np.nan, A)
    np.testing.assert_array_equal(run(half, 90, 2)[1], run(A, 90, 2)[1])


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_every_instruction_set(isa):
    code = """
import numpy as np, test_eigen as t
for dtype in t.DTYPES:
    for n in (1, 5, 33, 65, 130, 401): t.check(t.normal(n, dtype))
    t.check(t.normal(300, dtype), 40)
    t.check_leading(t.normal(300, dtype), 11)
    t.check(t.with_spectrum(t.SPECTRA["clusters"]).astype(dtype))
"""
    run_python(code, FASTML_ISA=isa, PYTHONPATH=os.path.dirname(__file__))


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_layout(dtype):
    A = normal(60, dtype)
    expected = eigenpairs(A)
    wide = np.zeros((60, 120), dtype)
    wide[:, ::2] = A
    for layout in (np.asfortranarray(A), wide[:, ::2]):
        for one, two in zip(expected, eigenpairs(layout), strict=True):
            np.testing.assert_allclose(one, two, atol=200 * np.finfo(dtype).eps)
    values, vectors = eigenpairs(np.empty((0, 0), dtype))
    assert values.shape == (0,)
    assert vectors.shape == (0, 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_count_below(dtype):
    for n in (1, 2, 50, 300):
        values = np.linspace(0.1, 10, n)
        form = Tridiagonal(with_spectrum(values).astype(dtype))
        for part in (1e-3, 0.3333, 0.5, 2.0):
            expected = np.count_nonzero(values < part * values[-1])
            assert abs(form.count_below(part) - expected) <= 1
    assert Tridiagonal(np.zeros((9, 9), dtype)).count_below(0.5) == 0
    assert Tridiagonal(-np.eye(9, dtype=dtype)).count_below(0.5) == 0
    assert Tridiagonal(np.full((9, 9), np.nan, dtype)).count_below(0.5) == 0


def test_vectors_as_often_as_wanted():
    form = Tridiagonal(normal(200))
    few, all_, again = form.eigenpairs(20), form.eigenpairs(), form.eigenpairs()
    np.testing.assert_array_equal(few[1], all_[1][:20])
    np.testing.assert_array_equal(all_[1], again[1])


def test_interrupted():
    A = normal(3000)
    timer = threading.Timer(0.2, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(20):
            eigenpairs(A)
    assert time.perf_counter() - start < 5
    check(normal(300))


@pytest.mark.parametrize("n", SIZES)
def test_vectors_in_single_precision(n):
    A = normal(n)
    exact = eigenpairs(A)
    for k in (n, n // 2, 0):
        found = []
        for threads in (1, 2):
            form = np.full(eigen.work_size(n), np.nan)
            eigen.tridiagonal_form(A, form, threads)
            values, vectors = np.empty(n), np.full((k, n), np.nan, np.float32)
            for _ in range(2):
                eigen.eigenpairs(values, vectors, form, threads)
                found.append(vectors.copy())
            np.testing.assert_array_equal(values, exact[0])
            assert abs(vectors - exact[1][:k]).max(initial=0) < 1e-7 * (5 + n**0.5)
        for other in found[1:]:
            np.testing.assert_array_equal(found[0], other)
    with pytest.raises(TypeError, match="in double of a problem in single"):
        eigen.eigenpairs(np.empty(n, np.float32), exact[1], form.astype(np.float32), 1)


def test_vectors_in_single_precision_of_what_is_not_finite():
    form = Tridiagonal(np.full((40, 40), np.nan))
    values, vectors = form.eigenpairs(3, np.float32)
    assert np.isnan(values).all() and np.isnan(vectors).all() and vectors.dtype == np.float32
