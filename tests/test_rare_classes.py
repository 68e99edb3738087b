"""Linear support vector machines where one class is rare."""

import numpy as np
import pytest
from fastml._native.rows import Rows
from scipy import sparse

from fastml._native import linear_svm as native

# How far the rare class is from the other; noise: they are not told apart.
SHIFTS = {"far": 4.0, "near": 1.5, "noise": 0.0}


def rare(n, d, shift, part=0.02, seed=0):
    """Correlated columns of very different scales."""
    rng = np.random.default_rng(seed)
    b = np.where(rng.random(n) < part, 1.0, -1.0)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.5 * rng.normal(size=(d, d)) / np.sqrt(d))
    X[:, : d // 2] += shift * (b > 0)[:, None] / np.sqrt(d)
    return X * 10 ** rng.uniform(-1, 1, d), b, rng.uniform(0.5, 2, n)


def solved(method, X, b, C, threads=1, bias=1.0, tol=1e-9, max_iter=100_000):
    solver = native.solver(method, Rows(X), bias, b, C, 0.0, False, False, tol, max_iter, 0)
    while not solver.done:
        native.advance([solver], False, threads)
    w = np.empty(X.shape[1] + 1)
    solver.coef(w)
    return w, solver


def primal_naive(X, b, C, w, bias=1.0):
    return w @ w / 2 + C @ np.maximum(0, 1 - b * (X @ w[:-1] + bias * w[-1]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("shift", SHIFTS)
def test_few_rows_of_the_frequent_class_tell_the_optimum(shift, C, dense, dtype):
    X, b, costs = rare(3_000, 12, SHIFTS[shift])
    if shift == "near":
        b = -b
    X = (X if dense else sparse.csr_matrix(np.where(abs(X) > 0.5, X, 0))).astype(dtype)
    one, two = (solved("augmented", X, b, C * costs, threads, 0.7) for threads in (1, 2))
    np.testing.assert_array_equal(one[0], two[0])
    w, solver = one
    full = (X if dense else X.toarray()).astype(np.float64)
    assert solver.converged
    assert solver.primal == pytest.approx(primal_naive(full, b, C * costs, w, 0.7), rel=1e-8)
    assert -1e-10 * solver.primal <= solver.gap <= 1e-9 * solver.primal
    if C < 1:  # the gap is a bound by itself; descent takes long with a large C
        other = solved("descent", X, b, C * costs, 1, 0.7, 1e-6)[1]
        assert solver.primal <= other.primal * (1 + 1e-9)
        assert solver.primal >= other.primal - other.gap - 1e-9 * other.primal


@pytest.mark.parametrize("max_iter", [1, 5, 20])
@pytest.mark.parametrize("shift", SHIFTS)
def test_the_best_point_so_far_is_what_an_early_end_leaves(shift, max_iter):
    X, b, C = rare(3_000, 12, SHIFTS[shift])
    w, solver = solved("augmented", X, b, C, max_iter=max_iter)
    best = solved("augmented", X, b, C)[1].primal
    assert solver.n_iter <= max_iter
    assert solver.primal == pytest.approx(primal_naive(X, b, C, w), rel=1e-8)
    assert best <= solver.primal * (1 + 1e-9)
    assert solver.primal - solver.gap <= best * (1 + 1e-9)


def test_flags_that_only_few_rows_have():
    rng = np.random.default_rng(0)
    X = (rng.random((4_000, 20)) < np.r_[np.full(10, 0.2), np.full(10, 1e-3)]).astype(float)
    score = X @ rng.normal(size=20) + 0.3 * rng.normal(size=4_000)
    b = np.where(score > np.quantile(score, 0.98), 1.0, -1.0)
    C = np.full(4_000, 1.0)
    w, solver = solved("augmented", X, b, C)
    assert solver.converged
    assert solver.primal == pytest.approx(primal_naive(X, b, C, w), rel=1e-8)


@pytest.mark.parametrize("largest", [1e100, 1e160, 1e300])
def test_ends_where_sums_overflow(largest):
    X, b, C = rare(3_000, 12, 1.5)
    solver = solved("augmented", X * largest, b, C)[1]
    assert solver.done
