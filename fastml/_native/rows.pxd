"""Rows for the bindings of other families, which name the dtype: `of[floating](rows, NULL)`."""

from cython cimport floating
from libc.stdint cimport int32_t

cdef extern from "common/rows.h" namespace "fastml" nogil:
    cdef cppclass CRows "fastml::Rows"[T]:
        const T* data
        const int32_t* indices
        const int32_t* indptr
        Py_ssize_t n
        Py_ssize_t d
        const T* shift

cdef class Rows:
    cdef readonly object X, shift
    cdef readonly Py_ssize_t n, d
    cdef readonly bint is_single
    cdef CRows[float] single
    cdef CRows[double] double_

cdef CRows[floating] of(Rows rows, const floating* kind) except *
cdef const floating* pointer(const floating[::1] array) noexcept
