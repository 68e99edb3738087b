"""Symmetric eigenproblems. Arguments are already validated; see csrc/eigen/eigen.h."""

from cython cimport floating

from fastml._native.runtime cimport Status, bind_pool, check, the_pool

cdef extern from "eigen/eigen.h" namespace "fastml" nogil:
    Py_ssize_t eigen_work(Py_ssize_t) noexcept
    Status c_symmetric_eigen "fastml::symmetric_eigen"[T](
        const T*, Py_ssize_t, Py_ssize_t, T*, T*, T*, int) noexcept

bind_pool(the_pool())


def work_size(Py_ssize_t n):
    return eigen_work(n)


def symmetric_eigen(
    const floating[:, ::1] A,     # IN (n, n), on and above the diagonal
    floating[::1] values,         # OUT (n,)
    floating[:, ::1] vectors,     # OUT (k, n)
    floating[::1] work,           # scratch, (work_size(n),)
    int n_threads,
):
    """Write eigenvalues in descending order, and vectors of the k largest in rows."""
    cdef floating* rows = NULL
    cdef Status status
    if vectors.shape[0]:
        rows = &vectors[0, 0]
    with nogil:
        status = c_symmetric_eigen(&A[0, 0], A.shape[0], vectors.shape[0], &values[0], rows,
                                   &work[0], n_threads)
    check(status)
