"""The tile GEMM on its own. Arguments are already validated; see csrc/gemm/gemm.h."""

from cython cimport floating

from fastml._native.runtime cimport Status, bind_pool, check, the_pool

cdef extern from "gemm/gemm.h" namespace "fastml" nogil:
    Status c_gemm "fastml::gemm"[T](
        const T*, const T*, Py_ssize_t, Py_ssize_t, Py_ssize_t, const T*, T*, int) noexcept

bind_pool(the_pool())


def gemm(
    const floating[:, ::1] A,  # IN
    const floating[:, ::1] B,  # IN
    floating[:, ::1] out,      # OUT
    int n_threads,
    const floating[::1] bias=None,  # IN
):
    """Write A·Bᵀ + bias to `out`."""
    cdef const floating* start = NULL
    cdef Status status
    if bias is not None:
        start = &bias[0]
    with nogil:
        status = c_gemm(&A[0, 0], &B[0, 0], A.shape[0], B.shape[0], A.shape[1], start,
                        &out[0, 0], n_threads)
    check(status)
