"""Products by SciPy's BLAS, whatever the order of their matrices."""

import numpy as np
import pytest

from fastml._runtime.blas import product


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 1, 1), (7, 1, 2)])
@pytest.mark.parametrize("orders", ["CC", "CF", "FC", "FF"])
def test_product(orders, shape, dtype):
    rng = np.random.default_rng(0)
    n, k, m = shape
    A = np.asarray(rng.normal(size=(n, k)), dtype, order=orders[0])
    B = np.asarray(rng.normal(size=(k, m)), dtype, order=orders[1])
    found = product(A, B)
    assert found.dtype == dtype and found.flags.c_contiguous
    np.testing.assert_allclose(found, A @ B, rtol=1e-5)


def test_product_of_strided_matrices():
    A, B = np.arange(48.0).reshape(6, 8)[::2, ::2], np.arange(24.0).reshape(4, 6)[:, ::2]
    np.testing.assert_array_equal(product(A, B), A @ B)
