"""Random features: `python -m pytest benchmarks/bench_sketch.py`."""

import pytest

from fastml._bench.cases.sketch import case

CASES = [
    case(20_000, sampler=sampler, dtype=dtype)
    for sampler in ("RBFSampler", "SkewedChi2Sampler", "Nystroem", "AdditiveChi2Sampler")
    for dtype in ("float64", "float32")
]
SKETCHES = [case(5_000, m=m, sampler="PolynomialCountSketch") for m in (100, 500)]


@pytest.mark.contest([*CASES, case(1, 10, 100), case(1_000, 500, 1_000), *SKETCHES])
def bench_transform(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 1
