"""Orders of rows as scikit-learn's trees leave them, for tests; see csrc/trees/replay.h."""

from libc.stdint cimport int32_t, uint8_t, uint32_t

cdef extern from "trees/replay.h" namespace "fastml" nogil:
    cdef cppclass ReplayScratch:
        ReplayScratch(Py_ssize_t) noexcept
        bint is_made "operator bool"() noexcept
    void c_replay_sort "fastml::replay_sort"(
        uint32_t*, int32_t*, Py_ssize_t, ReplayScratch&) noexcept
    Py_ssize_t c_replay_partition "fastml::replay_partition"(
        int32_t*, const uint8_t*, Py_ssize_t, ReplayScratch&) noexcept
    Py_ssize_t c_replay_missing_last "fastml::replay_missing_last"(
        int32_t*, const uint8_t*, Py_ssize_t, ReplayScratch&) noexcept


cdef ReplayScratch* scratch(Py_ssize_t m) except NULL:
    cdef ReplayScratch* made = new ReplayScratch(m)
    if not made.is_made():
        del made
        raise MemoryError
    return made


def replay_sort(uint32_t[::1] codes, int32_t[::1] rows):
    """Sort both by `codes`, in place."""
    cdef Py_ssize_t m = codes.shape[0]
    cdef ReplayScratch* memory = scratch(m)
    if m:
        c_replay_sort(&codes[0], &rows[0], m, memory[0])
    del memory


def replay_partition(int32_t[::1] rows, const uint8_t[::1] left):
    """Move the rows that go left to the front; their number."""
    cdef Py_ssize_t m = rows.shape[0], n_left = 0
    cdef ReplayScratch* memory = scratch(m)
    if m:
        n_left = c_replay_partition(&rows[0], &left[0], m, memory[0])
    del memory
    return n_left


def replay_missing_last(int32_t[::1] rows, const uint8_t[::1] present):
    """Move the rows without a value to the end; the number of the others."""
    cdef Py_ssize_t m = rows.shape[0], n_present = 0
    cdef ReplayScratch* memory = scratch(m)
    if m:
        n_present = c_replay_missing_last(&rows[0], &present[0], m, memory[0])
    del memory
    return n_present
