"""The kernels of alternating least squares against their naive twins."""

import numpy as np
import pytest
from scipy import sparse

from fastml._native import als
from fastml.recommendation._base import padded_copy

N_FACTORS = (1, 3, 16, 17, 50, 64, 130)
DTYPES = (np.float32, np.float64)
TOLERANCE = {np.float32: 3e-4, np.float64: 1e-10}


def problem(f, dtype, seed=0, n=24, m=300):
    """Rows with no entry, with few and with many, and the factors of their columns."""
    rng = np.random.default_rng(seed)
    size = np.minimum(rng.lognormal(3, 1.3, n).astype(int), m)
    size[3] = 0
    indices = np.concatenate([np.sort(rng.choice(m, k, replace=False)) for k in size])
    indptr = np.append(0, np.cumsum(size))
    ratings = sparse.csr_matrix((rng.normal(size=len(indices)), indices, indptr), shape=(n, m))
    Y = rng.normal(size=(m, f)).astype(dtype)
    return ratings, Y, rng


def solve(ratings, Y, *, bias=False, scale=None, offset=None, start=None, threads=1, **ridge):
    f, dtype = Y.shape[1], Y.dtype
    x = padded_copy(np.zeros((ratings.shape[0], f), dtype) if start is None else start)
    biases = np.full(len(x), 7, dtype) if bias else None
    ridge = {"alpha": 0.7, "by_count": False, "method": "cholesky", "steps": 1} | ridge
    error, penalty = als.solve_rows(
        padded_copy(Y),
        f,
        ratings.indptr.astype(np.intp),
        ratings.indices.astype(np.int32),
        ratings.data.astype(dtype),
        scale,
        offset,
        x,
        biases,
        ridge["alpha"],
        ridge["by_count"],
        ridge["method"],
        ridge["steps"],
        ridge.get("nonnegative", False),
        True,
        threads,
    )
    assert (x[:, f:] == 0).all()
    return x[:, :f], biases, error, penalty


def solve_naive(ratings, Y, alpha, by_count, bias, scale, offset):
    n, f = ratings.shape[0], Y.shape[1]
    x, biases, error, penalty = np.zeros((n, f)), np.zeros(n), 0.0, 0.0
    for i in range(n):
        row = slice(*ratings.indptr[i : i + 2])
        j = ratings.indices[row]
        if len(j) == 0:
            continue
        G, t = Y[j].astype(np.float64), ratings.data[row].astype(np.float64)
        G = G if scale is None else G * scale[row, np.newaxis]
        t = t if offset is None else t - offset[j]
        G = np.c_[G, np.ones(len(j))] if bias else G
        reg = alpha * (len(j) if by_count else 1)
        w = np.linalg.solve(G.T @ G + reg * np.eye(G.shape[1]), G.T @ t)
        q = G @ w
        error += ((t - q) ** 2).sum() if scale is None else (q * (q - 2 * t)).sum()
        penalty += reg * w @ w
        x[i], biases[i] = w[:f], w[f] if bias else 0
    return x, biases, error, penalty


@pytest.mark.parametrize("method", ["cholesky", "cg", "blocks"])
@pytest.mark.parametrize("kind", ["plain", "bias", "scale"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("f", N_FACTORS)
def test_rows(f, dtype, kind, method):
    ratings, Y, rng = problem(f, dtype)
    bias = kind == "bias"
    scale = rng.random(ratings.nnz).astype(dtype) + dtype(0.1) if kind == "scale" else None
    offset = rng.normal(size=len(Y)).astype(dtype) if bias else None
    by_count = kind == "bias"
    steps = {"cholesky": 1, "cg": 2 * f + 40, "blocks": 1 if f <= 64 else 100}[method]
    alpha = 30.0 if method == "blocks" and f > 64 else 0.7
    given = {"bias": bias, "scale": scale, "offset": offset, "by_count": by_count}
    given |= {"alpha": alpha, "method": method, "steps": steps}
    found = solve(ratings, Y, **given)
    for one, many in zip(found, solve(ratings, Y, threads=2, **given), strict=True):
        np.testing.assert_array_equal(one, many)
    expected = solve_naive(ratings, Y, alpha, by_count, bias, scale, offset)
    inexact = 30 if dtype == np.float32 else 3000  # it ends when the residual is small
    tolerance = TOLERANCE[dtype] * (3 if method == "cholesky" else inexact)
    np.testing.assert_allclose(found[0], expected[0], rtol=0, atol=tolerance)
    if bias:
        np.testing.assert_allclose(found[1], expected[1], rtol=0, atol=tolerance)
    np.testing.assert_allclose(found[2:], expected[2:], rtol=tolerance)


@pytest.mark.parametrize("method", ["cholesky", "cg", "blocks"])
@pytest.mark.parametrize("bias", [False, True])
def test_rows_longer_than_a_panel(bias, method):
    """They are gathered again for every pass."""
    rng = np.random.default_rng(0)
    m, f = 9_000, 80
    ratings = sparse.csr_matrix(rng.normal(size=(2, m)))
    Y = rng.normal(size=(m, f))
    steps = {"cholesky": 1, "cg": 30, "blocks": 6}[method]
    found = solve(ratings, Y, bias=bias, method=method, steps=steps, threads=2)
    expected = solve_naive(ratings, Y, 0.7, False, bias, None, None)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-7)
    np.testing.assert_allclose(found[2:], expected[2:], rtol=1e-7)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["cg", "blocks"])
def test_inexact_methods_go_on_from_where_they_are(method, dtype):
    ratings, Y, _ = problem(130, dtype)
    exact = solve(ratings, Y)
    stay = solve(ratings, Y, start=exact[0], method=method)
    np.testing.assert_allclose(stay[0], exact[0], atol=10 * TOLERANCE[dtype])
    losses = [sum(solve(ratings, Y, method=method, steps=steps)[2:]) for steps in (1, 2, 4, 8)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] >= sum(exact[2:]) * (1 - 1e-5)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_nonnegative(dtype, bias):
    """At the optimum: no gradient where x is positive, none downhill where it is 0."""
    ratings, Y, _ = problem(17, dtype)
    x, biases, _, _ = solve(ratings, Y, bias=bias, nonnegative=True, steps=3000)
    assert (x >= 0).all()
    assert (x == 0).mean() > 0.1
    for i in range(ratings.shape[0]):
        row = slice(*ratings.indptr[i : i + 2])
        G, t = Y[ratings.indices[row]].astype(np.float64), ratings.data[row]
        left = t - G @ x[i] - (biases[i] if bias else 0)
        slope = 0.7 * x[i] - G.T @ left
        close = 2e-3 if dtype == np.float32 else 1e-9
        np.testing.assert_allclose(slope[x[i] > 0], 0, atol=close)
        assert (slope > -close).all()
        if bias:
            np.testing.assert_allclose(left.sum(), 0.7 * biases[i], atol=close)


@pytest.mark.parametrize("dtype", DTYPES)
def test_singular_systems_have_a_solution(dtype):
    ratings, Y, _ = problem(20, dtype)
    Y[:, 7] = Y[:, 3]
    Y[:, 11] = 0
    x, _, error, penalty = solve(ratings, Y, alpha=0.0)
    assert np.isfinite(x).all()
    assert penalty == 0
    least = 0.0
    for i in range(ratings.shape[0]):
        row = slice(*ratings.indptr[i : i + 2])
        G, t = Y[ratings.indices[row]].astype(np.float64), ratings.data[row]
        least += np.square(t - G @ np.linalg.lstsq(G, t, rcond=1e-6)[0]).sum()
    np.testing.assert_allclose(error, least, rtol=0.02)


@pytest.mark.parametrize("method", ["cholesky", "cg", "blocks"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_same_bits_for_any_number_of_threads(dtype, method):
    ratings, Y, _ = problem(70, dtype, n=1_000)
    outcomes = [
        (*solve(ratings, Y, bias=True, method=method, threads=t), gram(Y, t)) for t in (1, 2, 3, 5)
    ]
    for outcome in outcomes[1:]:
        for one, many in zip(outcomes[0], outcome, strict=True):
            np.testing.assert_array_equal(one, many)


def gram(Y, threads):
    out = np.empty((Y.shape[1], Y.shape[1]))
    als.gram(padded_copy(Y), out, threads)
    return out


@pytest.mark.parametrize("n", [1, 47, 1000])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("f", N_FACTORS)
def test_gram_and_whitening(f, dtype, n):
    Y = np.random.default_rng(0).normal(size=(n, f)).astype(dtype)
    found, expected = gram(Y, 2), Y.T.astype(np.float64) @ Y.astype(np.float64)
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE[dtype] * n**0.5)
    ld = -(-f // 16) * 16
    root, inverse = np.empty((ld, ld)), np.empty((ld, ld))
    als.whitening(expected, 0.5, root, inverse)
    R = root[:f, :f]
    np.testing.assert_allclose(R.T @ R, expected + 0.5 * np.eye(f), atol=1e-9 * (1 + n))
    np.testing.assert_allclose(R @ inverse[:f, :f], np.eye(f), atol=1e-9)
    for matrix in (root, inverse):
        assert (np.tril(matrix, -1) == 0).all()
        assert (matrix[f:] == 0).all()
        assert (matrix[:, f:] == 0).all()


@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("f", N_FACTORS)
def test_predict_pairs(f, dtype, biases):
    rng = np.random.default_rng(0)
    U, V = rng.normal(size=(30, f)).astype(dtype), rng.normal(size=(20, f)).astype(dtype)
    b, c = (rng.normal(size=n).astype(dtype) if biases else None for n in (30, 20))
    users, items = rng.integers(-1, 30, 999), rng.integers(-1, 20, 999)
    out = np.empty(999, dtype)
    als.predict_pairs(U, V, b, c, 3.5, users.astype(np.int32), items.astype(np.int32), out, 2)
    known = (users >= 0) & (items >= 0)
    expected = 3.5 + np.where(known, (U[users] * V[items]).sum(axis=1, dtype=np.float64), 0)
    if biases:
        expected += np.where(users >= 0, b[users], 0) + np.where(items >= 0, c[items], 0)
    np.testing.assert_allclose(out, expected, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("method", ["cholesky", "cg"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_so_long_that_threads_share_them(dtype, bias, method):
    rng = np.random.default_rng(0)
    n, m, f = (1 << 17) + 5000, (1 << 17) + 9000, 5
    indices = np.r_[np.sort(rng.choice(m, n, replace=False)), np.arange(7)]
    ratings = sparse.csr_matrix((rng.normal(size=n + 7), indices, [0, n, n + 7]), shape=(2, m))
    Y = rng.normal(size=(m, f)).astype(dtype)
    outcomes = [solve(ratings, Y, bias=bias, method=method, threads=t) for t in (1, 2, 3)]
    for outcome in outcomes[1:]:
        for one, many in zip(outcomes[0], outcome, strict=True):
            np.testing.assert_array_equal(one, many)
    x, biases, *sums = outcomes[0]
    expected = solve_naive(ratings, Y, 0.7, False, bias, None, None)
    np.testing.assert_allclose(x[0], expected[0][0], atol=TOLERANCE[dtype])
    if bias:
        np.testing.assert_allclose(biases[0], expected[1][0], atol=TOLERANCE[dtype])
    if method == "cholesky":
        np.testing.assert_allclose(sums, expected[2:], rtol=TOLERANCE[dtype])
