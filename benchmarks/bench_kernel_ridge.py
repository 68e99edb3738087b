"""Kernel ridge regression: `python -m pytest benchmarks/bench_kernel_ridge.py`."""

import pytest

from fastml._bench.cases.kernel_ridge import fit_case, predict_case

FITS = (
    *(fit_case(n, kernel=kernel) for n in (300, 1_000, 3_000) for kernel in ("rbf", "linear")),
    fit_case(3_000, dtype="float32"),
    fit_case(5_000),
    fit_case(10_000),
    fit_case(10_000, solver="cg"),
)


@pytest.mark.contest(FITS)
def bench_fit(entry, contest):
    assert contest.equal(entry)
    if entry.name != "fastml" or contest.case.params["solver"] != "auto":
        return
    if contest.case.params["n"] <= 3_000:
        assert contest.ratio(entry) > 1.5
    else:
        assert contest.ratio(entry, "Cholesky alone") > 1 / 1.2


@pytest.mark.contest([predict_case(20_000), predict_case(20_000, dtype="float32")])
def bench_predict(entry, contest):
    assert contest.equal(entry)
    assert entry.name != "fastml" or contest.ratio(entry) > 1.5
