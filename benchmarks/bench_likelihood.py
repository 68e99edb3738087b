"""Factors by likelihood: `python -m pytest benchmarks/bench_likelihood.py`."""

import pytest

from fastml._bench.cases.likelihood import case


@pytest.mark.contest([case(2_000, 1_500, 200_000), case(6_000, 3_700, 10**6, 50)])
def bench_poisson(entry, contest):
    assert not entry.name.startswith("fastml") or contest.ratio(entry) > 3
