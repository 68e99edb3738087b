"""The k-medians kernels against their naive twins, and the estimator on top of them."""

import numpy as np
import pytest
from fastml._native.rows import Rows
from scipy import sparse
from scipy.spatial.distance import cdist

from fastml._native import kmedians

N_ROWS = (1, 5, 47, 48, 301)
N_COLUMNS = (1, 2, 7, 16, 33, 130, 1100)  # 1100: beyond what a tile takes at once
DTYPES = (np.float32, np.float64)
KINDS = ("dense", "csr")


def rows_of(n, d, dtype, kind="dense", seed=0):
    """Rows (of the kernels'), the transpose that sparse medians need, and the same in double."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(dtype)
    if kind == "dense":
        return Rows(X), None, X.astype(np.float64)
    X[rng.random(X.shape) < 0.6] = 0
    S = sparse.csr_matrix(X)
    return Rows(S), Rows(S.T.tocsr()), X.astype(np.float64)


def close(dtype):
    return {"rtol": 2e-5, "atol": 2e-5} if dtype == np.float32 else {"rtol": 1e-11, "atol": 1e-11}


def median_naive(x, w):
    """The median of x, each value taken w times, w whole numbers."""
    return np.median(np.repeat(x, w))


def medians_naive(X, w, labels, centers):
    centers = centers.copy()
    for j in range(len(centers)):
        mine = labels == j
        if w[mine].sum() > 0:
            centers[j] = [median_naive(x, w[mine]) for x in X[mine].T]
    return centers


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", N_COLUMNS)
@pytest.mark.parametrize("n", N_ROWS)
def test_assign_and_deviation(n, d, dtype, kind, threads):
    rows, _, X = rows_of(n, d, dtype, kind)
    rng = np.random.default_rng(1)
    w = rng.random(n).astype(dtype)
    for k in (1, 3, 8, 65):
        centers = rng.normal(size=(k, d)).astype(dtype)
        labels, found = np.full(n, -1, np.int32), np.empty(n, dtype)
        assert kmedians.assign(rows, centers, labels, threads) == n
        assert kmedians.assign(rows, centers, labels, threads) == 0
        distance = cdist(X, centers.astype(np.float64), "cityblock")
        chosen = distance[np.arange(n), labels]
        size = abs(X).sum(axis=1) + abs(centers).sum(axis=1).max()
        assert np.all(chosen - distance.min(axis=1) <= 8 * np.finfo(dtype).eps * size)
        total = kmedians.deviation(rows, centers, w, labels, found, threads)
        np.testing.assert_allclose(found, chosen, **close(dtype))
        np.testing.assert_allclose(total, chosen @ w.astype(np.float64), rtol=1e-5)
        total = kmedians.deviation(rows, centers, None, labels, None, threads)
        np.testing.assert_allclose(total, chosen.sum(), rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_ties_go_to_the_lower_index(dtype, kind):
    X = np.zeros((50, 3), dtype)
    rows = Rows(sparse.csr_matrix(X) if kind == "csr" else X)
    labels = np.full(50, -1, np.int32)
    kmedians.assign(rows, np.ones((70, 3), dtype), labels, 1)
    assert (labels == 0).all()


@pytest.mark.parametrize("values", ["normal", "few", "sorted", "skewed"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "d", "k"), [(1, 1, 1), (60, 37, 70), (900, 5, 4), (12_001, 18, 3)])
def test_medians(n, d, k, dtype, kind, weighted, values):
    """Exactly those of NumPy, in clusters that are sorted whole and in such that are sampled."""
    rows, columns, X = rows_of(n, d, dtype, kind)
    if values == "few":
        X = np.round(X)
    elif values == "sorted":
        X = np.sort(X, axis=0)
    elif values == "skewed":
        X = np.exp(3 * X) * (X != 0)
    X = X.astype(dtype)
    S = sparse.csr_matrix(X)
    rows, columns = (Rows(X), None) if kind == "dense" else (Rows(S), Rows(S.T.tocsr()))
    rng = np.random.default_rng(2)
    labels = rng.integers(0, k, n).astype(np.int32)
    w = rng.integers(0, 4, n) if weighted else np.ones(n, int)
    centers, weights = rng.normal(size=(k, d)).astype(dtype), np.empty(k)
    expected = medians_naive(X, w, labels, centers)
    kmedians.medians(
        rows, columns, centers, w.astype(dtype) if weighted else None, labels, weights, 2
    )
    np.testing.assert_array_equal(centers, expected)
    np.testing.assert_array_equal(weights, np.bincount(labels, w, minlength=k))


@pytest.mark.parametrize("kind", KINDS)
def test_medians_do_not_depend_on_the_scale_of_weights(kind):
    rows, columns, _ = rows_of(4000, 6, np.float64, kind)
    labels = np.zeros(4000, np.int32)
    found = []
    for w in (None, np.full(4000, 0.1), np.full(4000, 1e-200), np.full(4000, 3e200)):
        centers = np.empty((1, 6))
        kmedians.medians(rows, columns, centers, w, labels, np.empty(1), 1)
        found.append(centers)
    for centers in found:
        np.testing.assert_array_equal(centers, found[0])


def test_midpoints_of_huge_values():
    rows, centers = Rows(np.array([[1e308], [1.6e308]])), np.empty((1, 1))
    kmedians.medians(rows, None, centers, None, np.zeros(2, np.int32), np.empty(1), 1)
    np.testing.assert_allclose(centers, 1.3e308)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", N_COLUMNS)
@pytest.mark.parametrize("n", [1, 49, 700])
def test_potentials(n, d, dtype, kind, weighted):
    rows, _, X = rows_of(n, d, dtype, kind)
    rng = np.random.default_rng(3)
    w = rng.random(n).astype(dtype) if weighted else None
    weight = np.ones(n) if w is None else w.astype(np.float64)
    closest = np.full(n, np.inf, dtype)
    step = kmedians.rows_of_block(n)
    for n_candidates in (1, 8, 11):
        candidates = X[rng.integers(0, n, n_candidates)].astype(dtype)
        distance = cdist(X, candidates.astype(np.float64), "cityblock")
        expected = np.minimum(closest[:, None], distance)
        found = np.empty((-(-n // step), n_candidates))
        kmedians.potentials(rows, closest, w, candidates, False, found, 2)
        blocks = np.add.reduceat(expected * weight[:, None], np.arange(0, n, step))
        np.testing.assert_allclose(found, blocks, **close(dtype))
        kmedians.potentials(rows, closest, w, candidates[:1], True, found[:, :1].copy(), 2)
        np.testing.assert_allclose(closest, expected[:, 0], **close(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_same_bits_for_any_number_of_threads(dtype, kind):
    rows, columns, X = rows_of(20_000, 30, dtype, kind)
    w = np.random.default_rng(4).random(20_000).astype(dtype)
    outcomes = []
    for threads in (1, 2, 3, 5):
        labels, distance = np.empty(20_000, np.int32), np.empty(20_000, dtype)
        centers, weights = X[:40].astype(dtype), np.empty(40)
        kmedians.assign(rows, centers, labels, threads)
        total = kmedians.deviation(rows, centers, w, labels, distance, threads)
        kmedians.medians(rows, columns, centers, w, labels, weights, threads)
        potential = np.empty((-(-20_000 // kmedians.rows_of_block(20_000)), 40))
        kmedians.potentials(rows, distance, w, centers, False, potential, threads)
        outcomes.append((labels, distance, np.array(total), centers, weights, potential))
    for outcome in outcomes[1:]:
        for one, many in zip(outcomes[0], outcome, strict=True):
            np.testing.assert_array_equal(one, many)
