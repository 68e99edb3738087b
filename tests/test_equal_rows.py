"""Linear support vector machines on rows of which many are equal, which are merged."""

import numpy as np
import pytest
from fastml._native.rows import Rows
from scipy import sparse
from test_linear_svm import KINDS

from fastml._native import linear_svm as native


def categories(n, levels, seed=0):
    """Three categories a row, one hot, as they come in tables, and targets of few values."""
    rng = np.random.default_rng(seed)
    code = rng.integers(levels, size=(n, 3))
    X = np.zeros((n, 3 * levels))
    X[np.arange(n)[:, None], code + levels * np.arange(3)] = 1
    score = X @ rng.normal(size=3 * levels) + 0.5 * rng.normal(size=n)
    return X, np.round(2 * score) / 2, rng.uniform(0.2, 2, n)


def merged_naive(X, b, C):
    """Rows that differ, with their targets, and the sums of their costs."""
    rows, at = np.unique(np.c_[X, b], axis=0, return_inverse=True)
    return rows[:, :-1].copy(), rows[:, -1].copy(), np.bincount(at.ravel(), C)


def solved(X, b, C, regression, squared, threads=1):
    method = "newton" if squared else "augmented"
    epsilon = 0.1 if regression else 0.0
    solver = native.solver(
        method, Rows(X), 1.0, b, C, epsilon, regression, squared, 1e-10, 10_000, 0
    )
    while not solver.done:
        native.advance([solver], False, threads)
    w = np.empty(X.shape[1] + 1)
    solver.coef(w)
    return w, solver


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "levels"), [(1_000, 2), (5_000, 5)])
def test_equal_rows_count_as_one_with_all_their_costs(n, levels, kind, dense, dtype):
    X, score, C = categories(n, levels)
    regression, squared = KINDS[kind]
    b = score if regression else np.where(score > 0, 1.0, -1.0)
    whole = (X if dense else sparse.csr_matrix(X)).astype(dtype)
    one, two = (solved(whole, b, C, regression, squared, threads) for threads in (1, 2))
    np.testing.assert_array_equal(one[0], two[0])
    few, expected = solved(*merged_naive(X, b, C), regression, squared)
    assert len(merged_naive(X, b, C)[0]) < n // 2
    assert one[1].converged and expected.converged
    assert one[1].primal == pytest.approx(expected.primal, rel=1e-8)
    assert abs(one[1].gap) <= 1e-9 * one[1].primal
    if squared:
        np.testing.assert_allclose(one[0], few, rtol=0, atol=1e-5 * abs(few).max())


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_nearly_are_equal_stay_apart(kind):
    X, score, C = categories(4_000, 3)
    X[::2, 0] += 1e-3 * np.random.default_rng(0).integers(1, 4, 2_000)
    X[1::2, 0] *= -1  # and zeros of both signs are the same for the objective
    regression, squared = KINDS[kind]
    b = score if regression else np.where(score > 0, 1.0, -1.0)
    solver = solved(X, b, C, regression, squared)[1]
    expected = solved(*merged_naive(X, b, C), regression, squared)[1]
    assert solver.converged
    assert solver.primal == pytest.approx(expected.primal, rel=1e-8)
