"""Walking trees beside every peer: forests and single trees, deep and shallow, one row and many."""

import pytest

from fastml._bench.cases.forest import case

FORESTS = [
    case(n, d, trees, kind, depth)
    for n, d, trees, depth in (
        (100_000, 5, 100, 8),
        (20_000, 20, 100, None),
        (20_000, 20, 500, 10),
        (20_000, 500, 100, None),
        (1_000_000, 10, 100, 8),
    )
    for kind in ("classes", "numbers")
]
TREES = [
    case(n, d, 1, "numbers", None, grown_on)
    for n, d, grown_on in ((1_000_000, 5, 100_000), (100_000, 20, 300_000), (20_000, 500, 10_000))
]
ROWS = [case(n, 20, trees) for n in (1, 10, 100) for trees in (100, 500)]


@pytest.mark.contest(FORESTS)
def bench_forests(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 1


@pytest.mark.contest(TREES)
def bench_trees(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 1


@pytest.mark.contest(ROWS)
def bench_rows(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 10
