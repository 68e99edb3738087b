"""Growing trees beside every peer: `python -m pytest benchmarks/bench_trees.py`."""

import pytest

from fastml._bench.cases.trees import case

FORESTS = [
    case(n, d, f"RandomForest{role}", kind, trees)
    for n, d, trees in ((1_000, 20, 100), (20_000, 16, 100), (100_000, 50, 10))
    for role in ("Classifier", "Regressor")
    for kind in ("continuous", "integers", "binary", "mixed")
]
WIDE_AND_LONG = [
    case(5_000, 500, trees=20),
    case(1_000_000, 5, trees=5),
    case(1_000_000, 5, kind="integers", trees=5),
]
TREES = [
    case(n, 10, f"DecisionTree{role}", kind, 1)
    for n in (10_000, 200_000)
    for role in ("Classifier", "Regressor")
    for kind in ("continuous", "integers")
]
CRITERIA = [
    case(20_000, 10, "DecisionTreeRegressor", "integers", 1, criterion="absolute_error"),
    case(50_000, 10, "RandomForestClassifier", "continuous", 10, criterion="entropy"),
]
EXTRA = [
    case(50_000, 20, f"ExtraTrees{role}", kind, 20)
    for role in ("Classifier", "Regressor")
    for kind in ("continuous", "integers")
]
SPARSE = [
    case(20_000, d, f"{name}{role}", "sparse", trees)
    for d in (20, 500)
    for name, trees in (("DecisionTree", 1), ("RandomForest", 10), ("ExtraTrees", 10))
    for role in ("Classifier", "Regressor")
]
ENSEMBLES = [
    case(20_000, 20, f"{name}{role}", "continuous", 20)
    for name in ("AdaBoost", "Bagging")
    for role in ("Classifier", "Regressor")
]
TINY = [
    case(n, 5, f"{name}{role}", "continuous", trees)
    for n in (20, 200)
    for name, trees in (("DecisionTree", 1), ("RandomForest", 100), ("ExtraTrees", 100))
    for role in ("Classifier", "Regressor")
]


@pytest.mark.contest(FORESTS + WIDE_AND_LONG)
def bench_forests(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 1


@pytest.mark.contest(TREES + CRITERIA)
def bench_trees(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 1


@pytest.mark.contest(EXTRA)
def bench_extra_trees(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 1


@pytest.mark.contest(SPARSE)
def bench_sparse(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 1


@pytest.mark.contest(ENSEMBLES)
def bench_ensembles(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 1


@pytest.mark.contest(TINY)
def bench_tiny(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 0.9
