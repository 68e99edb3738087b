"""Sparse queries of dense rows: found as dense ones are."""

import numpy as np
import pytest
import sklearn.neighbors as stock
from scipy import sparse

from fastml import neighbors

X = np.random.default_rng(0).normal(size=(40, 4))
QUERIES = sparse.csr_array(X[:9] + 0.1)


@pytest.mark.parametrize(
    "metric", ["braycurtis", "canberra", "chebyshev", "sqeuclidean", "manhattan", "cosine"]
)
def test_as_in_scikit_learn(metric):
    found, expected = (
        module.NearestNeighbors(radius=1.0, metric=metric, algorithm="brute").fit(X)
        for module in (neighbors, stock)
    )
    for ours, theirs in zip(found.kneighbors(QUERIES), expected.kneighbors(QUERIES), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-7)
    within = [model.radius_neighbors(QUERIES)[0] for model in (found, expected)]
    assert [len(near) for near in within[0]] == [len(near) for near in within[1]]


def test_many_at_a_time(monkeypatch):
    """Tables are made of as many queries as memory allows."""
    model = neighbors.NearestNeighbors(n_neighbors=3, metric="canberra", algorithm="brute").fit(X)
    expected = model.kneighbors(QUERIES.toarray())
    monkeypatch.setattr(
        "fastml.neighbors._search.batches_of", lambda n, m: [slice(0, 4), slice(4, 9)]
    )
    for ours, theirs in zip(model.kneighbors(QUERIES), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
