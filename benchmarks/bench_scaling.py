"""The scalers beside scikit-learn's: from one row to two million, four columns to 500."""

import pytest

from fastml._bench.cases.scaling import fit_case, transform_case

SHAPES = ((2_000_000, 4), (200_000, 50), (20_000, 500), (1_000, 20))
FITTED = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")
APPLIED = ("StandardScaler", "MinMaxScaler", "Normalizer")
SPARSE = ("StandardScaler", "MaxAbsScaler")
DTYPES = ("float64", "float32")


def every(case, scalers, shapes, kind="dense"):
    return [
        case(scaler, *shape, dtype, kind)
        for scaler in scalers
        for shape in shapes
        for dtype in DTYPES
    ]


@pytest.mark.contest(every(fit_case, FITTED, SHAPES[:3]) + every(fit_case, FITTED[:1], SHAPES[3:]))
def bench_fit(entry, contest):
    assert contest.equal(entry)


@pytest.mark.contest(every(transform_case, APPLIED, SHAPES[1:3]))
def bench_transform(entry, contest):
    assert contest.equal(entry)


@pytest.mark.contest(every(fit_case, SPARSE, SHAPES[2:3], "csr"))
def bench_fit_sparse(entry, contest):
    assert contest.equal(entry)


@pytest.mark.contest(every(transform_case, (*SPARSE, "Normalizer"), SHAPES[2:3], "csr"))
def bench_transform_sparse(entry, contest):
    assert contest.equal(entry)


@pytest.mark.contest(every(transform_case, APPLIED, ((1, 20), (500, 10))))
def bench_tiny(entry, contest):
    assert contest.equal(entry)
