"""Cholesky's factorisation of a symmetric matrix in place, by panels; see csrc/cholesky/cholesky.h.

Python is asked between panels: for Ctrl-C, and to show progress. BLAS and LAPACK are SciPy's.
"""

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from cython cimport floating

from scipy.linalg import cython_blas, cython_lapack

from fastml._native.runtime cimport Status, bind_pool, check, the_pool

cdef extern from "cholesky/cholesky.h" namespace "fastml" nogil:
    Status c_scaled_mirror "fastml::scaled_mirror"[T](
        T*, Py_ssize_t, const T*, const T*, T, T, int) noexcept

bind_pool(the_pool())

ctypedef void (*Gemm)(char*, char*, int*, int*, int*, void*, void*, int*, void*, int*, void*,
                      void*, int*) noexcept
ctypedef void (*Syrk)(char*, char*, int*, int*, void*, void*, int*, void*, void*,
                      int*) noexcept
ctypedef void (*Trsm)(char*, char*, char*, char*, int*, int*, void*, void*, int*, void*,
                      int*) noexcept
ctypedef void (*Potrf)(char*, int*, void*, int*, int*) noexcept


# Looked up when the module is imported, so that SciPy is not needed to build it.
cdef void* routine(module, str name) except NULL:
    capsule = module.__pyx_capi__[name]
    return PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))


cdef void* gemms[2]
cdef void* syrks[2]
cdef void* trsms[2]
cdef void* potrfs[2]
for k, kind in enumerate("sd"):
    gemms[k] = routine(cython_blas, kind + "gemm")
    syrks[k] = routine(cython_blas, kind + "syrk")
    trsms[k] = routine(cython_blas, kind + "trsm")
    potrfs[k] = routine(cython_lapack, kind + "potrf")


def factorise_panel(floating[:, ::1] A, int begin, int width):
    """Rows [begin, begin + width) of the factor R of A = RᵀR, the rows before being those of R.

    Reads and writes entries on the diagonal and to its right alone. Returns whether the panel's
    pivots are positive; where one is not, the panel holds nothing of use.
    """
    # In the order of columns, as BLAS reads it, this is the factor L = Rᵀ, column by column.
    cdef int n = A.shape[0], rest = n - begin - width, info = 0
    cdef int kind = 0 if floating is float else 1
    cdef floating less = -1, one = 1
    cdef floating* diagonal = &A[begin, begin]
    cdef floating* before = &A[0, begin]
    if begin < 0 or width < 1 or rest < 0 or A.shape[1] != n:
        raise ValueError("there is no such panel")
    # With the GIL, so that no thread of Python's can fork: OpenBLAS does not survive that.
    if begin > 0:
        (<Syrk>syrks[kind])(b"L", b"N", &width, &begin, &less, before, &n, &one, diagonal, &n)
    if begin > 0 and rest > 0:
        (<Gemm>gemms[kind])(b"N", b"T", &rest, &width, &begin, &less, before + width, &n,
                            before, &n, &one, diagonal + width, &n)
    (<Potrf>potrfs[kind])(b"L", &width, diagonal, &n, &info)
    if info == 0 and rest > 0:
        (<Trsm>trsms[kind])(b"R", b"L", b"T", b"N", &rest, &width, &one, diagonal, &n,
                            diagonal + width, &n)
    return info == 0


def scaled_mirror(
    floating[:, ::1] A,             # IN below the diagonal, OUT above and on it
    const floating[::1] diagonal,   # IN
    const floating[::1] scale,      # IN
    double constant,
    double shift,
    int n_threads,
):
    """S (K + constant) S + shift above the diagonal, from K below it."""
    cdef Status status
    with nogil:
        status = c_scaled_mirror(&A[0, 0], A.shape[0], &diagonal[0], &scale[0],
                                 <floating>constant, <floating>shift, n_threads)
    check(status)
