"""Linear support vector machines: `python -m pytest benchmarks/bench_linear_svm.py`."""

import pytest

from fastml._bench.cases.linear_svm import case

SHAPES = (("dense", 50_000, 50), ("dense", 500, 5_000), ("dense", 1_000, 10_000))
DENSE = [case(*shape, dtype=dtype) for shape in SHAPES for dtype in ("float32", "float64")]
TEXT = [case("text", 20_000, 50_000, classes) for classes in (2, 10)]
TALL = ((20_000, 50), (50_000, 15), (5_000, 20))
HINGES = [case("dense", *shape, loss="hinge", C=C) for shape in TALL for C in (0.1, 1.0)]
HINGES += [
    case(shape, n, 30, loss="hinge", C=C)
    for shape in ("rare", "flags")
    for n in (5_000, 20_000)
    for C in (0.01, 0.1, 1.0)
]
TEXT += [
    case("text", 8_000, 30_000, loss=loss, C=C)
    for loss in ("hinge", "squared_hinge")
    for C in (0.1, 1.0, 10.0)
]
JOINT = [
    case(*shape, multi_class="crammer_singer", C=C)
    for shape in (("dense", 20_000, 20, 5), ("dense", 3_000, 20, 4), ("text", 8_000, 30_000, 5))
    for C in (0.1, 1.0)
]
REGRESSIONS = [case("dense", *shape, classes=0, C=C) for shape in TALL for C in (0.1, 1.0)]
OTHERS = [
    case("dense", 20_000, 50, classes=10),
    case("dense", 20_000, 50, penalty="l1", dual=False, C=0.01),
    case("text", 20_000, 50_000, loss="hinge"),
]


@pytest.mark.contest([*DENSE, *TEXT, *HINGES, *JOINT, *REGRESSIONS, *OTHERS])
def bench_fit(entry, contest):
    # liblinear stops at max_iter, far from the optimum, where it takes hinges of many rows.
    assert entry.name != "fastml" or contest.equal(entry)
