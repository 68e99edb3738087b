"""Products with symmetric matrices, and their largest eigenvalues, against NumPy's."""

import numpy as np
import pytest
from fastml._native.symmetric import (
    centre,
    centred_times,
    combine,
    orthonormalise,
    project_out,
    symmetric_times,
)
from scipy.linalg import eigh
from suites.harness import run_python

from fastml.decomposition._lanczos import largest

DTYPES = (np.float32, np.float64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 9, 127, 130, 700, 1601])
def test_products(n, dtype):
    rng = np.random.default_rng(n)
    K, V = rng.normal(size=(n, n)).astype(dtype), rng.normal(size=(n, 64 // dtype().itemsize))
    V = V.astype(dtype)
    outs = [np.empty_like(V) for _ in range(2)]
    for threads, out in enumerate(outs, 1):
        symmetric_times(K, V, out, threads)
    np.testing.assert_array_equal(*outs)
    exact = (np.tril(K) + np.tril(K, -1).T).astype(np.float64) @ V
    np.testing.assert_allclose(outs[0], exact, rtol=0, atol=60 * np.finfo(dtype).eps * n**0.5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 9, 127, 700])
def test_centre(n, dtype):
    rng = np.random.default_rng(n)
    K = (rng.normal(size=(n, n)) + 3).astype(dtype)
    means, outs = (K.mean(axis=0), K.mean(axis=1), K.mean()), [K.copy() for _ in range(2)]
    for threads, out in enumerate(outs, 1):
        centre(out, *means, threads)
    np.testing.assert_array_equal(*outs)
    exact = K.astype(np.float64)
    exact -= exact.mean(axis=0) + exact.mean(axis=1, keepdims=True) - exact.mean()
    np.testing.assert_allclose(outs[0], exact, rtol=0, atol=60 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "count"), [(1, 1), (9, 3), (1700, 5)])
def test_project_out(n, count, dtype):
    w = 64 // dtype().itemsize
    rng = np.random.default_rng(n)
    V, W = rng.normal(size=(count, n, w)).astype(dtype), rng.normal(size=(n, w)).astype(dtype)
    flat = np.hstack(list(V)).astype(np.float64)
    exact, results = flat.T @ W, []
    for threads in (1, 2):
        out, C = W.copy(), np.empty((count * w, w))
        project_out(V, out, C, threads)
        results.append((out, C))
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)
    atol = 30 * np.finfo(dtype).eps * n**0.5
    np.testing.assert_allclose(C, exact, rtol=0, atol=atol)
    np.testing.assert_allclose(
        out, W - flat @ exact, rtol=0, atol=atol * abs(exact).max() * count * w
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 9, 127, 700, 1601])
def test_centred_products(n, dtype):
    rng = np.random.default_rng(n)
    K, V = rng.normal(size=(n, n)) + 5, rng.normal(size=(n, 64 // dtype().itemsize)) + 1
    K, V = (K + K.T).astype(dtype), V.astype(dtype)
    outs = [np.empty_like(V) for _ in range(2)]
    for threads, out in enumerate(outs, 1):
        centred_times(K, K.mean(axis=0), V, out, threads)
    np.testing.assert_array_equal(*outs)
    J = np.eye(n) - 1 / n
    exact = J @ K.astype(np.float64) @ J @ V
    np.testing.assert_allclose(outs[0], exact, rtol=0, atol=600 * np.finfo(dtype).eps * n**0.5)


def vectors_of(strands):
    return np.hstack(list(strands)).astype(np.float64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "count", "s"), [(60, 0, 1), (300, 2, 1), (1700, 3, 2)])
def test_orthonormal_and_combined(n, count, s, dtype):
    w, eps = 64 // dtype().itemsize, np.finfo(dtype).eps
    rng = np.random.default_rng(n)
    Q = np.linalg.qr(rng.normal(size=(n, (count + s) * w)))[0].astype(dtype)
    strands = np.ascontiguousarray(Q.reshape(n, -1, w).swapaxes(0, 1))
    V, start = strands[:count], strands[count:]
    S, results = rng.normal(size=(s * w, s * w)), []
    for threads in (1, 2):
        W, R = np.empty_like(start), np.empty_like(S)
        combine(start, S, W, threads)
        found = W.copy()
        assert orthonormalise(V, found, R, threads)
        results.append((W, found, R))
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)
    W, found = vectors_of(W), vectors_of(found)
    np.testing.assert_allclose(W, vectors_of(start) @ S, rtol=0, atol=30 * eps * w)
    np.testing.assert_allclose(found @ R, W, rtol=0, atol=100 * eps * w)
    assert (np.tril(R, -1) == 0).all()
    every = np.hstack([vectors_of(V), found]) if count else found
    np.testing.assert_allclose(every.T @ every, np.eye(every.shape[1]), atol=20 * eps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dependent_vectors_stay(dtype):
    W = np.random.default_rng(0).normal(size=(1, 100, 64 // dtype().itemsize)).astype(dtype)
    W[0, :, 1] = W[0, :, 0]
    given, R = W.copy(), np.empty((W.shape[2],) * 2)
    assert not orthonormalise(W[:0], W, R, 1)
    np.testing.assert_array_equal(W, given)


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_every_instruction_set(isa):
    code = """
import numpy as np
from fastml._native.symmetric import symmetric_times
rng = np.random.default_rng(0)
for dtype in (np.float32, np.float64):
    for n in (321, 1027):
        K = rng.normal(size=(n, n)).astype(dtype)
        K += K.T
        V = rng.normal(size=(n, 64 // dtype().itemsize)).astype(dtype)
        outs = [np.empty_like(V) for _ in range(2)]
        for threads, out in enumerate(outs, 1):
            symmetric_times(K, V, out, threads)
        assert (outs[0] == outs[1]).all()
        assert np.abs(out - K.astype(float) @ V).max() < 2000 * np.finfo(dtype).eps
"""
    run_python(code, FASTML_ISA=isa)


def spectrum(values, seed=0):
    """A symmetric matrix with these eigenvalues."""
    n = len(values)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]
    return (Q * values) @ Q.T


SPECTRA = {
    "steep": 0.7 ** np.arange(300.0),
    "flat": np.linspace(2, 1, 300),
    "multiple": np.r_[np.full(20, 3.0), np.linspace(2, 0, 280)],
    "negative": np.r_[np.linspace(3, 2, 10), np.linspace(-9, -1, 290)],
    "low_rank": np.r_[np.linspace(3, 2, 12), np.zeros(288)],
    "zero": np.zeros(300),
    "identity": np.ones(300),
    "two": np.repeat([2.0, 1.0], 150),
}


@pytest.mark.parametrize("k", [1, 4, 8, 15])
@pytest.mark.parametrize("name", SPECTRA)
def test_largest_eigenvalues(name, k):
    A = spectrum(SPECTRA[name])
    start = np.random.default_rng(1).normal(size=(300, 8))
    found = largest(lambda V: A @ V, start, k, tol=1e-13, max_iter=500)
    assert found.converged
    scale = max(abs(SPECTRA[name]).max(), 1)
    np.testing.assert_allclose(found.values, np.sort(SPECTRA[name])[::-1][:k], atol=1e-11 * scale)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(k), atol=1e-11)
    off = A @ found.vectors - found.vectors * found.values
    assert abs(off).max() < 1e-11 * scale


@pytest.mark.parametrize("n", [1, 2, 5, 9, 20])
def test_few_rows(n):
    A = spectrum(np.linspace(1, 2, n))
    start = np.random.default_rng(1).normal(size=(n, 8))
    for k in range(1, n + 1):
        found = largest(lambda V: A @ V, start, k, tol=1e-13, max_iter=500)
        np.testing.assert_allclose(found.values, eigh(A)[0][::-1][:k], atol=1e-12)


def test_iterations_run_out():
    A = spectrum(SPECTRA["flat"])
    start = np.random.default_rng(1).normal(size=(300, 8))
    found = largest(lambda V: A @ V, start, 3, tol=1e-13, max_iter=2)
    assert not found.converged
    assert found.n_iter == 2
    assert found.vectors.shape == (300, 3)
    assert (found.residuals > 1e-13).all()
