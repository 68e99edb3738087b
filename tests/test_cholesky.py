"""Cholesky's factorisation by panels, against NumPy's."""

import numpy as np
import pytest
from fastml._native.cholesky import factorise_panel

from fastml._runtime.callbacks import NO_TASK
from fastml.kernel_ridge._cholesky import factorise, panels, restore, solve

DTYPES = (np.float32, np.float64)


def gram(n, dtype=np.float64, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 2 * n))
    return np.ascontiguousarray(X @ X.T / n).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "width"), [(1, 1), (2, 1), (17, 5), (130, 64), (300, 300)])
def test_panels_make_the_factor(n, width, dtype):
    K = gram(n, dtype)
    R = K.copy()
    for begin in range(0, n, width):
        assert factorise_panel(R, begin, min(width, n - begin))
    expected = np.linalg.cholesky(K.astype(np.float64)).T
    np.testing.assert_allclose(np.triu(R), expected, atol=200 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(np.tril(R, -1), np.tril(K, -1))


def test_panels_cover_all_rows():
    for n in (0, 1, 4096, 4097, 10_001, 50_000):
        rows = [range(begin, begin + width) for begin, width in panels(n)]
        assert [row for some in rows for row in some] == list(range(n))


def test_panels_that_are_none():
    for begin, width in ((-1, 2), (0, 0), (2, 2)):
        with pytest.raises(ValueError, match="no such panel"):
            factorise_panel(np.eye(3), begin, width)
    with pytest.raises(ValueError, match="no such panel"):
        factorise_panel(np.ones((3, 4)), 0, 1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_solve_and_restore(dtype):
    K, B = gram(600, dtype), np.random.default_rng(1).normal(size=(600, 3)).astype(dtype)
    R = K.copy()
    assert factorise(R, NO_TASK)
    solution = solve(R, B)
    assert solution.dtype == dtype
    np.testing.assert_allclose(K @ solution, B, atol=1e4 * np.finfo(dtype).eps)
    restore(R, K.diagonal().copy())
    np.testing.assert_array_equal(R, K)


def test_what_is_not_positive_definite():
    indefinite = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert not factorise(indefinite, NO_TASK)
    assert indefinite[1, 0] == 2
    rank_one = np.ones((50, 50)) * 3
    assert not factorise(rank_one, NO_TASK)
    assert not factorise(np.full((3, 3), np.nan), NO_TASK)
