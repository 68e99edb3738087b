"""Gram matrices and distances beside every peer, from ten rows to thousands."""

import pytest

from fastml._bench.cases.pairwise import case

SHAPES = ((4000, 0, 8), (4000, 0, 64), (4000, 4000, 64), (3000, 0, 500))
DTYPES = ("float64", "float32")


def every(function, shapes):
    return [case(*shape, function, dtype) for shape in shapes for dtype in DTYPES]


@pytest.mark.contest(every("rbf_kernel", SHAPES))
def bench_rbf(entry, contest):
    assert contest.equal(entry)


@pytest.mark.contest(every("polynomial_kernel", SHAPES[1:3]))
def bench_polynomial(entry, contest):
    assert contest.equal(entry)


@pytest.mark.contest(every("linear_kernel", SHAPES[2:]))
def bench_linear(entry, contest):
    assert contest.equal(entry)


@pytest.mark.contest(every("laplacian_kernel", SHAPES[:3]) + every("chi2_kernel", SHAPES[1:3]))
def bench_sums(entry, contest):
    assert contest.equal(entry)


@pytest.mark.contest(
    every("euclidean_distances", SHAPES[:2]) + every("cosine_similarity", SHAPES[:2])
)
def bench_distances(entry, contest):
    assert contest.equal(entry)


@pytest.mark.contest(every("rbf_kernel", [(10, 10, 5), (1, 1000, 50)]))
def bench_tiny(entry, contest):
    assert contest.equal(entry)
