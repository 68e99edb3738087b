"""Forests over categorical features: `python -m pytest benchmarks/bench_categorical.py`."""

import pytest

from fastml._bench.cases.categorical import case

CASES = [
    case(n, d, levels, work=work)
    for n, d, levels in ((1_000, 5, 10), (20_000, 10, 30), (20_000, 10, 200))
    for work in ("fit", "predict")
]


@pytest.mark.contest(CASES)
def bench_forests(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 1
