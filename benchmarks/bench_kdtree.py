"""k-d trees beside every peer: two to eight columns, points apart, in clusters and repeated."""

import pytest

from fastml._bench.cases.kdtree import build_case, density_case, query_case

DTYPES = ("float32", "float64")
SHAPES = ((100_000, 2), (100_000, 3), (100_000, 8), (1_000_000, 3))


@pytest.mark.contest([build_case(n, 3, dtype) for n in (100_000, 1_000_000) for dtype in DTYPES])
def bench_build(entry, contest):
    assert contest.equal(entry)


@pytest.mark.contest(
    [query_case(*shape, 10, "float64") for shape in SHAPES]
    + [query_case(*shape, 1, "float32") for shape in SHAPES[1:3]]
)
def bench_others(entry, contest):
    assert contest.equal(entry)


@pytest.mark.contest(
    [query_case(100_000, d, k, "float64", "own") for d, k in ((2, 10), (3, 2), (5, 10))]
)
def bench_own(entry, contest):
    assert contest.equal(entry)


@pytest.mark.contest(
    [
        query_case(100_000, d, 10, "float64", "others", kind)
        for d in (2, 3)
        for kind in ("clusters", "grid")
    ]
)
def bench_kinds(entry, contest):
    assert contest.equal(entry)


@pytest.mark.contest([density_case(20_000, 3, "gaussian"), density_case(20_000, 3, "tophat")])
def bench_density(entry, contest):
    assert contest.equal(entry)
