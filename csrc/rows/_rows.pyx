"""The rows of a matrix, dense or CSR, as kernels take them; see csrc/common/rows.h."""

from cython cimport floating
from libc.stdint cimport int32_t

import numpy as np
from scipy.sparse import issparse

cdef extern from "rows/least.h" nogil:
    floating c_least "fastml::least"[floating](
        const floating*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t) noexcept


cdef class Rows:
    """The rows of `X`, a C-contiguous array or a CSR matrix with 32-bit indices, less `shift`.

    Borrows their memory. `shift`, dense only, is one row of the dtype of X, or None.
    """

    def __init__(self, X, shift=None):
        if not issparse(X) and not X.flags.aligned:
            X = X.copy()
        self.X, self.shift = X, shift
        self.n, self.d = X.shape
        if X.dtype == np.float32:
            borrow[float](X, shift, &self.single, NULL)
        else:
            borrow[double](X, shift, &self.double_, NULL)

    @property
    def dtype(self):
        return self.X.dtype


cdef int borrow(X, shift, CRows[floating]* rows, const floating* kind) except -1:
    cdef const floating[::1] data, offset
    cdef const int32_t[::1] indices, indptr
    rows.n, rows.d = X.shape
    if issparse(X):
        data, indices, indptr = X.data, X.indices, X.indptr
        rows.indices = &indices[0] if indices.shape[0] else NULL
        rows.indptr = &indptr[0]
    else:
        data = X.reshape(-1)
    rows.data = pointer(data)
    if shift is not None:
        offset = shift
        rows.shift = &offset[0]
    return 0


# `rows` as the driver for this dtype takes them.
# `kind` only carries the dtype, here and below.
cdef CRows[floating] of(Rows rows, const floating* kind) except *:
    if floating is float:
        if rows.X.dtype == np.float32:
            return rows.single
    else:
        if rows.X.dtype == np.float64:
            return rows.double_
    raise TypeError("rows and what goes with them differ in dtype")


cdef const floating* pointer(const floating[::1] array) noexcept:
    return &array[0] if array is not None and array.shape[0] else NULL


def least(const floating[:, :] X):
    """The least of the values of a table in any order, or NaN if one of them is not finite."""
    cdef Py_ssize_t rows = X.strides[0] // <Py_ssize_t>sizeof(floating)
    cdef Py_ssize_t columns = X.strides[1] // <Py_ssize_t>sizeof(floating)
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1]
    cdef floating found
    # What a dimension of one row or column says of distances means nothing.
    if d == 1:
        columns = 1
    if n == 1:
        rows = d
    with nogil:
        if rows < columns:
            found = c_least(&X[0, 0], d, n, columns, rows)
        else:
            found = c_least(&X[0, 0], n, d, rows, columns)
    return found
