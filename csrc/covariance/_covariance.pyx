"""Products of columns and of rows; arguments are validated. See csrc/covariance/covariance.h."""

from cython cimport floating
from libc.stdint cimport int32_t

from fastml._native.runtime cimport Status, bind_pool, check, the_pool

cdef extern from "common/rows.h" namespace "fastml" nogil:
    cdef cppclass Rows[T]:
        const T* data
        const int32_t* indices
        const int32_t* indptr
        Py_ssize_t n, d

cdef extern from "covariance/covariance.h" namespace "fastml" nogil:
    cdef cppclass Sample[T]:
        const T* data
        Py_ssize_t n, d, stride
        bint by_columns

    Status c_products "fastml::products"[P, T](
        const Sample[T]&, const P*, bint, bint, double*, double*, int) noexcept
    Status c_sparse_products "fastml::sparse_products"[T](
        const Rows[T]&, double*, int) noexcept

ctypedef fused wide:
    float
    double

bind_pool(the_pool())


def products(
    const floating[:, :] X,    # IN, rows or columns in one piece
    const wide[::1] shift,     # IN, as wide as X or wider
    bint of_rows,
    bint centred,              # columns less their means, wherever shift is
    double[::1] sums,          # OUT
    double[:, ::1] out,        # OUT
    int n_threads,
):
    """(X - shift)ᵀ(X - shift), or with `of_rows` (X - shift)(X - shift)ᵀ, and the sums."""
    cdef Sample[floating] sample
    cdef Py_ssize_t size = sizeof(floating)
    cdef Status status
    sample.data = &X[0, 0]
    sample.n, sample.d = X.shape[0], X.shape[1]
    sample.by_columns = X.strides[1] != size and X.shape[1] > 1
    sample.stride = X.strides[1 if sample.by_columns else 0] // size
    if floating is double and wide is float:
        raise TypeError("shift is narrower than X")
    else:
        with nogil:
            status = c_products(sample, &shift[0], of_rows, centred, &sums[0], &out[0, 0],
                                n_threads)
        check(status)


def sparse_products(
    const floating[::1] data,     # IN, X as CSR
    const int32_t[::1] indices,   # IN
    const int32_t[::1] indptr,    # IN
    double[:, ::1] out,           # OUT
    int n_threads,
):
    """XᵀX."""
    cdef Rows[floating] X
    cdef Status status
    X.n, X.d = indptr.shape[0] - 1, out.shape[0]
    X.indptr = &indptr[0]
    if data.shape[0] > 0:
        X.data, X.indices = &data[0], &indices[0]
    with nogil:
        status = c_sparse_products(X, &out[0, 0], n_threads)
    check(status)
