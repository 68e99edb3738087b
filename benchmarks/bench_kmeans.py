"""K-means beside every peer: from three columns to 256, from 50 centers to 1,000."""

import pytest

from fastml._bench.cases.kmeans import (
    fit_case,
    minibatch_case,
    predict_case,
    seed_case,
    transform_case,
)

SHAPES = ((1_000_000, 3, 50), (100_000, 50, 100), (50_000, 256, 1000))
SEEDED = ((1_000_000, 3, 100), (100_000, 50, 100), (50_000, 256, 1000))
TINY = ((50, 2, 3), (150, 4, 8), (500, 10, 8), (500, 50, 20))
DTYPES = ("float32", "float64")


def every(case, shapes):
    return [case(*shape, dtype) for shape in shapes for dtype in DTYPES]


@pytest.mark.contest(every(fit_case, SHAPES))
def bench_fit(entry, contest):
    assert contest.equal(entry)


@pytest.mark.contest(every(seed_case, SEEDED))
def bench_plusplus(entry, contest):
    assert contest.equal(entry)


@pytest.mark.contest(every(predict_case, SHAPES))
def bench_predict(entry, contest):
    assert contest.equal(entry)


@pytest.mark.contest(every(transform_case, SHAPES))
def bench_transform(entry, contest):
    assert contest.equal(entry)


@pytest.mark.contest(every(minibatch_case, SHAPES[1:]))
def bench_minibatch(entry, contest):
    assert contest.equal(entry)


@pytest.mark.contest(every(fit_case, TINY))
def bench_tiny(entry, contest):
    assert contest.equal(entry)


@pytest.mark.contest([predict_case(1, 10, 1), predict_case(1, 50, 1, "float64")])
def bench_one_row(entry, contest):
    assert contest.equal(entry)
