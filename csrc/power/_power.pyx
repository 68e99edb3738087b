"""A matrix times blocks of vectors. Arguments are already validated; see csrc/power/power.h."""

from cython cimport floating
from libc.stdint cimport int32_t

from fastml._native.runtime cimport Status, bind_pool, check, the_pool

cdef extern from "power/power.h" namespace "fastml" nogil:
    cdef cppclass Dense[T]:
        const T* data
        Py_ssize_t n
        Py_ssize_t d
        Py_ssize_t row
        Py_ssize_t column
        const T* mean

    cdef cppclass Sparse[T]:
        const T* data
        const int32_t* indices
        const int32_t* indptr
        Py_ssize_t n
        Py_ssize_t d

    Status c_times "fastml::times"[T](
        const Dense[T]&, const T*, Py_ssize_t, T*, int) noexcept
    Status c_transposed "fastml::transposed"[T](
        const Dense[T]&, const T*, Py_ssize_t, T*, int) noexcept
    Status c_gram "fastml::gram"[T](
        const Dense[T]&, const T*, Py_ssize_t, T*, int) noexcept
    Status c_sparse_times "fastml::times"[T](
        const Sparse[T]&, const T*, Py_ssize_t, const T*, bint, T*, int) noexcept
    Status c_sparse_gram "fastml::gram"[T](const Sparse[T]&, const T*, T, T*, int) noexcept
    bint c_factorise "fastml::factorise"(const double*, Py_ssize_t, double*, double*) noexcept

bind_pool(the_pool())


cdef Dense[floating] dense(const floating[:, :] X, const floating[::1] mean) noexcept:
    cdef Dense[floating] rows
    rows.data, rows.n, rows.d = &X[0, 0], X.shape[0], X.shape[1]
    # Of a single row or column, whose stride says nothing, either reading is right.
    rows.row, rows.column = X.strides[0] // sizeof(floating), X.strides[1] // sizeof(floating)
    if X.shape[1] == 1:
        rows.column = 1
    elif X.shape[0] == 1:
        rows.row = X.shape[1] * rows.column
    rows.mean = &mean[0] if mean is not None else NULL
    return rows


def times(
    const floating[:, :] X,     # IN (n, d), in C or Fortran order
    const floating[::1] mean,   # IN (d), or None
    const floating[:, ::1] V,   # IN (d, k)
    floating[:, ::1] out,       # OUT (n, k)
    int n_threads,
):
    """Write (X - 1 mean') V to `out`."""
    cdef Status status
    cdef Dense[floating] rows = dense[floating](X, mean)
    with nogil:
        status = c_times(rows, &V[0, 0], V.shape[1], &out[0, 0], n_threads)
    check(status)


def transposed(
    const floating[:, :] X,     # IN (n, d), in C or Fortran order
    const floating[::1] mean,   # IN (d), or None
    const floating[:, ::1] U,   # IN (n, k)
    floating[:, ::1] out,       # OUT (d, k)
    int n_threads,
):
    """Write (X - 1 mean')' U to `out`."""
    cdef Status status
    cdef Dense[floating] rows = dense[floating](X, mean)
    with nogil:
        status = c_transposed(rows, &U[0, 0], U.shape[1], &out[0, 0], n_threads)
    check(status)


def gram(
    const floating[:, :] X,     # IN (n, d), in C or Fortran order
    const floating[::1] mean,   # IN (d), or None
    const floating[:, ::1] V,   # IN (d, k)
    floating[:, ::1] out,       # OUT (d, k)
    int n_threads,
):
    """Write (X - 1 mean')' (X - 1 mean') V to `out`, in one pass over X."""
    cdef Status status
    cdef Dense[floating] rows = dense[floating](X, mean)
    with nogil:
        status = c_gram(rows, &V[0, 0], V.shape[1], &out[0, 0], n_threads)
    check(status)


cdef Sparse[floating] sparse(
    const floating[::1] data, const int32_t[::1] indices, const int32_t[::1] indptr, Py_ssize_t d
) noexcept:
    cdef Sparse[floating] rows
    rows.data = &data[0] if data.shape[0] else NULL
    rows.indices = &indices[0] if indices.shape[0] else NULL
    rows.indptr, rows.n, rows.d = &indptr[0], indptr.shape[0] - 1, d
    return rows


def sparse_times(
    const floating[::1] data,     # IN, of CSR
    const int32_t[::1] indices,   # IN
    const int32_t[::1] indptr,    # IN (n + 1)
    const floating[:, ::1] V,     # IN (d, k)
    const floating[::1] less,     # IN (k), or None
    bint add,
    floating[:, ::1] out,         # OUT (n, k); IN as well, if `add`
    int n_threads,
):
    """Write X V - 1 less' to `out`, or add it."""
    cdef Status status
    cdef Sparse[floating] rows = sparse[floating](data, indices, indptr, V.shape[0])
    cdef const floating* offset = &less[0] if less is not None else NULL
    with nogil:
        status = c_sparse_times(rows, &V[0, 0], V.shape[1], offset, add, &out[0, 0], n_threads)
    check(status)


def sparse_gram(
    const floating[::1] data,     # IN, of CSR
    const int32_t[::1] indices,   # IN
    const int32_t[::1] indptr,    # IN (n + 1)
    const floating[::1] v,        # IN (d)
    double less,
    floating[::1] out,            # OUT (d)
    int n_threads,
):
    """Write X' (X v - less) to `out`, in one pass over X."""
    cdef Status status
    cdef Sparse[floating] rows = sparse[floating](data, indices, indptr, v.shape[0])
    with nogil:
        status = c_sparse_gram(rows, &v[0], <floating>less, &out[0], n_threads)
    check(status)


def factorise(
    const double[:, ::1] G,       # IN (k, k), symmetric
    double[:, ::1] R,             # OUT, upper triangular
    double[:, ::1] inverse,       # OUT, of R
):
    """Write R of G = R'R and its inverse; return whether there is one."""
    cdef bint found
    with nogil:
        found = c_factorise(&G[0, 0], G.shape[0], &R[0, 0], &inverse[0, 0])
    return found
