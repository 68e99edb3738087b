"""Kernels of kernel k-means. Arguments are already validated; see their header for the contract."""

from cython cimport floating
from libc.stdint cimport int32_t

from fastml._native.runtime cimport Status, bind_pool, check, the_pool

cdef extern from "kernel_kmeans/kernel_kmeans.h" namespace "fastml" nogil:
    Status c_move_rows "fastml::move_rows"[T](
        const T*, Py_ssize_t, const Py_ssize_t*, const int32_t*, const int32_t*, const double*,
        Py_ssize_t, Py_ssize_t, double*, int) noexcept
    Status c_nearest_centers "fastml::nearest_centers"(
        const double*, Py_ssize_t, Py_ssize_t, const double*, const double*, int32_t*, double*,
        Py_ssize_t*, int) noexcept

bind_pool(the_pool())


def move_rows(
    const floating[:, ::1] K,  # IN
    const Py_ssize_t[::1] rows,  # IN
    const int32_t[::1] source,  # IN, or None
    const int32_t[::1] target,  # IN
    const double[::1] w,        # IN
    double[:, ::1] sums,        # INOUT
    int n_threads,
):
    """Add rows of K to the sums of the clusters that they enter, and take them from the others."""
    cdef Py_ssize_t m = rows.shape[0]
    cdef const int32_t* psource = &source[0] if source is not None and m else NULL
    cdef Status status
    if m == 0:
        return
    with nogil:
        status = c_move_rows(&K[0, 0], K.shape[1], &rows[0], psource, &target[0], &w[0], m,
                             sums.shape[0], &sums[0, 0], n_threads)
    check(status)


def nearest_centers(
    const double[:, ::1] sums,  # IN
    const double[::1] norm,     # IN
    const double[::1] scale,    # IN
    int32_t[::1] labels,        # INOUT
    double[::1] closeness,      # OUT
    int n_threads,
):
    """Label every row with its nearest center; return how many labels changed."""
    cdef Py_ssize_t changed = 0
    cdef Status status
    with nogil:
        status = c_nearest_centers(&sums[0, 0], sums.shape[1], sums.shape[0], &norm[0], &scale[0],
                                   &labels[0], &closeness[0], &changed, n_threads)
    check(status)
    return changed
