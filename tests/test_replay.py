"""Orders of rows against scikit-learn's own sort and naive twins of its partitions."""

import numpy as np
import pytest
from fastml._native.trees import replay_missing_last, replay_partition, replay_sort
from sklearn.utils._sorting import _py_simultaneous_sort

SIZES = (*range(70), 100, 127, 128, 129, 255, 500, 777, 1000, 2047, 3000)
LEVELS = (1, 2, 3, 16, 100, 1000, None)  # None: all differ


def median_of_three_killer(m):
    """The first, middle and last are always small: quicksort goes quadratic."""
    order, half = np.arange(m), m // 2
    odd = np.arange(1, half + 1)
    order[:half:2] = odd[::2]
    order[1:half:2] = half + odd[::2][: len(order[1:half:2])]
    order[half : 2 * half] = 2 * odd
    return order


def codes_of(kind, m, levels, rng):
    if kind == "random":
        return rng.permutation(m) if levels is None else rng.integers(levels, size=m)
    if kind == "skewed":
        return (rng.random(m) ** 4 * (levels or 10**9)).astype(np.int64)
    i = np.arange(m)
    order = {
        "sorted": i,
        "reversed": m - 1 - i,
        "organ pipe": np.minimum(i, m - 1 - i),
        "killer": median_of_three_killer(m),
    }[kind]
    return order if levels is None else order * levels // (m + 1)


def check_sort(codes, rng, largest_row):
    m = len(codes)
    codes = codes.astype(np.uint32) + np.uint32(rng.integers(3))
    rows = rng.permutation(m).astype(np.int64) * max(1, largest_row // (m + 1))
    values = np.unique(codes, return_inverse=True)[1].astype(np.float32)
    expected, ours = rows.copy(), rows.astype(np.int32)
    if m:
        _py_simultaneous_sort(values, expected, m, use_three_way_partition=True)
    wanted = np.sort(codes)
    replay_sort(codes, ours)
    assert np.array_equal(codes, wanted)
    assert np.array_equal(ours, expected)


@pytest.mark.parametrize("kind", ["random", "skewed", "sorted", "reversed", "organ pipe", "killer"])
def test_sort_is_that_of_sklearn(kind):
    rng = np.random.default_rng(0)
    for m in SIZES:
        for levels in LEVELS:
            for step in (1, 2):  # codes of trees are even, but for near values
                codes = step * codes_of(kind, m, levels, rng)
                check_sort(codes, rng, (m, 2**31 - 1)[m % 2])


@pytest.mark.parametrize("m", [65536, 65537, 100_000])
@pytest.mark.parametrize("levels", [2, 16, 1000, 10**6, None])
def test_large_sorts(m, levels):
    rng = np.random.default_rng(m)
    check_sort(codes_of("random", m, levels, rng), rng, m)
    check_sort(codes_of("killer", m, levels, rng), rng, 2**31 - 1)


def test_widest_codes():
    rng = np.random.default_rng(1)
    for m in (10, 100, 1000, 70_000):
        check_sort(rng.integers(2**32 - 3, size=m), rng, m)
        check_sort(rng.choice(rng.integers(2**32 - 3, size=m // 2), m), rng, 2**31 - 1)


SLACK = 16  # of small nodes that are loaded as a vector


def partition_naive(rows, left):
    rows, left, begin, end = rows.copy(), left.copy(), 0, len(rows)
    while begin < end:
        if left[begin]:
            begin += 1
        else:
            end -= 1
            for a in (rows, left):
                a[begin], a[end] = a[end], a[begin]
    return rows, end


def missing_last_naive(rows, present):
    rows, present, i, end = rows.copy(), present.copy(), 0, len(rows) - 1
    while i <= end:
        if not present[end]:
            end -= 1
            continue
        if not present[i]:
            for a in (rows, present):
                a[i], a[end] = a[end], a[i]
            end -= 1
        i += 1
    return rows, end + 1


def partition_in_slack(rows, left):
    """What is behind the rows stays as it is."""
    wider = np.r_[rows, np.arange(SLACK, dtype=np.int32)]
    count = replay_partition(wider, np.r_[left, np.ones(SLACK, dtype=np.uint8)])
    rows[:], behind = wider[:-SLACK], wider[-SLACK:]
    assert np.array_equal(behind, np.arange(SLACK))
    return count


@pytest.mark.parametrize(
    ("ours", "naive"),
    [(partition_in_slack, partition_naive), (replay_missing_last, missing_last_naive)],
)
@pytest.mark.parametrize("share", [0, 0.05, 0.5, 0.95, 1])
def test_partitions_are_those_of_sklearn(ours, naive, share):
    rng = np.random.default_rng(2)
    for m in (*range(70), 1000, 4099):
        for marks in (rng.random(m) < share, np.arange(m) < share * m, np.arange(m) >= share * m):
            rows, marks = rng.permutation(m).astype(np.int32), marks.astype(np.uint8)
            expected, count = naive(rows, marks)
            assert ours(rows, marks) == count
            assert np.array_equal(rows, expected)
