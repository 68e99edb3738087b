"""Recommendations: `python -m pytest benchmarks/bench_ranking.py`."""

import pytest

from fastml._bench.cases.ranking import case


@pytest.mark.contest(
    [case(20_000, 10_000), case(5_000, 50_000), case(20_000, 10_000, 128, 100), case(1_000, 10_000)]
)
def bench_rank(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 3
