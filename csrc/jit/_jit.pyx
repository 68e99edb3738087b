"""A compiled function of the user's over all pairs of rows; see csrc/jit/jit.h for the contract."""

from cython cimport floating

from fastml._native.runtime cimport Status, bind_pool, check, the_pool

cdef extern from "jit/jit.h" namespace "fastml" nogil:
    ctypedef Py_ssize_t (*RowFunction)(
        const void*, const void*, Py_ssize_t, Py_ssize_t, void*, const void*) noexcept

    cdef struct PairTask:
        RowFunction f
        const void* params
        const char* X
        const char* Y
        Py_ssize_t n, m, d, row_size
        bint symmetric

    Status c_pair_matrix "fastml::pair_matrix"[T](
        const PairTask&, T*, int, Py_ssize_t*) noexcept

bind_pool(the_pool())


def pair_matrix(
    floating[:, ::1] out,           # OUT (n, m)
    size_t function,                # address of a RowFunction
    const Py_ssize_t[::1] params,   # IN, what the function takes as its parameters
    const unsigned char[:, ::1] X,  # IN (n, bytes of a row)
    const unsigned char[:, ::1] Y,  # IN (m, bytes of a row)
    Py_ssize_t d,
    bint symmetric,
    int n_threads,
):
    """Return -1, or the index in `out` of a pair for which the function raised."""
    cdef Status status
    cdef Py_ssize_t failed
    cdef PairTask task
    task.f = <RowFunction><void*>function
    task.params = &params[0]
    task.X, task.Y = <const char*>&X[0, 0], <const char*>&Y[0, 0]
    task.n, task.m, task.d, task.row_size = X.shape[0], Y.shape[0], d, X.shape[1]
    task.symmetric = symmetric
    with nogil:
        status = c_pair_matrix(task, &out[0, 0], n_threads, &failed)
    check(status)
    return failed
