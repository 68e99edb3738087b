"""Packed rows and what one-vs-one machines make of their sums, against naive twins."""

from itertools import combinations

import numpy as np
import pytest
from fastml._native.pairwise import Measure, Packed
from fastml._native.rows import Rows
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.multiclass import _ovr_decision_function
from suites.harness import run_python

from fastml._native import decision as native

KERNELS = ("linear", "rbf", "polynomial", "sigmoid", "laplacian")


def parameters(kernel, d):
    """Such that kernels that fall off with the distance leave something to compare."""
    known = {"gamma": 1 / d, "coef0": 0.5, "degree": 3}
    count = {"linear": 0, "rbf": 1, "laplacian": 1, "sigmoid": 2, "polynomial": 3}[kernel]
    return dict(list(known.items())[:count])


def products_naive(K, V, ends):
    """(n, segments, r)"""
    starts = [0, *ends[:-1]]
    sums = [K[:, a:b] @ V[a:b] for a, b in zip(starts, ends, strict=True)]
    return np.stack(sums, axis=1)


def packed_products(X, Y, V, ends, kernel, threads):
    packed = Packed(
        Rows(Y), Measure(kernel, **parameters(kernel, Y.shape[1])), V, np.array(ends), threads
    )
    out = np.full((X.shape[0], len(ends) * V.shape[1]), np.nan)
    packed.apply(Rows(X), out, threads)
    return out.reshape(len(out), len(ends), -1)


def short(X):
    X = sparse.csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("filled", [None, 0.03, 0.5])
@pytest.mark.parametrize(
    ("n", "m", "d", "r", "ends"),
    [
        (1, 1, 1, 1, [1]),
        (2, 100, 7, 1, [100]),
        (3, 49, 18, 8, [10, 10, 49]),
        (1, 5000, 33, 3, [100, 4500, 5000]),
        (130, 200, 17, 16, [0, 30, 30, 200]),
        (61, 75, 600, 5, [25, 50, 75]),
    ],
)
def test_packed_products(n, m, d, r, ends, kernel, filled, dtype):
    rng = np.random.default_rng(n + m)
    X, Y = (rng.normal(size=(k, d)).astype(dtype) for k in (n, m))
    V = rng.normal(size=(m, r)).astype(dtype)
    if filled is not None:
        X, Y = X * (rng.random(X.shape) < filled), Y * (rng.random(Y.shape) < filled)
    name = "poly" if kernel == "polynomial" else kernel
    K = pairwise_kernels(X.astype(float), Y.astype(float), metric=name, **parameters(kernel, d))
    expected = products_naive(K, V.astype(float), ends)
    if filled is not None:
        X, Y = short(X), short(Y)
    one, two = (packed_products(X, Y, V, ends, kernel, threads) for threads in (1, 2))
    np.testing.assert_array_equal(one, two)
    scale = products_naive(abs(K), abs(V.astype(float)), ends) + 1e-300
    assert (abs(one - expected) / scale).max() < (2e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_every_instruction_set(isa):
    code = """
    import numpy as np
    from test_decision import test_packed_products
    for dtype in (np.float32, np.float64):
        for shape in ((2, 100, 7, 1, [100]), (61, 75, 600, 5, [25, 50, 75])):
            for filled in (None, 0.03, 0.5):
                test_packed_products(*shape, "rbf", filled, dtype)
    """
    run_python("\n".join(line.strip("\n")[4:] for line in code.splitlines()), FASTML_ISA=isa)


def test_packed_rows_refuse_others():
    Y = np.ones((3, 2))
    packed = Packed(Rows(Y), Measure("rbf"), np.ones((3, 1)), np.array([3]), 1)
    out = np.empty((1, 1))
    with pytest.raises(TypeError, match="dtype"):
        packed.apply(Rows(np.ones((1, 2), np.float32)), out, 1)
    with pytest.raises(TypeError, match="sparse"):
        packed.apply(Rows(short(np.ones((1, 2)))), out, 1)


@pytest.mark.parametrize("k", [3, 4, 7])
def test_assembled_votes_and_ties(k):
    rng = np.random.default_rng(k)
    sums = rng.normal(size=(50, k, k + 2)).round(1)
    intercept = rng.normal(size=k * (k - 1) // 2).round(1)
    pairs = list(combinations(range(k), 2))
    expected = np.stack(
        [sums[:, i, j - 1] + sums[:, j, i] + b for (i, j), b in zip(pairs, intercept, strict=True)],
        axis=1,
    )
    decisions = np.empty_like(expected)
    native.assemble(sums, intercept, decisions)
    np.testing.assert_array_equal(decisions, expected)

    votes = np.zeros((50, k))
    for p, (i, j) in enumerate(pairs):
        votes[np.arange(50), np.where(decisions[:, p] > 0, i, j)] += 1
    winner = np.empty(50, np.intp)
    native.winners(decisions, k, winner)
    np.testing.assert_array_equal(winner, votes.argmax(axis=1))

    rest = np.empty((50, k))
    native.one_against_rest(decisions, rest)
    np.testing.assert_array_equal(rest, _ovr_decision_function(decisions < 0, -decisions, k))


@pytest.mark.parametrize("k", [2, 3, 6])
def test_coupled_probabilities(k):
    """What pairs say of each other is met when there is something that all of it follows from."""
    p = np.random.default_rng(k).dirichlet(np.ones(k), size=20)
    pairs = np.stack([p[:, i] / (p[:, i] + p[:, j]) for i, j in combinations(range(k), 2)], axis=1)
    out = np.empty_like(p)
    native.couple(np.ascontiguousarray(pairs), out)
    np.testing.assert_allclose(out.sum(axis=1), 1)
    np.testing.assert_allclose(out, p, atol=0.02)
