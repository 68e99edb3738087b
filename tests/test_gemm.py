import numpy as np
import pytest
from fastml._native.gemm import gemm


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-5), (np.float64, 1e-13)])
@pytest.mark.parametrize("d", [1, 2, 7, 8, 33, 256, 257, 700, 2049])  # across tile_depth and tails
@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 50), (8, 24), (97, 49), (200, 1)])
def test_matches_numpy(dtype, rtol, d, m, n):
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(m, d)).astype(dtype), rng.normal(size=(n, d)).astype(dtype)
    out = np.full((m, n), np.nan, dtype)
    gemm(A, B, out, 1)
    expected = A.astype(np.float64) @ B.T.astype(np.float64)
    size = np.linalg.norm(A, axis=1)[:, None] * np.linalg.norm(B, axis=1)
    assert np.all(np.abs(out - expected) <= rtol * size)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_bits_for_any_number_of_threads(dtype):
    rng = np.random.default_rng(1)
    A, B = rng.normal(size=(1000, 60)).astype(dtype), rng.normal(size=(301, 60)).astype(dtype)
    one, many = np.empty((1000, 301), dtype), np.empty((1000, 301), dtype)
    gemm(A, B, one, 1)
    for threads in (2, 3, 7):
        gemm(A, B, many, threads)
        np.testing.assert_array_equal(one, many)


def test_nan_and_infinity_propagate():
    A, B = np.ones((9, 4)), np.ones((30, 4))
    A[3, 1], B[7, 2] = np.nan, np.inf
    out = np.empty((9, 30))
    gemm(A, B, out, 2)
    assert np.isnan(out[3]).all()
    assert np.isinf(np.delete(out, 3, axis=0)[:, 7]).all()
    assert np.isfinite(np.delete(np.delete(out, 3, axis=0), 7, axis=1)).all()
