"""Non-negative matrix factorisation: `python -m pytest benchmarks/bench_nmf.py`."""

import pytest

from fastml._bench.cases.nmf import KL, case

DENSE = ((2_000, 1_000, 20), (20_000, 500, 50))
OTHER = ((1_000, 300, 10), (5_000, 2_000, 10), (500, 500, 30), (3_000, 3_000, 50))
SPARSE = tuple((20_000, 10_000, k, 0.005) for k in (20, 50))


@pytest.mark.contest(
    [case(*shape, dtype=dtype) for shape in (*DENSE, *OTHER) for dtype in ("float64", "float32")]
)
def bench_descent(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 1.5


@pytest.mark.contest(
    [case(*shape) for shape in (*SPARSE, (5_000, 5_000, 20, 0.01))]
    + [case(100, 10, 3, max_iter=100)]
)
def bench_descent_sparse(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > (
        4 if contest.case.params["n"] > 100 else 1
    )


@pytest.mark.contest([case(*shape, solver="mu", **KL) for shape in (*DENSE, *SPARSE)])
def bench_multiplication(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 3


@pytest.mark.contest(
    [
        case(*shape, kind="MiniBatchNMF", beta_loss=beta, max_iter=2, max_no_improvement=None)
        for shape in (DENSE[1], SPARSE[0])
        for beta in (2, 1)
    ]
)
def bench_mini_batches(entry, contest):
    assert entry.name != "fastml" or contest.ratio(entry) > 1
