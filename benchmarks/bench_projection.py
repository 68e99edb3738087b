"""Random projections: `python -m pytest benchmarks/bench_projection.py`."""

import pytest

from fastml._bench.cases.projection import case

SPARSE, GAUSSIAN = "SparseRandomProjection", "GaussianRandomProjection"
CASES = [
    case(2_000, 10_000, 500, projection, kind, dtype=dtype)
    for projection, kind in ((SPARSE, "dense"), (SPARSE, "csr"), (GAUSSIAN, "csr"))
    for dtype in ("float64", "float32")
]
FITS = [case(200, d, 500, part="fit") for d in (1_000, 10_000, 50_000)]


@pytest.mark.contest([*CASES, *FITS, case(1, 10_000, 500), case(20_000, 300, 50)])
def bench_projection(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 1
