"""K-means kernels. Arguments are already validated; see csrc/kmeans/kmeans.h for the contract.

`X` is a C-contiguous array or a CSR matrix with 32-bit indices, `shift` (dense only), `w` and
`closest` may be None.
"""

from cython cimport floating
from libc.stdint cimport int32_t

from fastml._native.runtime cimport Status, bind_pool, check, the_pool

from scipy.sparse import issparse

cdef extern from "kmeans/kmeans.h" namespace "fastml" nogil:
    cdef cppclass Rows[T]:
        const T* data
        const int32_t* indices
        const int32_t* indptr
        Py_ssize_t n
        Py_ssize_t d
        const T* shift

    Status c_assign "fastml::assign"[T](
        const Rows[T]&, const T*, const T*, Py_ssize_t, int32_t*, Py_ssize_t*, double*, double*,
        int) noexcept
    Status c_sum_by_label "fastml::sum_by_label"[T](
        const Rows[T]&, const T*, const int32_t*, Py_ssize_t, double*, double*, int) noexcept
    Status c_inertia "fastml::inertia"[T](
        const Rows[T]&, const T*, const T*, const int32_t*, Py_ssize_t, int32_t, T*, double*,
        int) noexcept
    Status c_distances "fastml::distances"[T](
        const Rows[T]&, const T*, Py_ssize_t, T*, int) noexcept
    Status c_try_candidates "fastml::try_candidates"[T](
        const Rows[T]&, const T*, const T*, const T*, const Py_ssize_t*, Py_ssize_t, T*, double*,
        int) noexcept
    Status c_row_norms "fastml::row_norms"[T](const Rows[T]&, T*, int) noexcept
    Status c_column_moments "fastml::column_moments"[T](
        const Rows[T]&, double*, double*, int) noexcept
    void c_search_cumulative "fastml::search_cumulative"[T](
        const T*, const T*, Py_ssize_t, const double*, Py_ssize_t, Py_ssize_t*) noexcept

bind_pool(the_pool())


cdef const floating* pointer(const floating[::1] array) noexcept:
    return &array[0] if array is not None and array.shape[0] else NULL


# The row set that `X` and `shift` describe; it borrows their memory. `kind` only carries the dtype.
cdef Rows[floating] rows(X, const floating[::1] shift, const floating* kind) except *:
    cdef Rows[floating] r
    cdef const floating[::1] data
    cdef const int32_t[::1] indices, indptr
    r.n, r.d = X.shape
    r.indices = r.indptr = NULL
    if issparse(X):
        data, indices, indptr = X.data, X.indices, X.indptr
        r.indices = &indices[0] if indices.shape[0] else NULL
        r.indptr = &indptr[0]
    else:
        data = X.reshape(-1)
    r.data = pointer(data)
    r.shift = pointer(shift)
    return r


def assign(
    X,
    const floating[::1] shift,        # IN
    const floating[::1] w,            # IN
    const floating[:, ::1] centers,   # IN
    int32_t[::1] labels,              # INOUT
    double[:, ::1] sums,              # OUT, or None
    double[::1] weights,              # OUT, or None
    int n_threads,
):
    """Label every row with its nearest center; return how many labels changed."""
    cdef Rows[floating] r = rows[floating](X, shift, NULL)
    cdef const floating* pw = pointer(w)
    cdef double* ps = &sums[0, 0] if sums is not None else NULL
    cdef double* pweights = &weights[0] if weights is not None else NULL
    cdef Py_ssize_t changed = 0
    cdef Status status
    with nogil:
        status = c_assign(r, pw, &centers[0, 0], centers.shape[0], &labels[0], &changed, ps,
                          pweights, n_threads)
    check(status)
    return changed


def sum_by_label(
    X,
    const floating[::1] shift,  # IN
    const floating[::1] w,      # IN
    const int32_t[::1] labels,  # IN
    double[:, ::1] sums,        # OUT
    double[::1] weights,        # OUT
    int n_threads,
):
    """The weighted sum of the rows of each label, and its weight."""
    cdef Rows[floating] r = rows[floating](X, shift, NULL)
    cdef const floating* pw = pointer(w)
    cdef Status status
    with nogil:
        status = c_sum_by_label(r, pw, &labels[0], weights.shape[0], &sums[0, 0], &weights[0],
                                n_threads)
    check(status)


def inertia(
    X,
    const floating[::1] shift,       # IN
    const floating[::1] w,           # IN
    const floating[:, ::1] centers,  # IN
    const int32_t[::1] labels,       # IN
    floating[::1] sqdist,            # OUT, or None
    int n_threads,
):
    """The weighted sum of squared distances to the assigned centers."""
    cdef Rows[floating] r = rows[floating](X, shift, NULL)
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
    X,
    const floating[::1] shift,       # IN
    const floating[:, ::1] centers,  # IN
    floating[:, ::1] out,            # OUT
    int n_threads,
):
    """Euclidean distances from every row to every center."""
    cdef Rows[floating] r = rows[floating](X, shift, NULL)
    cdef Status status
    with nogil:
        status = c_distances(r, &centers[0, 0], centers.shape[0], &out[0, 0], n_threads)
    check(status)


def try_candidates(
    X,
    const floating[::1] shift,     # IN
    const floating[::1] w,         # IN
    const floating[::1] norms,     # IN
    const floating[::1] closest,   # IN, or None
    const Py_ssize_t[::1] candidates,  # IN
    floating[:, ::1] best,         # OUT
    double[::1] potential,         # OUT
    int n_threads,
):
    """What each candidate would leave as closest squared distances, and their weighted sums."""
    cdef Rows[floating] r = rows[floating](X, shift, NULL)
    cdef const floating* pw = pointer(w)
    cdef const floating* pclosest = pointer(closest)
    cdef Status status
    with nogil:
        status = c_try_candidates(r, pw, &norms[0], pclosest, &candidates[0],
                                  candidates.shape[0], &best[0, 0], &potential[0], n_threads)
    check(status)


def row_norms(
    X,
    const floating[::1] shift,  # IN
    floating[::1] norms,        # OUT
    int n_threads,
):
    """Squared norms of the rows less `shift`."""
    cdef Rows[floating] r = rows[floating](X, shift, NULL)
    cdef Status status
    with nogil:
        status = c_row_norms(r, &norms[0], n_threads)
    check(status)


def column_moments(
    X,
    const floating[::1] like,  # IN: empty, carries the dtype of X
    double[::1] mean,          # OUT
    double[::1] variance,      # OUT
    int n_threads,
):
    """Mean and variance of every column, zeros counted."""
    cdef Rows[floating] r = rows[floating](X, None, NULL)
    cdef Status status
    with nogil:
        status = c_column_moments(r, &mean[0], &variance[0], n_threads)
    check(status)


def search_cumulative(
    const floating[::1] p,      # IN
    const floating[::1] w,      # IN
    const double[::1] targets,  # IN, ascending
    Py_ssize_t[::1] index,      # OUT
):
    """Where the running sum of w * p reaches each target."""
    cdef const floating* pw = pointer(w)
    with nogil:
        c_search_cumulative(&p[0], pw, p.shape[0], &targets[0], targets.shape[0], &index[0])
