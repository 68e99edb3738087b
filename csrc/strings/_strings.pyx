"""Kernels of strings. Arguments are already validated; see csrc/strings/strings.h."""

from libc.stdint cimport int64_t, uint32_t

from fastml._native.runtime cimport Status, bind_pool, check, the_pool

cdef extern from "strings/strings.h" namespace "fastml" nogil:
    cdef struct Strings:
        const uint32_t* text
        const int64_t* begin
        Py_ssize_t n

    Status c_subsequences "fastml::subsequences"(
        const Strings&, const Strings&, Py_ssize_t, double, bint, double*, int) noexcept

bind_pool(the_pool())


def subsequences(
    const uint32_t[::1] X_text,  # IN, not empty
    const int64_t[::1] X_begin,  # IN (n + 1)
    const uint32_t[::1] Y_text,  # IN, not empty
    const int64_t[::1] Y_begin,  # IN (m + 1)
    Py_ssize_t length,
    double decay,
    bint symmetric,
    double[:, ::1] out,          # OUT (n, m)
    int n_threads,
):
    cdef Status status
    cdef Strings X, Y
    X.text, X.begin, X.n = &X_text[0], &X_begin[0], X_begin.shape[0] - 1
    Y.text, Y.begin, Y.n = &Y_text[0], &Y_begin[0], Y_begin.shape[0] - 1
    with nogil:
        status = c_subsequences(X, Y, length, decay, symmetric, &out[0, 0], n_threads)
    check(status)
