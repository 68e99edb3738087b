"""Matrix completion: `python -m pytest benchmarks/bench_als.py`."""

import pytest

from fastml._bench.cases.als import case, implicit_case

ML_1M, ML_10M, ML_20M = (6_000, 3_700, 10**6), (70_000, 10_700, 10**7), (138_000, 26_700, 2 * 10**7)


@pytest.mark.contest(
    [case(*ML_1M, f, alpha=alpha) for f, alpha in ((16, 10.0), (50, 10.0), (128, 30.0))]
    + [case(*ML_10M, max_iter=5), case(*ML_20M, max_iter=5)]
)
def bench_explicit(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 3


@pytest.mark.contest(
    [
        implicit_case(*size, f, 5, solver)
        for size in (ML_1M, ML_10M)
        for f in (64, 128)
        for solver in ("cg", "cholesky")
    ]
)
def bench_implicit(entry, contest):
    least = 4 if "cholesky" in contest.case.name else 2
    assert entry.name != "fastml" or contest.ratio(entry) > least
