"""Nearest neighbours beside every peer: `python -m pytest benchmarks/bench_neighbors.py`."""

import pytest

from fastml._bench.cases.neighbors import fit_case, predict_case, search_case

DTYPES = ("float32", "float64")


@pytest.mark.contest(
    [
        search_case(100_000, d, k, dtype)
        for d, k in ((16, 10), (32, 1), (64, 100), (128, 5))
        for dtype in DTYPES
    ]
)
def bench_search(entry, contest):
    assert contest.equal(entry)


@pytest.mark.contest(
    [search_case(n, d, 10, dtype, 1) for n, d in ((1_000_000, 16),) for dtype in DTYPES]
)
def bench_one_query(entry, contest):
    assert contest.equal(entry)


@pytest.mark.contest([predict_case(100_000, 32, 5, dtype) for dtype in DTYPES])
def bench_predict(entry, contest):
    assert contest.equal(entry)


@pytest.mark.contest([predict_case(n, d, 5, n_queries=1) for n in (100, 10_000) for d in (4, 50)])
def bench_one_row(entry, contest):
    assert contest.equal(entry)


@pytest.mark.contest([fit_case(n, d, 5) for n in (50, 500) for d in (4, 30)])
def bench_tiny(entry, contest):
    assert contest.equal(entry)
