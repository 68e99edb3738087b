"""Kernel machines beside every peer: `python -m pytest benchmarks/bench_svm.py`."""

import pytest

from fastml._bench.cases.svm import case

CLASSIFICATION = [
    case("fit", n, d, k, noise, kernel=kernel, C=C)
    for n, d in ((2_000, 20), (10_000, 50))
    for k in (2, 5)
    for noise in (0.5, 1.5)
    for kernel in ("rbf", "poly")
    for C in (0.1, 1.0, 100.0)
]
LARGE = [case("fit", 100_000, 54, 7, 0.5, C=C) for C in (1.0, 10.0)]
LINEAR = [
    case("fit", n, 20, model=model, kernel="linear")
    for n in (5_000, 20_000)
    for model in ("SVC", "SVR")
] + [
    case("fit", *shape, kernel="linear", C=C)
    for *shape, C in (
        (3_500, 6, 2, 0.3, "SVC", 1.0),
        (5_000, 10, 2, 0.3, "SVC", 1.0),
        (5_000, 50, 2, 1.0, "SVC", 1.0),
        (3_000, 20, 2, 2.0, "SVC", 0.1),
        (20_000, 10, 2, 1.0, "SVC", 0.1),
        (4_000, 20, 2, 1.0, "SVR", 1.0),
    )
]
OTHERS = [
    case("fit", 5_000, 20, model="SVR"),
    case("fit", 5_000, 20, model="SVR", C=10.0, epsilon=0.01),
    case("fit", 5_000, 20, model="NuSVC", nu=0.2),
    case("fit", 5_000, 20, model="NuSVR", nu=0.3),
    case("fit", 5_000, 20, model="OneClassSVM", nu=0.2),
]
SMALL = [
    case("fit", n, 10, model=model)
    for n in (20, 200)
    for model in ("SVC", "SVR", "NuSVR", "OneClassSVM")
]
PREDICTION = [
    case("predict", 5_000, d, k, noise, model, dtype, batch=batch)
    for d, k, noise, model in ((20, 2, 1.0, "SVC"), (50, 10, 1.0, "SVC"), (20, 2, 1.0, "SVR"))
    for dtype in ("float64", "float32")
    for batch in (5_000, 100, 1)
]


@pytest.mark.contest(CLASSIFICATION + LARGE + LINEAR + OTHERS)
def bench_fit(entry, contest):
    assert entry.name != "fastml" or (contest.ratio(entry) > 1 and contest.equal(entry))


@pytest.mark.contest(SMALL)
def bench_small_fit(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 1


@pytest.mark.contest(PREDICTION)
def bench_predict(entry, contest):
    assert entry.name != "fastml" or (contest.ratio(entry) > 1 and contest.equal(entry))
