"""Hinges of a rare class, where the best score may be that of the other class for all rows."""

import numpy as np
import pytest
from fastml._native.rows import Rows
from scipy import sparse

from fastml._native import linear_svm as native


def data(n, d, part, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X @ rng.normal(size=d) / np.sqrt(d) + 0.5 * rng.normal(size=n)
    return X, np.where(score > np.quantile(score, 1 - part), 1.0, -1.0), rng.uniform(0.2, 2, n)


def solved(method, X, b, C, bias, threads=2, tol=1e-9, max_iter=100_000):
    kind = 0.0, False, False
    solver = native.solver(method, Rows(X), bias, b, C, *kind, tol, max_iter, 0)
    while not solver.done:
        native.advance([solver], False, threads)
    w = np.empty(X.shape[1] + 1)
    solver.coef(w)
    return w, solver


def primal_naive(X, b, C, w, bias):
    return w @ w / 2 + C @ np.maximum(1 - b * (X @ w[:-1] + bias * w[-1]), 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("bias", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("cost", [0.003, 0.03, 0.08])
def test_optimum(cost, bias, sign, dense, dtype):
    X, b, weight = data(2_501, 7, 0.02)
    X = X.astype(dtype) if dense else sparse.csr_matrix(np.where(abs(X) > 1, X, 0), dtype=dtype)
    b, C = sign * b, cost * weight
    w, solver = solved("augmented", X, b, C, bias)
    primal = primal_naive(X, b, C, w, bias)
    assert solver.converged
    assert solver.primal == pytest.approx(primal, rel=1e-9)
    assert -1e-9 * primal <= solver.gap <= 1e-9 * primal
    reference = primal_naive(X, b, C, solved("descent", X, b, C, bias, tol=1e-6)[0], bias)
    assert primal <= reference * (1 + 1e-9)
    one, _ = solved("augmented", X, b, C, bias, threads=1)
    np.testing.assert_array_equal(one, w)


@pytest.mark.parametrize("bias", [1.0, 4.0])
def test_all_rows_get_the_score_of_the_frequent_class(bias):
    X, b, _ = data(3_000, 6, 0.02)
    C = np.full(3_000, 0.01 / bias**2)
    w, solver = solved("augmented", X, b, C, bias)
    assert solver.converged and solver.n_iter < 16
    np.testing.assert_array_equal(w, [0, 0, 0, 0, 0, 0, -1 / bias])


def test_ends_where_it_is_told_to():
    X, b, weight = data(3_000, 6, 0.02)
    for most in (1, 3):
        w, solver = solved("augmented", X, b, 0.01 * weight, 1.0, max_iter=most)
        assert solver.done and solver.n_iter == most
        value = primal_naive(X, b, 0.01 * weight, w, 1.0)
        assert solver.primal == pytest.approx(value, rel=1e-9)
