"""K-means kernels. Arguments are already validated; see csrc/kmeans/kmeans.h for the contract."""

from cython cimport floating
from libc.stdint cimport int32_t

import numpy as np
from scipy.sparse import issparse

from fastml._native.runtime cimport Status, bind_pool, check, the_pool

cdef extern from "kmeans/kmeans.h" namespace "fastml" nogil:
    cdef cppclass CRows "fastml::Rows"[T]:
        const T* data
        const int32_t* indices
        const int32_t* indptr
        Py_ssize_t n
        Py_ssize_t d
        const T* shift

    Status c_assign "fastml::assign"[T](
        const CRows[T]&, const T*, const T*, Py_ssize_t, int32_t*, Py_ssize_t*, double*, double*,
        int) noexcept
    Status c_sum_by_label "fastml::sum_by_label"[T](
        const CRows[T]&, const T*, const int32_t*, Py_ssize_t, double*, double*, int) noexcept
    Status c_inertia "fastml::inertia"[T](
        const CRows[T]&, const T*, const T*, const int32_t*, Py_ssize_t, int32_t, T*, double*,
        int) noexcept
    Status c_distances "fastml::distances"[T](
        const CRows[T]&, const T*, Py_ssize_t, T*, int) noexcept
    Status c_try_candidates "fastml::try_candidates"[T](
        const CRows[T]&, const T*, const T*, const T*, const Py_ssize_t*, Py_ssize_t, T*, double*,
        int) noexcept
    Status c_row_norms "fastml::row_norms"[T](const CRows[T]&, T*, int) noexcept
    Status c_column_moments "fastml::column_moments"[T](
        const CRows[T]&, double*, double*, int) noexcept
    void c_search_cumulative "fastml::search_cumulative"[T](
        const T*, const T*, Py_ssize_t, const double*, Py_ssize_t, Py_ssize_t*) noexcept

bind_pool(the_pool())


cdef class Rows:
    """The rows of `X`, a C-contiguous array or a CSR matrix with 32-bit indices, less `shift`.

    Borrows their memory. `shift`, dense only, is one row of the dtype of X, or None.
    """
    cdef readonly object X, shift
    cdef readonly Py_ssize_t n, d
    cdef CRows[float] single
    cdef CRows[double] double_

    def __init__(self, X, shift=None):
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
    raise TypeError("rows and centers differ in dtype")


cdef const floating* pointer(const floating[::1] array) noexcept:
    return &array[0] if array is not None and array.shape[0] else NULL


def assign(
    Rows rows,
    const floating[:, ::1] centers,  # IN
    const floating[::1] w,           # IN, or None
    int32_t[::1] labels,             # INOUT
    double[:, ::1] sums,             # OUT, or None
    double[::1] weights,             # OUT, or None
    int n_threads,
):
    """Label every row with its nearest center; return how many labels changed."""
    cdef CRows[floating] r = of[floating](rows, NULL)
    cdef const floating* pw = pointer(w)
    cdef double* psums = &sums[0, 0] if sums is not None else NULL
    cdef double* pweights = &weights[0] if weights is not None else NULL
    cdef Py_ssize_t changed = 0
    cdef Status status
    with nogil:
        status = c_assign(r, pw, &centers[0, 0], centers.shape[0], &labels[0], &changed, psums,
                          pweights, n_threads)
    check(status)
    return changed


def sum_by_label(
    Rows rows,
    w,                          # IN, of the rows' dtype, or None
    const int32_t[::1] labels,  # IN
    double[:, ::1] sums,        # OUT
    double[::1] weights,        # OUT
    int n_threads,
):
    """The weighted sum of the rows of each label, and its weight."""
    cdef const float[::1] w32
    cdef const double[::1] w64
    cdef const float* p32 = NULL
    cdef const double* p64 = NULL
    cdef bint single = rows.X.dtype == np.float32
    cdef Status status
    if w is not None and single:
        w32 = w
        p32 = &w32[0]
    elif w is not None:
        w64 = w
        p64 = &w64[0]
    with nogil:
        if single:
            status = c_sum_by_label(rows.single, p32, &labels[0], weights.shape[0], &sums[0, 0],
                                    &weights[0], n_threads)
        else:
            status = c_sum_by_label(rows.double_, p64, &labels[0], weights.shape[0], &sums[0, 0],
                                    &weights[0], n_threads)
    check(status)


def inertia(
    Rows rows,
    const floating[:, ::1] centers,  # IN
    const floating[::1] w,           # IN, or None
    const int32_t[::1] labels,       # IN
    floating[::1] sqdist,            # OUT, or None
    int n_threads,
):
    """The weighted sum of squared distances to the assigned centers."""
    cdef CRows[floating] r = of[floating](rows, NULL)
    cdef const floating* pw = pointer(w)
    cdef floating* psqdist = &sqdist[0] if sqdist is not None else NULL
    cdef double total = 0
    cdef Status status
    with nogil:
        status = c_inertia(r, pw, &centers[0, 0], &labels[0], centers.shape[0], -1, psqdist,
                           &total, n_threads)
    check(status)
    return total


def distances(
    Rows rows,
    const floating[:, ::1] centers,  # IN
    floating[:, ::1] out,            # OUT
    int n_threads,
):
    """Euclidean distances from every row to every center."""
    cdef CRows[floating] r = of[floating](rows, NULL)
    cdef Status status
    with nogil:
        status = c_distances(r, &centers[0, 0], centers.shape[0], &out[0, 0], n_threads)
    check(status)


def row_norms(
    Rows rows,
    floating[::1] norms,  # OUT
    int n_threads,
):
    """Squared norms of the rows."""
    cdef CRows[floating] r = of[floating](rows, NULL)
    cdef Status status
    with nogil:
        status = c_row_norms(r, &norms[0], n_threads)
    check(status)


def try_candidates(
    Rows rows,
    const floating[::1] norms,         # IN: row_norms
    const floating[::1] w,             # IN, or None
    const floating[::1] closest,       # IN, or None
    const Py_ssize_t[::1] candidates,  # IN
    floating[:, ::1] best,             # OUT
    double[::1] potential,             # OUT
    int n_threads,
):
    """What each candidate would leave as closest squared distances, and their weighted sums."""
    cdef CRows[floating] r = of[floating](rows, NULL)
    cdef const floating* pw = pointer(w)
    cdef const floating* pclosest = pointer(closest)
    cdef Status status
    with nogil:
        status = c_try_candidates(r, pw, &norms[0], pclosest, &candidates[0],
                                  candidates.shape[0], &best[0, 0], &potential[0], n_threads)
    check(status)


def column_moments(
    Rows rows,
    double[::1] mean,      # OUT
    double[::1] variance,  # OUT
    int n_threads,
):
    """Mean and variance of every column, zeros counted; the shift is ignored."""
    cdef bint single = rows.X.dtype == np.float32
    cdef Status status
    with nogil:
        if single:
            status = c_column_moments(rows.single, &mean[0], &variance[0], n_threads)
        else:
            status = c_column_moments(rows.double_, &mean[0], &variance[0], n_threads)
    check(status)


def search_cumulative(
    const floating[::1] p,      # IN
    const floating[::1] w,      # IN, or None
    const double[::1] targets,  # IN, ascending
    Py_ssize_t[::1] index,      # OUT
):
    """Where the running sum of w * p reaches each target."""
    cdef const floating* pw = pointer(w)
    with nogil:
        c_search_cumulative(&p[0], pw, p.shape[0], &targets[0], targets.shape[0], &index[0])
