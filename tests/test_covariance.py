"""Products of columns and of rows, against a plain twin."""

import os
import subprocess
import sys

import numpy as np
import pytest
from fastml._native.covariance import products, sparse_products
from scipy import sparse

EPS = {np.float32: 1e-6, np.float64: 1e-14}
SHAPES = [(1, 1), (5, 3), (300, 17), (1100, 50), (1700, 100), (520, 257), (20, 660), (530, 49)]


def products_naive(X, shift, of_rows):
    Z = X.astype(np.float64) - shift
    return (Z @ Z.T, Z.sum(axis=1)) if of_rows else (Z.T @ Z, Z.sum(axis=0))


def run(X, shift, of_rows, threads):
    size = X.shape[0 if of_rows else 1]
    sums, out = np.empty(size), np.empty((size, size))
    products(X, shift, of_rows, False, sums, out, threads)
    return out, sums


def check(shape, dtype, wide):
    X = (np.random.default_rng(0).normal(size=shape) + 100).astype(dtype)
    shift = X.mean(axis=0).astype(wide)
    for of_rows in (False, True):
        expected, expected_sums = products_naive(X, shift, of_rows)
        size = np.sqrt(np.diag(expected))
        known = None
        for threads in (1, 2, 3):
            for layout in (X, np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2]):
                out, sums = run(layout, shift, of_rows, threads)
                if known is None:
                    known = out
                    assert (abs(out - expected) <= EPS[wide] * np.outer(size, size) + 1e-30).all()
                    atol = EPS[wide] * np.sqrt(X.size) * 10
                    np.testing.assert_allclose(sums, expected_sums, rtol=0, atol=atol)
                np.testing.assert_array_equal(out, known)
        np.testing.assert_array_equal(known, known.T)


@pytest.mark.parametrize(
    ("dtype", "wide"),
    [(np.float32, np.float32), (np.float32, np.float64), (np.float64, np.float64)],
)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_matches_naive(shape, dtype, wide):
    check(shape, dtype, wide)


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_matches_naive_on_each_instruction_set(isa):
    code = (
        "import numpy as np, test_covariance as t\n"
        "for shape in t.SHAPES:\n"
        "    for wide in (np.float32, np.float64): t.check(shape, np.float32, wide)\n"
        "    t.check(shape, np.float64, np.float64)"
    )
    here = os.path.dirname(__file__)
    path = os.pathsep.join([here, os.path.dirname(here), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"FASTML_ISA": isa, "PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


@pytest.mark.parametrize("shape", [(1, 3), (520, 257), (1100, 50), (700, 660)], ids=str)
def test_takes_what_means_are_off(shape):
    X = np.random.default_rng(0).normal(size=shape) + 3
    sums, out = np.empty(shape[1]), np.empty((shape[1], shape[1]))
    products(X, np.full(shape[1], 2.5), False, True, sums, out, 2)
    Z = X - X.mean(axis=0)
    np.testing.assert_allclose(out, Z.T @ Z, rtol=0, atol=1e-14 * len(X))
    np.testing.assert_array_equal(out, out.T)
    np.testing.assert_allclose(sums, (X - 2.5).sum(axis=0), rtol=1e-12)


def test_nan_and_infinity_reach_the_diagonal():
    X = np.ones((900, 30))
    X[700, 3], X[10, 29] = np.nan, np.inf
    out, _ = run(X, np.zeros(30), False, 2)
    assert np.isnan(out[3, 3])
    assert np.isinf(out[29, 29])
    assert np.isfinite(np.delete(np.diag(out), [3, 29])).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (7, 30), (2000, 90)])
def test_sparse_matches_naive(n, d, dtype):
    X = sparse.random(n, d, 0.3, random_state=0, format="csr", dtype=dtype)
    one, two = np.empty((d, d)), np.empty((d, d))
    sparse_products(X.data, X.indices, X.indptr, one, 1)
    sparse_products(X.data, X.indices, X.indptr, two, 2)
    dense = X.toarray().astype(np.float64)
    np.testing.assert_allclose(one, dense.T @ dense, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(one, two)


def test_sparse_takes_duplicates_in_any_order_and_nothing():
    X = sparse.csr_matrix((np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3])))
    out = np.empty((3, 3))
    sparse_products(X.data, X.indices, X.indptr, out, 1)
    np.testing.assert_array_equal(out, np.outer([2, 0, 5], [2, 0, 5]))
    nothing = sparse.csr_matrix((4, 3))
    sparse_products(nothing.data, nothing.indices, nothing.indptr, out, 1)
    assert not out.any()
