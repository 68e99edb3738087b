"""Products with symmetric matrices. See csrc/symmetric/symmetric.h for the contract."""

from cython cimport floating

from fastml._native.runtime cimport Status, bind_pool, check, the_pool

cdef extern from "symmetric/symmetric.h" namespace "fastml" nogil:
    Status c_symmetric_times "fastml::symmetric_times"[T](
        const T*, Py_ssize_t, const T*, T*, int) noexcept
    Status c_project_out "fastml::project_out"[T](
        const T*, Py_ssize_t, Py_ssize_t, T*, double*, int) noexcept

bind_pool(the_pool())


def symmetric_times(
    const floating[:, ::1] K,   # IN (n, n), on and below the diagonal
    const floating[:, ::1] V,   # IN (n, 64 bytes)
    floating[:, ::1] out,       # OUT like V
    int n_threads,
):
    """Write K V to `out`."""
    cdef Status status
    with nogil:
        status = c_symmetric_times(&K[0, 0], K.shape[0], &V[0, 0], &out[0, 0], n_threads)
    check(status)


def project_out(
    const floating[:, :, ::1] V,    # IN (count, n, 64 bytes), count >= 1
    floating[:, ::1] W,             # IN, OUT (n, 64 bytes)
    double[:, ::1] C,               # OUT (count * width, width)
    int n_threads,
):
    """Write Vᵀ W to C, and take V C from W."""
    cdef Status status
    with nogil:
        status = c_project_out(&V[0, 0, 0], V.shape[0], V.shape[1], &W[0, 0], &C[0, 0], n_threads)
    check(status)
