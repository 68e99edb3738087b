"""K-medians: `python -m pytest benchmarks/bench_kmedians.py`."""

import pytest

from fastml._bench.cases.kmedians import case

SHAPES = ((200_000, 3, 20), (50_000, 20, 50), (20_000, 100, 50))


@pytest.mark.contest([case(*shape, dtype) for shape in SHAPES for dtype in ("float32", "float64")])
def bench_fit(entry, contest):
    assert contest.equal(entry)
