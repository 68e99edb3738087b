"""PCA: `python -m pytest benchmarks/bench_covariance.py`."""

import pytest

from fastml._bench.cases.covariance import case

SHAPES = ((1_000_000, 50), (200_000, 200), (50_000, 500), (2_000, 2_000), (500, 5_000), (150, 4))
DTYPES = ("float64", "float32")


@pytest.mark.contest(
    [case(*shape, dtype) for shape in SHAPES for dtype in DTYPES]
    + [case(20_000, 1_000, dtype, 20) for dtype in DTYPES]
)
def bench_fit(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 1
