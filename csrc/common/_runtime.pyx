"""The runtime under every kernel: instruction set, thread pool, interrupts."""

import os

cdef extern from "Python.h":
    # Not cpython.exc's: that one, declared `except -1`, would print what the handler raised and
    # forget it. Here it stays set until the kernel has returned.
    int PyErr_CheckSignals() noexcept
    void* PyErr_Occurred() noexcept

cdef extern from "common/runtime.h" namespace "fastml" nogil:
    cdef enum class Isa(int):
        baseline
        avx2
        avx512

    Isa c_isa "fastml::isa"() noexcept
    void* c_the_pool "fastml::the_pool"() noexcept
    void start_pool(int (*check)() noexcept nogil) noexcept

cdef extern from "common/runtime.h" nogil:
    int fastml_get_thread_limit() noexcept
    void fastml_set_thread_limit(int limit) noexcept


cdef int _check_signals() noexcept nogil:
    with gil:
        return PyErr_CheckSignals()


cdef void* the_pool() noexcept:
    return c_the_pool()


cdef int check(Status status) except -1:
    if status == Status.no_memory:
        raise MemoryError("fastml: a kernel could not allocate its scratch memory")
    if status == Status.interrupted:
        if not PyErr_Occurred():
            raise KeyboardInterrupt
        return -1
    return 0


def isa():
    """The instruction set in use: "baseline", "avx2" or "avx512"."""
    cdef Isa chosen = c_isa()
    if chosen == Isa.avx512:
        return "avx512"
    return "avx2" if chosen == Isa.avx2 else "baseline"


def thread_limit():
    """The limit set through threadpoolctl or `set_thread_limit`; 0 when there is none."""
    return fastml_get_thread_limit()


def set_thread_limit(int limit):
    fastml_set_thread_limit(limit)


_cap = os.environ.get("FASTML_ISA")
if _cap not in (None, "baseline", "avx2", "avx512"):
    raise ImportError(
        f"FASTML_ISA={_cap!r} is not an instruction set: use baseline, avx2 or avx512, or unset it"
    )
start_pool(_check_signals)
bind_pool(the_pool())
