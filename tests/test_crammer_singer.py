"""Crammer and Singer's problem: both solvers, and the choice between them."""

import numpy as np
import pytest
from fastml._native.rows import Rows
from scipy import sparse

from fastml._native import linear_svm as native
from fastml.svm import LinearSVC
from fastml.svm._linear_solvers import joint_method

METHODS = ("augmented", "descent")


def data(n, d, k, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    scores = X @ rng.normal(size=(d, k)) / np.sqrt(d) + 0.5 * rng.normal(size=(n, k))
    return X, scores.argmax(axis=1).astype(np.int32), rng.uniform(0.2, 2, n)


def primal_naive(X, codes, C, W, bias):
    rows = np.arange(len(codes))
    scores = X @ W[:, :-1].T + bias * W[:, -1]
    losses = scores - scores[rows, codes][:, None] + 1
    losses[rows, codes] = 0
    return (W**2).sum() / 2 + C @ losses.max(axis=1)


def solved(method, X, codes, C, k, threads=2, tol=1e-8, bias=1.0):
    solver = native.joint_solver(method, Rows(X), bias, codes, C, k, tol, 1_000_000, 0)
    while not solver.done:
        native.advance([solver], True, threads)
    stride = -(-k // 8) * 8
    flat = np.empty((X.shape[1] + 1) * (k if method == "augmented" else stride))
    solver.coef(flat)
    if method == "augmented":
        return flat.reshape(k, -1), solver
    return flat.reshape(-1, stride)[:, :k].T, solver


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("cost", [0.01, 1.0, 100.0])
@pytest.mark.parametrize(
    ("n", "d", "k"), [(1, 1, 2), (61, 7, 2), (97, 3, 5), (401, 5, 4), (150, 2, 9)]
)
def test_both_methods_find_the_optimum(n, d, k, cost, dense, dtype):
    X, codes, weight = data(n, d, k)
    X = X.astype(dtype) if dense else sparse.csr_matrix(np.where(abs(X) > 0.5, X, 0), dtype=dtype)
    C, bias = cost * weight, 1.5
    lower = []
    for method in METHODS:
        W, solver = solved(method, X, codes, C, k, bias=bias)
        primal = primal_naive(X, codes, C, W, bias)
        assert solver.converged
        assert solver.primal == pytest.approx(primal, rel=1e-9)
        assert -1e-9 * primal <= solver.gap <= 1e-5 * primal
        lower.append(primal - solver.gap)
        assert primal >= max(lower) - 1e-9 * primal
        np.testing.assert_allclose(W.sum(axis=0), 0, atol=1e-6 * (1 + abs(W).max()))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("cost", [0.01, 1.0])
def test_rows_of_one_class_are_set_aside_and_come_back(cost, dtype):
    """All weight of a row on one other class is as final as none; the gap is what is left."""
    X, codes, weight = data(401, 5, 4)
    X = X.astype(dtype)
    W, solver = solved("descent", X, codes, cost * weight, 4, tol=1e-6)
    primal = primal_naive(X, codes, cost * weight, W, 1.0)
    assert solver.converged
    assert solver.primal == pytest.approx(primal, rel=1e-9)
    assert -1e-9 * primal <= solver.gap <= 1e-4 * primal


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_change_nothing(dtype):
    X, codes, C = data(6000, 13, 4)
    X = X.astype(dtype)
    for rows in (X, sparse.csr_matrix(np.where(abs(X) > 1, X, 0))):
        one, two = (solved("augmented", rows, codes, C, 4, threads)[0] for threads in (1, 2))
        np.testing.assert_array_equal(one, two)


def test_a_class_without_rows_and_rows_of_zeros():
    X, codes, C = data(200, 4, 3)
    X[::7] = 0
    codes[codes == 1] = 2
    values = []
    for method in METHODS:
        W, solver = solved(method, X, codes, C, 3, bias=0.0)
        assert solver.converged
        values.append(primal_naive(X, codes, C, W, 0.0))
    assert values[0] == pytest.approx(values[1], rel=1e-6)


def test_the_method_follows_the_shape():
    assert joint_method(np.empty((1000, 10)), 5) == "augmented"
    assert joint_method(np.empty((1000, 10)), 65) == "descent"
    assert joint_method(np.empty((1000, 900)), 3) == "descent"
    assert joint_method(np.empty((100, 200)), 3) == "descent"


def test_fits_of_overlapping_classes_end():
    """Where descent takes more than the 1,000 sweeps that are asked for."""
    X, codes, _ = data(2_000, 20, 4)
    model = LinearSVC(C=10.0, multi_class="crammer_singer").fit(X, codes)
    assert model.n_iter_ < 200
    W = np.c_[model.coef_, model.intercept_]
    assert model.dual_gap_ <= 1.01e-7 * primal_naive(X, codes, np.full(2_000, 10.0), W, 1.0)
