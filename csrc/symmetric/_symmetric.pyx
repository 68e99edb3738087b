"""Products with symmetric matrices. See csrc/symmetric/symmetric.h for the contract."""

from cython cimport floating
from libcpp cimport bool as cbool

from fastml._native.runtime cimport Status, bind_pool, check, the_pool

cdef extern from "symmetric/symmetric.h" namespace "fastml" nogil:
    Status c_symmetric_times "fastml::symmetric_times"[T](
        const T*, Py_ssize_t, const T*, T*, int) noexcept
    Status c_centred_times "fastml::centred_times"[T](
        const T*, Py_ssize_t, const T*, const T*, T*, int) noexcept
    Status c_centre "fastml::centre"[T](
        T*, Py_ssize_t, const T*, const T*, T, int) noexcept
    Status c_project_out "fastml::project_out"[T](
        const T*, Py_ssize_t, Py_ssize_t, T*, double*, int) noexcept
    Status c_orthonormalise "fastml::orthonormalise"[T](
        const T*, Py_ssize_t, Py_ssize_t, T*, Py_ssize_t, double*, cbool*, int) noexcept
    Status c_combine "fastml::combine"[T](
        const T*, Py_ssize_t, Py_ssize_t, const double*, Py_ssize_t, T*, int) noexcept

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


def centred_times(
    const floating[:, ::1] K,   # IN (n, n), on and below the diagonal
    const floating[::1] means,  # IN (n,), of K's columns
    const floating[:, ::1] V,   # IN (n, 64 bytes)
    floating[:, ::1] out,       # OUT like V
    int n_threads,
):
    """Write J K J V to `out`, J = 1 - 11'/n."""
    cdef Status status
    with nogil:
        status = c_centred_times(&K[0, 0], K.shape[0], &means[0], &V[0, 0], &out[0, 0], n_threads)
    check(status)


def centre(
    floating[:, ::1] K,             # IN, OUT (n, n), n >= 1
    const floating[::1] columns,    # IN (n,), means of K's columns
    const floating[::1] rows,       # IN (n,), of its rows
    double every,                   # IN, of all
    int n_threads,
):
    """Make J K J of K, J = 1 - 11'/n."""
    cdef Status status
    with nogil:
        status = c_centre(&K[0, 0], K.shape[0], &columns[0], &rows[0], <floating>every, n_threads)
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


def orthonormalise(
    const floating[:, :, ::1] V,    # IN (count, n, 64 bytes)
    floating[:, :, ::1] W,          # IN, OUT (s, n, 64 bytes), n >= 1
    double[:, ::1] R,               # OUT (s * width, s * width)
    int n_threads,
):
    """Write Q and R to W and R, if W's columns are independent; tell whether they are."""
    cdef const floating* vectors = &V[0, 0, 0] if V.shape[0] else NULL
    cdef cbool independent = False
    cdef Status status
    with nogil:
        status = c_orthonormalise(vectors, V.shape[0], W.shape[1], &W[0, 0, 0], W.shape[0],
                                  &R[0, 0], &independent, n_threads)
    check(status)
    return independent


def combine(
    const floating[:, :, ::1] V,    # IN (count, n, 64 bytes), count >= 1
    const double[:, ::1] S,         # IN (count * width, s * width)
    floating[:, :, ::1] out,        # OUT (s, n, 64 bytes)
    int n_threads,
):
    """Write the vectors of V times S to `out`."""
    cdef Status status
    with nogil:
        status = c_combine(&V[0, 0, 0], V.shape[0], V.shape[1], &S[0, 0], out.shape[0],
                           &out[0, 0, 0], n_threads)
    check(status)
