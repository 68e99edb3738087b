"""K-medians kernels. Arguments are already validated; see csrc/kmedians/kmedians.h."""

from cython cimport floating
from libc.stdint cimport int32_t
from libcpp cimport bool as bool_t

from fastml._native.rows cimport CRows, Rows, of, pointer
from fastml._native.runtime cimport Status, bind_pool, check, the_pool

cdef extern from "kmedians/kmedians.h" namespace "fastml" nogil:
    Status c_assign "fastml::assign"[T](
        const CRows[T]&, const T*, Py_ssize_t, int32_t*, Py_ssize_t*, int) noexcept
    Status c_deviation "fastml::deviation"[T](
        const CRows[T]&, const T*, const T*, const int32_t*, Py_ssize_t, T*, double*,
        int) noexcept
    Status c_medians "fastml::medians"[T](
        const CRows[T]&, const T*, const int32_t*, Py_ssize_t, T*, double*, int) noexcept
    Status c_sparse_medians "fastml::sparse_medians"[T](
        const CRows[T]&, const T*, const int32_t*, Py_ssize_t, T*, double*, int) noexcept
    Py_ssize_t c_rows_of_block "fastml::rows_of_block"(Py_ssize_t) noexcept
    Status c_potentials "fastml::potentials"[T](
        const CRows[T]&, const T*, T*, const T*, Py_ssize_t, bool_t, double*, int) noexcept

bind_pool(the_pool())


def assign(
    Rows rows,
    const floating[:, ::1] centers,  # IN
    int32_t[::1] labels,             # INOUT
    int n_threads,
):
    """Label every row with its nearest center; return how many labels changed."""
    cdef CRows[floating] r = of[floating](rows, NULL)
    cdef Py_ssize_t changed = 0
    cdef Status status
    with nogil:
        status = c_assign(r, &centers[0, 0], centers.shape[0], &labels[0], &changed, n_threads)
    check(status)
    return changed


def deviation(
    Rows rows,
    const floating[:, ::1] centers,  # IN
    const floating[::1] w,           # IN, or None
    const int32_t[::1] labels,       # IN
    floating[::1] distance,          # OUT, or None
    int n_threads,
):
    """The weighted sum of the distances to the assigned centers."""
    cdef CRows[floating] r = of[floating](rows, NULL)
    cdef const floating* pw = pointer(w)
    cdef floating* pdistance = &distance[0] if distance is not None else NULL
    cdef double total = 0
    cdef Status status
    with nogil:
        status = c_deviation(r, pw, &centers[0, 0], &labels[0], centers.shape[0], pdistance,
                             &total, n_threads)
    check(status)
    return total


def medians(
    Rows rows,
    Rows columns,               # of sparse rows, else None
    floating[:, ::1] centers,   # INOUT: those of clusters without weight stay
    const floating[::1] w,      # IN, or None
    const int32_t[::1] labels,  # IN
    double[::1] weights,        # OUT
    int n_threads,
):
    """Make each center the weighted median of its cluster."""
    cdef bint sparse = columns is not None
    cdef CRows[floating] r = of[floating](columns if sparse else rows, NULL)
    cdef const floating* pw = pointer(w)
    cdef Status status
    with nogil:
        if sparse:
            status = c_sparse_medians(r, pw, &labels[0], centers.shape[0], &centers[0, 0],
                                      &weights[0], n_threads)
        else:
            status = c_medians(r, pw, &labels[0], centers.shape[0], &centers[0, 0], &weights[0],
                               n_threads)
    check(status)


def rows_of_block(Py_ssize_t n):
    """How many of n rows a block of `potentials` has."""
    return c_rows_of_block(n)


def potentials(
    Rows rows,
    floating[::1] closest,              # IN, or INOUT with accept
    const floating[::1] w,              # IN, or None
    const floating[:, ::1] candidates,  # IN
    bint accept,
    double[:, ::1] potential,           # OUT, (blocks, candidates)
    int n_threads,
):
    """What the sum of distances to the closest center would be with each candidate added."""
    cdef CRows[floating] r = of[floating](rows, NULL)
    cdef const floating* pw = pointer(w)
    cdef Status status
    with nogil:
        status = c_potentials(r, pw, &closest[0], &candidates[0, 0], candidates.shape[0], accept,
                              &potential[0, 0], n_threads)
    check(status)
