"""Scaling kernels. Arguments are already validated; see scaling.h and sparse.h in csrc/scaling."""

from cython cimport floating
from libc.stdint cimport int32_t, int64_t
from libcpp cimport bool as bool_t

from fastml._native.runtime cimport Status, bind_pool, check, the_pool

cdef extern from "scaling/scaling.h" namespace "fastml" nogil:
    cdef cppclass Matrix[T]:
        const T* data
        Py_ssize_t n
        Py_ssize_t d
        Py_ssize_t stride
        bool_t by_columns

    cdef enum class Norm(int):
        l1
        l2
        largest

    cdef enum class Form(int):
        standardize
        stretch

    cdef cppclass Affine[T, P]:
        Form form
        const P* shift
        const P* scale
        T floor
        T ceiling

    Status c_moments "fastml::moments"[T](
        const Matrix[T]&, const T*, double*, double*, double*, bool_t*, int) noexcept
    Status c_extremes "fastml::extremes"[T](const Matrix[T]&, T*, T*, bool_t*, int) noexcept
    Status c_normalize "fastml::normalize"[T](
        const Matrix[T]&, Norm, T, T*, T*, Py_ssize_t, bool_t*, int) noexcept
    Status c_apply "fastml::apply"[T, P](
        const Matrix[T]&, const Affine[T, P]&, T*, Py_ssize_t, bool_t*, int) noexcept
    Status c_order_statistics "fastml::order_statistics"[T](
        const Matrix[T]&, const double*, Py_ssize_t, T*, T*, Py_ssize_t*, bool_t*, int) noexcept

cdef extern from "scaling/sparse.h" namespace "fastml" nogil:
    cdef cppclass Sparsity[I]:
        const I* indices
        const I* indptr
        Py_ssize_t lines
        Py_ssize_t across
        bool_t by_columns

    Status c_sparse_moments "fastml::moments"[T, I](
        const T*, const Sparsity[I]&, const T*, double*, double*, double*, bool_t*, int) noexcept
    Status c_largest "fastml::largest"[T, I](
        const T*, const Sparsity[I]&, T*, double*, int) noexcept
    Status c_scale_columns "fastml::scale_columns"[T, I](
        const T*, const Sparsity[I]&, const double*, T, T, T*, bool_t*, int) noexcept
    Status c_normalize_lines "fastml::normalize_lines"[T, I](
        const T*, const Sparsity[I]&, Norm, T*, T*, bool_t*, int) noexcept
    Status c_sparse_order_statistics "fastml::order_statistics"[T, I](
        const T*, const Sparsity[I]&, const double*, Py_ssize_t, T*, T*, Py_ssize_t*, int) noexcept

ctypedef fused index:
    int32_t
    int64_t

bind_pool(the_pool())

cdef dict NORMS = {"l1": 0, "l2": 1, "max": 2}


cdef Matrix[floating] matrix(const floating[:, :] X) except *:
    cdef Matrix[floating] m
    cdef Py_ssize_t size = sizeof(floating), row = X.strides[0], column = X.strides[1]
    m.data, m.n, m.d = &X[0, 0], X.shape[0], X.shape[1]
    # With one row or column its stride means nothing.
    m.by_columns = not (column == size or m.d == 1)
    if m.by_columns:
        if row != size and m.n > 1:
            raise ValueError("neither rows nor columns are contiguous")
        m.stride = column // size
    else:
        m.stride = row // size if m.n > 1 else m.d
    return m


cdef Sparsity[index] sparsity(const index[::1] indices, const index[::1] indptr, Py_ssize_t across,
                              bint by_columns) noexcept:
    cdef Sparsity[index] s
    s.indices = &indices[0] if indices.shape[0] else NULL
    s.indptr, s.lines, s.across, s.by_columns = &indptr[0], indptr.shape[0] - 1, across, by_columns
    return s


def moments(
    const floating[:, :] X,  # IN
    const floating[::1] w,   # IN, or None
    double[::1] count,       # OUT
    double[::1] mean,        # OUT
    double[::1] square,      # OUT
    int n_threads,
):
    """Count (or weight), mean and sum of squared deviations of columns; whether X has an infinity.
    """
    cdef Matrix[floating] m = matrix(X)
    cdef const floating* pw = &w[0] if w is not None else NULL
    cdef bool_t infinite = False
    cdef Status status
    with nogil:
        status = c_moments(m, pw, &count[0], &mean[0], &square[0], &infinite, n_threads)
    check(status)
    return infinite


def extremes(
    const floating[:, :] X,  # IN
    floating[::1] least,     # OUT
    floating[::1] largest,   # OUT
    int n_threads,
):
    """Least and largest value of each column; whether X has an infinity."""
    cdef Matrix[floating] m = matrix(X)
    cdef bool_t infinite = False
    cdef Status status
    with nogil:
        status = c_extremes(m, &least[0], &largest[0], &infinite, n_threads)
    check(status)
    return infinite


def apply(
    const floating[:, :] X,  # IN
    bint stretch,            # X * scale + shift, else (X - shift) / scale
    shift,                   # IN, of X's dtype or float64, as is scale
    scale,                   # IN
    limits,                  # floor and ceiling, or None
    floating[:, :] out,      # OUT, in X's layout; may be X
    int n_threads,
):
    """Map each column; return whether X has an infinity."""
    cdef const double[::1] shift64, scale64
    cdef const float[::1] shift32, scale32
    cdef Matrix[floating] m = matrix(X)
    cdef Matrix[floating] to = matrix(out)
    cdef Affine[floating, double] f
    cdef Affine[float, float] g
    cdef bool_t infinite = False
    cdef Status status
    if floating is float and shift.itemsize == 4:
        shift32, scale32 = shift, scale
        g.form = Form.stretch if stretch else Form.standardize
        g.shift, g.scale = &shift32[0], &scale32[0]
        g.floor, g.ceiling = limits or (-float("inf"), float("inf"))
        with nogil:
            status = c_apply(m, g, <float*>&out[0, 0], to.stride, &infinite, n_threads)
    else:
        shift64, scale64 = shift, scale
        f.form = Form.stretch if stretch else Form.standardize
        f.shift, f.scale = &shift64[0], &scale64[0]
        f.floor, f.ceiling = limits or (-float("inf"), float("inf"))
        with nogil:
            status = c_apply(m, f, &out[0, 0], to.stride, &infinite, n_threads)
    check(status)
    return infinite


def normalize(
    const floating[:, :] X,  # IN
    kind,                    # "l1", "l2" or "max"
    floating tiny,
    floating[::1] norm,      # OUT
    floating[:, :] out,      # OUT, in X's layout; may be X
    int n_threads,
):
    """Divide rows by their norms; return whether those are finite."""
    cdef Matrix[floating] m = matrix(X)
    cdef Matrix[floating] to = matrix(out)
    cdef Norm norm_kind = <Norm><int>NORMS[kind]
    cdef bool_t finite = False
    cdef Status status
    with nogil:
        status = c_normalize(m, norm_kind, tiny, &norm[0], &out[0, 0], to.stride, &finite,
                             n_threads)
    check(status)
    return finite


def order_statistics(
    const floating[:, :] X,  # IN
    const double[::1] q,     # IN, ascending
    floating[:, ::1] below,  # OUT
    floating[:, ::1] above,  # OUT
    Py_ssize_t[::1] count,   # OUT
    int n_threads,
):
    """The values around quantiles of columns; whether X has an infinity."""
    cdef Matrix[floating] m = matrix(X)
    cdef bool_t infinite = False
    cdef Status status
    with nogil:
        status = c_order_statistics(m, &q[0], q.shape[0], &below[0, 0], &above[0, 0], &count[0],
                                    &infinite, n_threads)
    check(status)
    return infinite


def sparse_moments(
    const floating[::1] data,   # IN
    const index[::1] indices,   # IN
    const index[::1] indptr,    # IN
    Py_ssize_t across,
    bint by_columns,
    const floating[::1] w,      # IN, or None
    double[::1] count,          # OUT
    double[::1] mean,           # OUT
    double[::1] square,         # OUT
    int n_threads,
):
    """As `moments`, of a sparse matrix."""
    cdef Sparsity[index] s = sparsity(indices, indptr, across, by_columns)
    cdef const floating* values = &data[0] if data.shape[0] else NULL
    cdef const floating* pw = &w[0] if w is not None else NULL
    cdef bool_t infinite = False
    cdef Status status
    with nogil:
        status = c_sparse_moments(values, s, pw, &count[0], &mean[0], &square[0], &infinite,
                                  n_threads)
    check(status)
    return infinite


def sparse_largest(
    const floating[::1] data,   # IN
    const index[::1] indices,   # IN
    const index[::1] indptr,    # IN
    Py_ssize_t across,
    bint by_columns,
    floating[::1] largest,      # OUT
    double[::1] missing,        # OUT
    int n_threads,
):
    """The largest absolute value of each column, and its number of NaN."""
    cdef Sparsity[index] s = sparsity(indices, indptr, across, by_columns)
    cdef const floating* values = &data[0] if data.shape[0] else NULL
    cdef Status status
    with nogil:
        status = c_largest(values, s, &largest[0], &missing[0], n_threads)
    check(status)


def sparse_scale(
    const floating[::1] data,   # IN
    const index[::1] indices,   # IN
    const index[::1] indptr,    # IN
    Py_ssize_t across,
    bint by_columns,
    const double[::1] scale,    # IN
    limits,                     # floor and ceiling, or None
    floating[::1] out,          # OUT, may be data
    int n_threads,
):
    """Multiply each column; return whether there is an infinity."""
    cdef Sparsity[index] s = sparsity(indices, indptr, across, by_columns)
    cdef floating floor, ceiling
    cdef bool_t infinite = False
    cdef Status status
    floor, ceiling = limits or (-float("inf"), float("inf"))
    if data.shape[0] == 0:
        return False
    with nogil:
        status = c_scale_columns(&data[0], s, &scale[0], floor, ceiling, &out[0], &infinite,
                                 n_threads)
    check(status)
    return infinite


def sparse_normalize(
    const floating[::1] data,   # IN
    const index[::1] indices,   # IN
    const index[::1] indptr,    # IN
    Py_ssize_t across,
    kind,                       # "l1", "l2" or "max"
    floating[::1] norm,         # OUT
    floating[::1] out,          # OUT, may be data
    int n_threads,
):
    """Divide the lines of a sparse matrix by their norms; return whether those are finite."""
    cdef Sparsity[index] s = sparsity(indices, indptr, across, False)
    cdef Norm norm_kind = <Norm><int>NORMS[kind]
    cdef const floating* values = &data[0] if data.shape[0] else NULL
    cdef floating* to = &out[0] if data.shape[0] else NULL
    cdef bool_t finite = False
    cdef Status status
    with nogil:
        status = c_normalize_lines(values, s, norm_kind, &norm[0], to, &finite, n_threads)
    check(status)
    return finite


def sparse_order_statistics(
    const floating[::1] data,   # IN
    const index[::1] indices,   # IN
    const index[::1] indptr,    # IN, of columns
    Py_ssize_t across,
    const double[::1] q,        # IN, ascending
    floating[:, ::1] below,     # OUT
    floating[:, ::1] above,     # OUT
    Py_ssize_t[::1] count,      # OUT
    int n_threads,
):
    """As `order_statistics`, of a CSC matrix without infinities."""
    cdef Sparsity[index] s = sparsity(indices, indptr, across, True)
    cdef const floating* values = &data[0] if data.shape[0] else NULL
    cdef Status status
    with nogil:
        status = c_sparse_order_statistics(values, s, &q[0], q.shape[0], &below[0, 0],
                                           &above[0, 0], &count[0], n_threads)
    check(status)
