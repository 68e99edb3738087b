"""What every compiled family needs from the runtime: the pool, and status codes as exceptions."""

cdef extern from "common/pool.h" namespace "fastml" nogil:
    cdef enum class Status(int):
        ok
        no_memory
        interrupted

    void bind_pool(void* pool) noexcept

cdef void* the_pool() noexcept
cdef int check(Status status) except -1
