"""Random projections. Arguments are already validated; see csrc/projection/projection.h."""

from cpython.pycapsule cimport PyCapsule_GetPointer
from cython cimport floating
from libc.stdint cimport int32_t, uint32_t
from libcpp cimport bool as bool_t

from fastml._native.rows cimport CRows, Rows, of
from fastml._native.runtime cimport Status, bind_pool, check, the_pool

cdef extern from "projection/projection.h" namespace "fastml" nogil:
    Status c_project "fastml::project"[T](
        const CRows[T]&, const CRows[T]&, bool_t, T*, int) noexcept
    Status c_project_sparse "fastml::project_sparse"[T](
        const CRows[T]&, const CRows[T]&, T*, int) noexcept

bind_pool(the_pool())


# NumPy's interface of generators of random bits, as far as it is needed.
cdef struct Bits:
    void* state
    void* next_uint64
    uint32_t (*next_uint32)(void*) noexcept nogil


def project(Rows X, Rows S, bint transposed, floating[:, ::1] out, int n_threads):
    """Write X Sᵀ to `out`, or its transpose, S Xᵀ; X is dense and S is in CSR."""
    cdef CRows[floating] x = of[floating](X, NULL)
    cdef CRows[floating] s = of[floating](S, NULL)
    cdef Status status
    with nogil:
        status = c_project(x, s, transposed, &out[0, 0], n_threads)
    check(status)


def project_sparse(Rows X, Rows Y, floating[:, ::1] out, int n_threads):
    """Write X Y to `out`; both are in CSR."""
    cdef CRows[floating] x = of[floating](X, NULL)
    cdef CRows[floating] y = of[floating](Y, NULL)
    cdef Status status
    with nogil:
        status = c_project_sparse(x, y, &out[0, 0], n_threads)
    check(status)


def choose(
    bits,                  # the capsule of a bit generator, which is locked
    int32_t n,
    int32_t[::1] chosen,   # OUT, k <= n
    int32_t[::1] pool,     # scratch (n), zeros before and after
):
    """Choose k of [0, n) as scikit-learn's `sample_without_replacement` does, by the same draws."""
    cdef Bits* source = <Bits*>PyCapsule_GetPointer(bits, b"BitGenerator")
    cdef int32_t k = <int32_t>chosen.shape[0]
    if k == 0 and n > 0:
        return
    cdef double ratio = <double>k / n if n else 1.0
    with nogil:
        if 0.01 < ratio < 0.99:
            first_of_shuffled(source, n, k, &pool[0], &chosen[0])
        elif ratio < 0.2:
            while_new(source, n, k, &pool[0], &chosen[0])
        else:
            reservoir(source, n, k, &chosen[0])


cdef inline uint32_t mask_of(uint32_t most) noexcept nogil:
    most |= most >> 1
    most |= most >> 2
    most |= most >> 4
    most |= most >> 8
    return most | most >> 16


cdef inline uint32_t draw(Bits* source, uint32_t most, uint32_t mask) noexcept nogil:
    cdef uint32_t value = source.next_uint32(source.state) & mask
    while value > most:
        value = source.next_uint32(source.state) & mask
    return value


# Of draws that are above i a shuffle takes no notice. Whether one is cannot be predicted: here it
# exchanges an element with itself.
cdef void first_of_shuffled(Bits* source, int32_t n, int32_t k, int32_t* pool,
                            int32_t* chosen) noexcept nogil:
    cdef uint32_t i, j, value, mask
    cdef int32_t kept
    for i in range(<uint32_t>n):
        pool[i] = <int32_t>i
    i = n - 1
    while i > 0:
        mask = mask_of(i)
        while i > mask >> 1:
            value = source.next_uint32(source.state) & mask
            j = value if value <= i else i
            kept = pool[i]
            pool[i] = pool[j]
            pool[j] = kept
            i -= value <= i
    for i in range(<uint32_t>k):
        chosen[i] = pool[i]
    for i in range(<uint32_t>n):
        pool[i] = 0


cdef void while_new(Bits* source, int32_t n, int32_t k, int32_t* taken,
                    int32_t* chosen) noexcept nogil:
    cdef uint32_t most = n - 1, mask = mask_of(n - 1), value
    cdef int32_t i
    for i in range(k):
        value = draw(source, most, mask)
        while taken[value]:
            value = draw(source, most, mask)
        taken[value] = 1
        chosen[i] = <int32_t>value
    for i in range(k):
        taken[chosen[i]] = 0


cdef void reservoir(Bits* source, int32_t n, int32_t k, int32_t* chosen) noexcept nogil:
    cdef int32_t i
    cdef uint32_t value
    for i in range(k):
        chosen[i] = i
    for i in range(k, n):
        value = draw(source, i, mask_of(i))
        if value < <uint32_t>k:
            chosen[value] = i
