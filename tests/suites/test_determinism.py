"""The same seed gives the same bits, on any number of threads."""

import numpy as np
import pytest
from scipy import sparse

import fastml
from suites.harness import assert_equal
from suites.registry import LARGE, SUBJECTS, data

KINDS = {
    "dense": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sparse.csr_matrix,
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_same_bits_on_any_number_of_threads(subject, kind, weighted):
    if kind == "csr" and subject.for_sparse is None:
        pytest.skip("takes no sparse matrices")
    X = KINDS[kind](data(*LARGE))
    weight = np.random.default_rng(0).random(X.shape[0]) if weighted else None
    with fastml.config_context(threads=1):
        expected = subject.run_large(X, weight)
    for threads in (2, 3):
        with fastml.config_context(threads=threads):
            for _ in range(2):
                assert_equal(subject.run_large(X, weight), expected)


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_layout_does_not_matter(subject):
    X = data()
    expected = subject.run(X)
    assert_equal(subject.run(np.asfortranarray(X)), expected)
    assert_equal(subject.run(np.repeat(X, 2, axis=0)[::2]), expected)


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_a_seed_decides_everything(subject):
    X = data()
    first = subject.run(X, random_state=7)
    assert_equal(subject.run(X, random_state=np.random.RandomState(7)), first)
    state = np.random.get_state()  # noqa: NPY002
    subject.run(X, random_state=1)
    for now, then in zip(np.random.get_state(), state, strict=True):  # noqa: NPY002
        np.testing.assert_array_equal(now, then, err_msg="the global generator was used")
