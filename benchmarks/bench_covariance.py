"""PCA and factor analysis: `python -m pytest benchmarks/bench_covariance.py`."""

import pytest

from fastml._bench.cases.covariance import case, factor_case, sparse_case

TALL = ((1_000_000, 50), (200_000, 200), (50_000, 500), (150, 4))
SQUARE = ((500, 500), (800, 850), (1_000, 1_000), (2_000, 2_000))
SHAPES = (*TALL, *SQUARE, (500, 5_000))
DTYPES = ("float64", "float32")
METHODS = ("randomized", "lapack")


@pytest.mark.contest(
    [case(*shape, dtype) for shape in SHAPES for dtype in DTYPES]
    + [case(20_000, 1_000, dtype, 20) for dtype in DTYPES]
    + [case(2_000, 1_000, "float64", 10), case(5_000, 500, "float64", 10)]
    + [sparse_case(50_000, d, density, 20) for d, density in ((500, 0.02), (10_000, 0.002))]
)
def bench_fit(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 1


@pytest.mark.contest(
    [factor_case(n, d, k, m) for n, d, k in ((5_000, 50, 5), (60, 200, 3)) for m in METHODS]
)
def bench_factors(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 1
