"""Kernel logistic regression: `python -m pytest benchmarks/bench_kernel_logistic.py`."""

import pytest

from fastml._bench.cases.kernel_logistic import case


@pytest.mark.contest([case(1_000), case(5_000), case(5_000, k=4), case(5_000, dtype="float32")])
def bench_fit(entry, contest):
    assert contest.equal(entry)
    if entry.name == "fastml" and contest.case.params["n"] > 3_000 and len(contest.entries) > 1:
        assert contest.ratio(entry, "Cholesky alone") > 1 / 1.25
