"""Symmetric eigenproblems. Arguments are already validated; see csrc/eigen/eigen.h."""

from cython cimport floating
from libcpp cimport bool

from fastml._native.runtime cimport Status, bind_pool, check, the_pool

cdef extern from "eigen/eigen.h" namespace "fastml" nogil:
    Py_ssize_t eigen_work(Py_ssize_t) noexcept
    Status c_tridiagonal_form "fastml::tridiagonal_form"[T](
        const T*, Py_ssize_t, T*, int) noexcept
    Py_ssize_t c_count_below "fastml::count_below"[T](T, Py_ssize_t, const T*) noexcept
    Status c_eigenpairs "fastml::eigenpairs"[T, U](
        Py_ssize_t, Py_ssize_t, T*, U*, T*, int) noexcept
    Status c_leading_pairs "fastml::leading_pairs"[T, U](
        Py_ssize_t, Py_ssize_t, T*, U*, T*, int) noexcept
    Status c_few_pairs "fastml::few_pairs"[T](
        const T*, Py_ssize_t, Py_ssize_t, T, T*, T*, bool*, int) noexcept

bind_pool(the_pool())

ctypedef fused precision:
    float
    double


def work_size(Py_ssize_t n):
    return eigen_work(n)


def tridiagonal_form(
    const floating[:, ::1] A,     # IN (n, n), on and above the diagonal
    floating[::1] work,           # OUT (work_size(n),)
    int n_threads,
):
    """Leave the tridiagonal form of A in `work`."""
    cdef Status status
    with nogil:
        status = c_tridiagonal_form(&A[0, 0], A.shape[0], &work[0], n_threads)
    check(status)


def count_below(double part, Py_ssize_t n, const floating[::1] work):
    """How many eigenvalues are below `part` times the greatest."""
    cdef Py_ssize_t count
    with nogil:
        count = c_count_below(<floating>part, n, &work[0])
    return count


def eigenpairs(
    floating[::1] values,         # OUT (n,)
    precision[:, ::1] vectors,    # OUT (k, n), float or as the others
    floating[::1] work,           # IN, OUT, as tridiagonal_form left it
    int n_threads,
):
    """Write eigenvalues in descending order, and vectors of the k largest in rows."""
    cdef precision* rows = NULL
    cdef Status status
    if floating is float and precision is double:
        raise TypeError("vectors in double of a problem in single precision")
    else:
        if vectors.shape[0]:
            rows = &vectors[0, 0]
        with nogil:
            status = c_eigenpairs(values.shape[0], vectors.shape[0], &values[0], rows, &work[0],
                                  n_threads)
        check(status)


def leading_pairs(
    floating[::1] values,         # OUT (k,), k > 0
    precision[:, ::1] vectors,    # OUT (k, n), float or as the others
    floating[::1] work,           # IN, OUT, as tridiagonal_form left it
    int n_threads,
):
    """Write the k largest eigenvalues in descending order, and their vectors in rows."""
    cdef Status status
    if floating is float and precision is double:
        raise TypeError("vectors in double of a problem in single precision")
    else:
        with nogil:
            status = c_leading_pairs(vectors.shape[1], vectors.shape[0], &values[0], &vectors[0, 0],
                                     &work[0], n_threads)
        check(status)


def few_pairs(
    const floating[:, ::1] A,     # IN (n, n), on and above the diagonal
    double tol,
    floating[::1] values,         # OUT (k,), k > 0
    floating[:, ::1] vectors,     # OUT (k, n)
    int n_threads,
):
    """Whether the k largest eigenpairs were found by Lanczos' method, and written."""
    cdef Status status
    cdef bool found
    with nogil:
        status = c_few_pairs(&A[0, 0], A.shape[0], values.shape[0], <floating>tol, &values[0],
                             &vectors[0, 0], &found, n_threads)
    check(status)
    return found
