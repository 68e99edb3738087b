"""Kernel k-means: `python -m pytest benchmarks/bench_kernel_kmeans.py`."""

import pytest

from fastml._bench.cases.kernel_kmeans import case

SHAPES = ((1_000, 5, 4), (5_000, 20, 10), (10_000, 50, 30))


@pytest.mark.contest([case(*shape, dtype) for shape in SHAPES for dtype in ("float32", "float64")])
def bench_fit(entry, contest):
    # tslearn starts from other labels, and may end elsewhere.
    assert entry.name == "tslearn" or contest.equal(entry)
