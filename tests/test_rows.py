import numpy as np
import pytest
from fastml._native.rows import Rows, least

from fastml._runtime import plain

ORDERS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (1, 37), (37, 1), (3, 5), (16, 16), (41, 67)])
def test_least_is_found_wherever_it_is(shape, dtype, order):
    rng = np.random.default_rng(0)
    base = rng.normal(size=shape).astype(dtype)
    for i in (0, base.size // 2, base.size - 1):
        base.flat[i] = base.min() - 1
        X = ORDERS[order](base.copy())
        X.setflags(write=False)
        assert least(X) == base.flat[i]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_value_that_is_not_finite_is_told(dtype, value, order):
    for shape in [(1, 1), (1, 37), (37, 1), (41, 67)]:
        for i in {0, shape[0] * shape[1] // 3, shape[0] * shape[1] - 1}:
            base = np.full(shape, np.finfo(dtype).max, dtype)  # whose sum is infinite
            assert plain.is_finite(ORDERS[order](base))
            base.flat[i] = value
            assert np.isnan(least(ORDERS[order](base)))
            assert not plain.is_finite(ORDERS[order](base))


@pytest.fixture
def unaligned():
    raw = np.zeros(8 * 12 + 1, np.uint8)
    X = raw[1:].view(np.float64).reshape(3, 4)
    X[:] = np.arange(12.0).reshape(3, 4) - 5
    assert not X.flags.aligned
    return X


def test_unaligned_values_are_read(unaligned):
    assert plain.least(unaligned) == -5


def test_rows_are_borrowed_where_they_can_be_read(unaligned):
    X = np.arange(12.0, dtype=np.float32).reshape(4, 3)
    X.setflags(write=False)
    rows = Rows(X)
    assert (rows.n, rows.d, rows.is_single) == (4, 3, True)
    assert rows.X is X
    rows = Rows(unaligned)
    assert (rows.n, rows.d, rows.is_single) == (3, 4, False)
    assert rows.X.flags.aligned
    np.testing.assert_array_equal(rows.X, unaligned)


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((3, 4)).T,
        np.zeros((3, 4))[:, ::2],
        np.zeros(3),
        np.zeros((2, 2, 2)),
        np.zeros((3, 4), int),
        np.zeros((3, 4), ">f8"),
    ],
    ids=["Fortran", "strided", "one row", "cube", "integers", "swapped"],
)
def test_what_is_no_matrix_of_floats_in_C_order_is_refused(X):
    with pytest.raises((TypeError, ValueError)):
        Rows(X)
