"""Random features. Arguments are already validated; see csrc/sketch/sketch.h."""

from cython cimport floating

from fastml._native.runtime cimport Status, bind_pool, check, the_pool

cdef extern from "sketch/sketch.h" namespace "fastml" nogil:
    Status c_cosine_features "fastml::cosine_features"[T](
        const T*, const T*, const T*, T, Py_ssize_t, Py_ssize_t, Py_ssize_t, T*, int) noexcept
    Status c_cosines "fastml::cosines"[T](
        const T*, T, Py_ssize_t, Py_ssize_t, T*, int) noexcept
    Status c_chi2_features "fastml::chi2_features"[T](
        const T*, Py_ssize_t, Py_ssize_t, const T*, Py_ssize_t, T, T*, int) noexcept

bind_pool(the_pool())


def cosine_features(
    const floating[:, ::1] X,     # IN (n, d)
    const floating[:, ::1] W,     # IN (m, d)
    const floating[::1] offset,   # IN (m)
    double scale,
    floating[:, ::1] out,         # OUT (n, m)
    int n_threads,
):
    """Write scale cos(X Wᵀ + offset) to `out`."""
    cdef Status status
    with nogil:
        status = c_cosine_features(&X[0, 0], &W[0, 0], &offset[0], <floating>scale, X.shape[0],
                                   W.shape[0], X.shape[1], &out[0, 0], n_threads)
    check(status)


def cosines(
    floating[:, ::1] out,         # IN, OUT (n, m)
    const floating[::1] offset,   # IN (m)
    double scale,
    int n_threads,
):
    """Replace x in `out` by scale cos(x + offset)."""
    cdef Status status
    with nogil:
        status = c_cosines(&offset[0], <floating>scale, out.shape[0], out.shape[1], &out[0, 0],
                           n_threads)
    check(status)


def chi2_features(
    const floating[:, ::1] X,       # IN (n, d), not negative
    const floating[::1] factors,    # IN (steps)
    double interval,
    floating[:, ::1] out,           # OUT (n, (2 steps - 1) d)
    int n_threads,
):
    """Write square roots of X, and these times cosines and sines of multiples of its logarithm."""
    cdef Status status
    with nogil:
        status = c_chi2_features(&X[0, 0], X.shape[0], X.shape[1], &factors[0], factors.shape[0],
                                 <floating>interval, &out[0, 0], n_threads)
    check(status)
