"""A user's kernel over all pairs: `python -m pytest benchmarks/bench_jit.py`."""

import pytest

from fastml._bench.cases.jit import case

SHAPES = [(n, d) for n in (200, 3000) for d in (2, 20, 100)]


@pytest.mark.contest(
    [
        case(name, n, d, dtype)
        for name in ("gaussian", "clark")
        for n, d in SHAPES
        for dtype in ("float64", "float32")
    ]
)
def bench_jit(entry, contest):
    if entry.name == "fastml":
        assert contest.ratio(entry, "C++") > 0.5
        if contest.case.params["n"] <= 500:
            assert contest.ratio(entry, "Python") > 200
