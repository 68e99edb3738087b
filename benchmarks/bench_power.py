"""TruncatedSVD and power iterations: `python -m pytest benchmarks/bench_power.py`."""

import pytest

from fastml._bench.cases.power import case, iteration

SPARSE = [
    case(n, d, k, words, dtype)
    for n, d, k, words in ((20_000, 50_000, 100, 200), (100_000, 10_000, 50, 100))
    for dtype in ("float64", "float32")
]
DENSE = [case(50_000, 300, 20, dtype=dtype) for dtype in ("float64", "float32")]


@pytest.mark.contest([*SPARSE, *DENSE, case(500, 200, 5, 20)])
def bench_truncated_svd(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 1


@pytest.mark.contest([iteration(100_000, 500), iteration(200_000, 500, "float32")])
def bench_iteration(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 1
