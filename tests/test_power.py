"""Products with narrow blocks of vectors, against plain twins."""

import numpy as np
import pytest
from scipy import sparse

from fastml._native import power

SHAPES = [(1, 1), (1, 37), (37, 1), (5, 3), (100, 7), (401, 33), (49, 300), (1500, 65), (20, 900)]
WIDTHS = [1, 2, 3, 8, 13, 24, 40, 65, 110]


def matrices(n, d, k, dtype):
    rng = np.random.default_rng(n * d + k)
    X = rng.normal(size=(n, d)).astype(dtype) + 3
    return X, rng.normal(size=(d, k)).astype(dtype), rng.normal(size=(n, k)).astype(dtype)


def close(found, expected, terms, dtype):
    __tracebackhide__ = True
    scale = abs(expected).max() + terms**0.5
    np.testing.assert_allclose(
        found / scale, expected / scale, rtol=0, atol=40 * np.finfo(dtype).eps
    )


def products_naive(X, mean, V, U):
    X = X.astype(np.float64) - (0 if mean is None else mean)
    return X @ V, X.T @ U, X.T @ (X @ V)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_matches_naive(dtype, shape, order, centred):
    n, d = shape
    for k in WIDTHS:
        X, V, U = matrices(n, d, k, dtype)
        mean = X.mean(axis=0) if centred else None
        expected = products_naive(X, mean, V, U)
        X = np.asarray(X, order=order)
        for name, by, want in zip(
            ("times", "transposed", "gram"), (V, U, V), expected, strict=True
        ):
            found = []
            for threads in (1, 2):
                out = np.full(want.shape, np.nan, dtype)
                getattr(power, name)(X, mean, by, out, threads)
                found.append(out)
            np.testing.assert_array_equal(*found)
            close(found[0], want, n * d if name == "gram" else d, dtype)


@pytest.mark.parametrize("shape", [(1, 1), (3, 50), (700, 40), (60, 2000)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_matches_naive(dtype, shape):
    n, d = shape
    rng = np.random.default_rng(n)
    X = sparse.random(n, d, 0.2, "csr", dtype=dtype, random_state=0)
    X.indices, X.data = X.indices[::-1].copy() % d, X.data - dtype(0.5)  # unsorted, duplicates
    dense = X.toarray().astype(float)
    for k in [*WIDTHS, 130, 300]:
        V, less = rng.normal(size=(d, k)).astype(dtype), rng.normal(size=k).astype(dtype)
        for offset in (None, less):
            found = []
            for threads in (1, 2):
                out = np.full((n, k), np.nan, dtype)
                power.sparse_times(X.data, X.indices, X.indptr, V, offset, False, out, threads)
                power.sparse_times(X.data, X.indices, X.indptr, V, None, True, out, threads)
                found.append(out)
            np.testing.assert_array_equal(*found)
            expected = 2 * (dense @ V) - (0 if offset is None else offset)
            close(found[0], expected, d, dtype)
    found = [np.full(d, np.nan, dtype) for _ in range(2)]
    for threads, out in enumerate(found, 1):
        power.sparse_gram(X.data, X.indices, X.indptr, V[:, 0].copy(), 0.25, out, threads)
    np.testing.assert_array_equal(*found)
    close(found[0], dense.T @ (dense @ V[:, 0] - 0.25), n * d, dtype)


@pytest.mark.parametrize("k", [1, 5, 110])
def test_factor_and_inverse(k):
    Y = np.random.default_rng(k).normal(size=(300, k))
    G = Y.T @ Y
    R, inverse = np.full((2, k, k), np.nan)
    assert power.factorise(G, R, inverse)
    np.testing.assert_allclose(R, np.linalg.cholesky(G).T, atol=1e-11)
    np.testing.assert_allclose(R @ inverse, np.eye(k), atol=1e-12)
    G[k // 2, k // 2] = -1
    assert not power.factorise(G, R, inverse)
