"""Lloyd's iterations with bounds and narrow scores: what they skip must not show.

A row's label must not depend on how it was found, so steps that remember are compared to the bit
with steps that do not: `assign` on few rows at a time takes every score in full.
"""

import numpy as np
import pytest
from fastml._native.rows import Rows

from fastml._native import kmeans
from fastml.cluster._lloyd import Block, Lloyd, State, average, lloyd, memory_for

DTYPES = (np.float32, np.float64)


def blobs(n, d, k, dtype, spread, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(k, d))[rng.integers(k, size=n)] + spread * rng.normal(size=(n, d))
    return X.astype(dtype)


def labels_naive(X, shift, centers):
    """As `assign` finds them where nothing is to be gained from narrow scores."""
    step, parts = 500, []
    for i in range(0, len(X), step):
        labels = np.full(len(X[i : i + step]), -1, np.int32)
        rows = Rows(np.ascontiguousarray(X[i : i + step]), shift)
        kmeans.assign(rows, centers, None, labels, None, None, 1)
        parts.append(labels)
    return np.concatenate(parts)


SHAPES = {  # n, d, k, spread: bounds pay at once, late, for few centers that move, never
    "separate": (6000, 3, 40, 0.05),
    "wide": (17_000, 40, 30, 0.1),
    "overlapping": (20_011, 18, 65, 0.7),
    "long": (3000, 600, 20, 0.5),
    "structureless": (9000, 8, 30, 100.0),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_steps(shape, dtype, weighted):
    n, d, k, spread = SHAPES[shape]
    X = blobs(n, d, k, dtype, spread)
    rng = np.random.default_rng(1)
    w = rng.integers(0, 4, n).astype(dtype) if weighted else None
    shift = X.mean(axis=0)
    centers = X[rng.choice(n, k, replace=False)] - shift
    rows = Rows(X, shift)
    memory = kmeans.Memory(rows, w, k, 2)
    labels, before = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    sums, weights = np.empty((k, d)), np.empty(k)
    weight = np.ones(n) if w is None else w.astype(np.float64)
    shifted = (X - shift).astype(np.float64)
    for _ in range(30):
        changed = memory.step(centers, labels, sums, weights)
        np.testing.assert_array_equal(labels, labels_naive(X, shift, centers))
        assert changed == (labels != before).sum()
        before[:] = labels
        expected = np.zeros((k, d))
        np.add.at(expected, labels, shifted * weight[:, None])
        np.testing.assert_allclose(sums, expected, rtol=1e-9, atol=1e-9 * abs(expected).max())
        np.testing.assert_array_equal(weights, np.bincount(labels, weight, minlength=k))
        centers = average(sums, weights, dtype)
    memory.step(centers, labels, None, None)
    np.testing.assert_array_equal(labels, labels_naive(X, shift, centers))


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_centers_after_any_others(dtype):
    """Bounds hold however far centers jump, and where centers and rows coincide."""
    X = blobs(5000, 5, 20, dtype, 0.1)
    X[::7] = X[0]
    shift = X.mean(axis=0)
    memory = kmeans.Memory(Rows(X, shift), None, 24, 1)
    labels = np.full(len(X), -1, np.int32)
    sums, weights = np.empty((24, 5)), np.empty(24)
    rng = np.random.default_rng(2)
    centers = X[rng.choice(len(X), 24, replace=False)] - shift
    centers[5] = centers[3]
    for step in range(40):
        memory.step(centers, labels, sums, weights)
        np.testing.assert_array_equal(labels, labels_naive(X, shift, centers))
        if step % 8 == 7:  # relocated
            centers[rng.integers(24)] = X[rng.integers(len(X))] - shift
        elif step % 8 > 2:
            some = rng.integers(24, size=3)
            centers[some] += (1e-3 * rng.normal(size=(3, 5))).astype(dtype)


@pytest.mark.parametrize("scale", [1e-300, 1e-25, 1e-10, 1e10, 1e25, 1e150])
@pytest.mark.parametrize("dtype", DTYPES)
def test_any_scale(scale, dtype):
    if dtype == np.float32 and not 1e-15 < scale < 1e15:
        pytest.skip("squares leave single precision")
    X = (blobs(17_000, 16, 30, np.float64, 0.1) * scale).astype(dtype)
    memory, shift = kmeans.Memory(Rows(X), None, 30, 2), np.zeros(16, dtype)
    labels = np.full(len(X), -1, np.int32)
    sums, weights = np.empty((30, 16)), np.empty(30)
    centers = X[:30].copy()
    for _ in range(6):
        memory.step(centers, labels, sums, weights)
        np.testing.assert_array_equal(labels, labels_naive(X, shift, centers))
        centers = average(sums, weights, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_outliers_do_not_spoil_scores(dtype):
    X = blobs(20_000, 20, 30, dtype, 0.3)
    X[[5, 7000]] *= [[1e3], [1e12]]
    shift, centers = X[100:110].mean(axis=0), X[::600][:32]
    labels = np.full(len(X), -1, np.int32)
    kmeans.assign(Rows(X, shift), centers - shift, None, labels, None, None, 2)
    np.testing.assert_array_equal(labels, labels_naive(X, shift, centers - shift))


@pytest.mark.parametrize("n", [767, 768, 1000, 1531])
@pytest.mark.parametrize("dtype", DTYPES)
def test_mini_batches(dtype, n):
    X = blobs(n, 61, 130, dtype, 0.4)
    X[::9] = X[0]
    shift = X.mean(axis=0)
    centers = X[:130] - shift
    expected = labels_naive(X, shift, centers)
    for threads in (1, 2):
        labels = np.full(n, -1, np.int32)
        assert kmeans.assign(Rows(X, shift), centers, None, labels, None, None, threads) == n
        np.testing.assert_array_equal(labels, expected)


def test_weights_that_cancel_are_summed_again():
    """A cluster that loses nearly all of its weight has its exact sum, and zero is zero."""
    X = np.concatenate([np.full((4000, 3), 1.0), np.full((4000, 3), 9.0), np.full((9, 3), 5.0)])
    w = np.full(len(X), 0.1)
    w[-9:] = 1e-9
    memory = kmeans.Memory(Rows(X), w, 3, 1)
    labels, sums, weights = np.full(len(X), -1, np.int32), np.empty((3, 3)), np.empty(3)
    for middle in (4.0, 4.1, 1.2, 5.0, 5.0):
        memory.step(np.array([[0.0] * 3, [10.0] * 3, [middle] * 3]), labels, sums, weights)
        for j in range(3):
            mine = labels == j
            np.testing.assert_allclose(weights[j], w[mine].sum(), rtol=1e-12)
            np.testing.assert_allclose(sums[j], w[mine] @ X[mine], rtol=1e-12)
    assert weights[2] == pytest.approx(9e-9)


@pytest.mark.parametrize("dtype", DTYPES)
def test_same_bits_for_any_number_of_threads(dtype):
    X = blobs(30_011, 50, 48, dtype, 0.5)
    shift = X.mean(axis=0)
    runs = [
        lloyd(Rows(X, shift), None, X[:48] - shift, max_iter=40, tol=0, threads=threads)
        for threads in (1, 2, 5)
    ]
    for run in runs[1:]:
        assert (run.inertia, run.n_iter) == (runs[0].inertia, runs[0].n_iter)
        np.testing.assert_array_equal(run.labels, runs[0].labels)
        np.testing.assert_array_equal(run.centers, runs[0].centers)


@pytest.mark.parametrize("dtype", DTYPES)
def test_memory_does_not_change_a_fit(dtype):
    X = blobs(20_000, 60, 40, dtype, 0.4)
    shift = X.mean(axis=0)
    rows, start = Rows(X, shift), X[:40] - shift
    assert memory_for(rows, None, 40, 2) is not None
    run = lloyd(rows, None, start, max_iter=100, tol=0, threads=2)
    method, labels = Lloyd(0, 2), np.full(len(X), -1, np.int32)
    state, done, steps = State(start, np.inf, settled=False), False, 0
    while not done:
        state, done = method.update(method.map(Block(rows, None, labels), state), state)
        steps += 1
    assert steps == run.n_iter
    np.testing.assert_array_equal(labels, run.labels)
    np.testing.assert_allclose(state.centers, run.centers, rtol=1e-6, atol=1e-6)
