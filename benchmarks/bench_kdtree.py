"""k-d trees beside every peer: two to eight columns, points apart, in clusters and repeated."""

import pytest

from fastml._bench.cases.kdtree import build_case, query_case

DTYPES = ("float32", "float64")
SHAPES = ((100_000, 2), (100_000, 3), (100_000, 5), (100_000, 8), (1_000_000, 3))


@pytest.mark.contest([build_case(*shape, dtype) for shape in SHAPES for dtype in DTYPES])
def bench_build(entry, contest):
    assert contest.equal(entry)


@pytest.mark.contest(
    [query_case(*shape, k, dtype) for shape in SHAPES for k in (1, 10) for dtype in DTYPES]
)
def bench_others(entry, contest):
    assert contest.equal(entry)


@pytest.mark.contest(
    [query_case(*shape, k, dtype, "own") for shape in SHAPES for k in (2, 10) for dtype in DTYPES]
)
def bench_own(entry, contest):
    assert contest.equal(entry)


@pytest.mark.contest(
    [
        query_case(100_000, d, 10, dtype, "others", kind)
        for d in (2, 3, 8)
        for dtype in DTYPES
        for kind in ("clusters", "grid")
    ]
)
def bench_kinds(entry, contest):
    assert contest.equal(entry)
