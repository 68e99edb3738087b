"""Reductions over blocks of rows, on k-means."""

import numpy as np
import pytest
from fastml._native.rows import Rows
from scipy import sparse

from fastml._runtime.reduce import reduce_blocks
from fastml.cluster._lloyd import Block, Lloyd


class Concatenation:
    """Writes down what is merged with what."""

    def map(self, block, state):
        return f"{state}{block}"

    def merge(self, a, b):
        return f"({a}{b})"


@pytest.mark.parametrize(
    ("n", "expected"), [(1, "0"), (2, "(01)"), (3, "((01)2)"), (6, "(((01)(23))(45))")]
)
def test_tree_has_the_order_of_the_blocks(n, expected):
    assert reduce_blocks(Concatenation(), map(str, range(n)), "") == expected


def test_no_blocks():
    with pytest.raises(ValueError, match="no blocks"):
        reduce_blocks(Concatenation(), [], "")


def blocks_of(X, w, n_blocks, shift):
    for part in np.array_split(np.arange(X.shape[0]), n_blocks):
        labels = np.full(len(part), -1, dtype=np.int32)
        yield Block(Rows(X[part], shift), None if w is None else w[part], labels)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("n_blocks", [2, 3, 7])
def test_chunks_give_what_the_whole_gives(n_blocks, kind, weighted):
    rng = np.random.default_rng(0)
    X, shift = rng.normal(size=(900, 6)), None
    if kind == "csr":
        X = sparse.csr_matrix(np.where(X > 0, X, 0))
    else:
        shift = X.mean(axis=0)
    w = rng.random(900) if weighted else None
    start = rng.normal(size=(8, 6))
    start[3] = 50  # nobody's: relocated
    method = Lloyd(tol=0, threads=1)
    whole = chunked = method.init(None, start)
    for _ in range(5):
        whole, _ = method.update(reduce_blocks(method, blocks_of(X, w, 1, shift), whole), whole)
        parts = blocks_of(X, w, n_blocks, shift)
        chunked, _ = method.update(reduce_blocks(method, parts, chunked), chunked)
        np.testing.assert_allclose(chunked.centers, whole.centers, rtol=1e-10, atol=1e-12)
    assert np.abs(whole.centers).max() < 10
