"""Factors by stochastic gradient descent: `python -m pytest benchmarks/bench_sgd_factors.py`."""

import pytest

from fastml._bench.cases.sgd_factors import case

ML_1M, ML_10M = (6_000, 3_700, 10**6), (70_000, 10_700, 10**7)


@pytest.mark.contest([case(*ML_1M, f) for f in (16, 50, 128)] + [case(*ML_10M)])
def bench_ratings(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 1
