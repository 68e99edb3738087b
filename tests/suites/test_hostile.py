"""Inputs that users bring by accident: the answer, or the error, is scikit-learn's."""

import numpy as np
import pytest
from scipy import sparse

from suites.harness import check_addition, compare_with_stock
from suites.registry import ADDITIONS, REPLACEMENTS

_rng = np.random.default_rng(0)
X = _rng.random((60, 5))


def _memmap(tmp_path):
    np.save(tmp_path / "X.npy", X)
    return np.load(tmp_path / "X.npy", mmap_mode="r")


def _unaligned(_):
    raw = b"x" + X.tobytes()
    return np.frombuffer(raw, dtype=np.float64, offset=1).reshape(X.shape)


def _long_indices(_):
    S = sparse.csr_matrix(X)
    S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    return S


def _messy_csr(_):
    """Column indices unsorted, and some twice."""
    values = np.r_[X.ravel(), 1.0, 2.0]
    columns = np.r_[np.tile([4, 3, 2, 1, 0], 60), 0, 0]
    return sparse.csr_matrix((values, columns, np.r_[np.arange(0, 296, 5), 302]), shape=(60, 5))


def _where(condition, value):
    def make(_):
        Z = X.copy()
        Z[condition(Z)] = value
        return Z

    return make


def _huge(_):
    Z = X.copy()
    Z[:, 0] = 1e308
    return Z


KINDS = {
    "baseline": lambda _: X,
    "float32": lambda _: X.astype(np.float32),
    "float16": lambda _: X.astype(np.float16),
    "longdouble": lambda _: X.astype(np.longdouble),
    "int8": lambda _: (X * 100).astype(np.int8),
    "bool": lambda _: X > 0.5,
    "fortran": lambda _: np.asfortranarray(X),
    "noncontiguous": lambda _: np.repeat(X, 2, axis=0)[::2],
    "negative_strides": lambda _: X[::-1, ::-1],
    "byteswapped": lambda _: X.astype(">f8"),
    "readonly_memmap": _memmap,
    "unaligned": _unaligned,
    "nan": _where(lambda Z: Z > 0.9, np.nan),
    "inf": _where(lambda Z: Z > 0.9, np.inf),
    "huge": _huge,
    "denormal": lambda _: X * 1e-310,
    "constant": lambda _: np.ones_like(X),
    "constant_feature": lambda _: np.c_[X, np.ones(60)],
    "duplicates": lambda _: np.repeat(X[:3], 20, axis=0),
    "one_feature": lambda _: X[:, :1],
    "one_sample": lambda _: X[:1],
    "zero_samples": lambda _: X[:0],
    "zero_features": lambda _: X[:, :0],
    "wide": lambda _: _rng.random((5, 200)),
    "csr": lambda _: sparse.csr_matrix(X),
    "csr_int64": _long_indices,
    "csc": lambda _: sparse.csc_matrix(X),
    "csr_messy": _messy_csr,
    "csr_empty": lambda _: sparse.csr_matrix((60, 5)),
    "object": lambda _: X.astype(object),
    "masked": lambda _: np.ma.array(X, mask=X > 0.9),
    "1d": lambda _: X[:, 0],
    "3d": lambda _: X[:, :, None],
    "complex": lambda _: X + 1j,
    "string": lambda _: X.astype(str),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("subject", REPLACEMENTS, ids=str)
def test_hostile_input(subject, kind, tmp_path):
    compare_with_stock(subject, KINDS[kind](tmp_path), kind=kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("subject", ADDITIONS, ids=str)
def test_hostile_input_of_an_addition(subject, kind, tmp_path):
    check_addition(subject, KINDS[kind](tmp_path), kind=kind)
