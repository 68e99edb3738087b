"""Linear support vector machines: `python -m pytest benchmarks/bench_linear_svm.py`."""

import pytest

from fastml._bench.cases.linear_svm import case

SHAPES = (("dense", 50_000, 50), ("dense", 500, 5_000), ("dense", 1_000, 10_000))
DENSE = [case(*shape, dtype=dtype) for shape in SHAPES for dtype in ("float32", "float64")]
TEXT = [case("text", 20_000, 50_000, classes) for classes in (2, 10)]
TALL = ((20_000, 50), (50_000, 15), (5_000, 20))
HINGES = [case("dense", *shape, loss="hinge", C=C) for shape in TALL for C in (0.1, 1.0)]
REGRESSIONS = [case("dense", *shape, classes=0, C=C) for shape in TALL for C in (0.1, 1.0)]
OTHERS = [
    case("dense", 20_000, 50, classes=10),
    case("dense", 20_000, 50, penalty="l1", dual=False, C=0.01),
    case("text", 20_000, 50_000, loss="hinge"),
]


@pytest.mark.contest([*DENSE, *TEXT, *HINGES, *REGRESSIONS, *OTHERS])
def bench_fit(entry, contest):
    # liblinear stops at max_iter, far from the optimum, where it takes hinges of many rows.
    assert entry.name != "fastml" or contest.equal(entry)
