"""The rows of a matrix, dense or CSR, as kernels take them; see csrc/common/rows.h."""

from cpython.buffer cimport (
    PyBUF_C_CONTIGUOUS,
    PyBUF_FORMAT,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from cython cimport floating
from libc.stdint cimport int32_t

import numpy as np
from numpy import ndarray

cdef extern from "rows/least.h" nogil:
    floating c_least "fastml::least"[floating](
        const floating*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t) noexcept


cdef class Rows:
    """The rows of `X`, a C-contiguous array or a CSR matrix with 32-bit indices, less `shift`.

    Borrows their memory. `shift`, dense only, is one row of the dtype of X, or None.
    """

    def __init__(self, X, shift=None):
        self.X, self.shift = X, shift
        if not isinstance(X, ndarray):
            self.n, self.d = X.shape
            self.is_single = X.dtype == np.float32
            if self.is_single:
                borrow_sparse[float](self, &self.single)
            else:
                borrow_sparse[double](self, &self.double_)
            return
        if not borrow_dense(self):
            self.X = X.copy()
            borrow_dense(self)
        if shift is not None:
            if self.is_single:
                self.single.shift = pointer[float](shift)
            else:
                self.double_.shift = pointer[double](shift)

    @property
    def dtype(self):
        return self.X.dtype


# Whether the entries are aligned, as they have to be. A buffer takes a third of the time that the
# attributes of an array and a view of it take, which small matrices feel.
cdef bint borrow_dense(Rows rows) except -1:
    cdef Py_buffer view
    PyObject_GetBuffer(rows.X, &view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)
    try:
        if view.format[0] == b"=":
            return False
        if view.ndim != 2 or view.format[0] not in b"fd":
            raise TypeError("rows are a matrix of float32 or float64")
        rows.n, rows.d = view.shape[0], view.shape[1]
        rows.is_single = view.format[0] == b"f"
        if rows.is_single:
            rows.single.data = <const float*>view.buf
            rows.single.n, rows.single.d = rows.n, rows.d
        else:
            rows.double_.data = <const double*>view.buf
            rows.double_.n, rows.double_.d = rows.n, rows.d
        return True
    finally:
        PyBuffer_Release(&view)


cdef int borrow_sparse(Rows whose, CRows[floating]* rows) except -1:
    cdef const floating[::1] data = whose.X.data
    cdef const int32_t[::1] indices = whose.X.indices, indptr = whose.X.indptr
    rows.n, rows.d = whose.n, whose.d
    rows.data = pointer(data)
    rows.indices = &indices[0] if indices.shape[0] else NULL
    rows.indptr = &indptr[0]
    return 0


# `rows` as the driver for this dtype takes them.
# `kind` only carries the dtype, here and below.
cdef CRows[floating] of(Rows rows, const floating* kind) except *:
    if floating is float:
        if rows.is_single:
            return rows.single
    else:
        if not rows.is_single:
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
