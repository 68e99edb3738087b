"""Gradient descent on ratings. Arguments are already validated; see sgd_factors.h."""

from cython cimport floating
from libc.stdint cimport int32_t, uint64_t
from libcpp cimport bool as bool_t

from fastml._native.runtime cimport Status, bind_pool, check, the_pool

cdef extern from "sgd_factors/sgd_factors.h" namespace "fastml" nogil:
    cdef cppclass Rating[T]:
        pass

    cdef cppclass Table[T]:
        const Py_ssize_t* indptr
        const int32_t* indices
        const T* values
        const int32_t* user_at
        const int32_t* item_place
        const int32_t* item_part
        const Py_ssize_t* first
        Py_ssize_t parts, group

    cdef cppclass Record[T]:
        pass

    cdef cppclass Factors[T]:
        T* rows
        Record[T]* records

    cdef cppclass Steps:
        double rate
        double bias_penalty
        bool_t adaptive
        bool_t biases

    cdef cppclass Cells[T]:
        const Rating[T]* ratings
        const Py_ssize_t* begin
        Py_ssize_t parts

    Status c_deal_ratings "fastml::deal_ratings"[T](
        const Table[T]&, uint64_t, Rating[T]*, Py_ssize_t*, int) noexcept
    Status c_descend_epoch "fastml::descend_epoch"[T](
        const Cells[T]&, const int32_t*, const Steps&, const Factors[T]&, const Factors[T]&,
        Py_ssize_t, Py_ssize_t, double*, int) noexcept

bind_pool(the_pool())


def deal_ratings(
    const floating[::1] values,       # IN
    const Py_ssize_t[::1] indptr,     # IN, (users + 1)
    const int32_t[::1] indices,       # IN
    const int32_t[::1] user_at,       # IN, (users)
    const int32_t[::1] item_place,    # IN, (items)
    const int32_t[::1] item_part,     # IN, (items)
    const Py_ssize_t[::1] first,      # IN, (parts + 1)
    Py_ssize_t group,
    uint64_t seed,
    char[::1] out,                    # OUT, a Rating each
    Py_ssize_t[::1] begin,            # OUT, (parts * parts + 1)
    int n_threads,
):
    """Deal ratings out to cells."""
    cdef Table[floating] table
    cdef Status status
    table.indptr, table.indices, table.values = &indptr[0], &indices[0], &values[0]
    table.user_at, table.item_place, table.item_part = &user_at[0], &item_place[0], &item_part[0]
    table.first, table.parts, table.group = &first[0], first.shape[0] - 1, group
    with nogil:
        status = c_deal_ratings(table, seed, <Rating[floating]*>&out[0], &begin[0], n_threads)
    check(status)


def descend_epoch(
    floating[:, ::1] user_factors,    # INOUT, (users, ld)
    floating[:, ::1] item_factors,    # INOUT, (items, ld)
    floating[:, ::1] user_records,    # INOUT, (users, 4)
    floating[:, ::1] item_records,    # INOUT, (items, 4)
    Py_ssize_t f,
    const char[::1] ratings,          # IN
    const Py_ssize_t[::1] begin,      # IN, (parts * parts + 1)
    const int32_t[::1] diagonals,     # IN, (parts)
    double rate,
    double bias_penalty,
    bint adaptive,
    bint biases,
    int n_threads,
):
    """Take a step for each rating; return the sum of the squared errors."""
    cdef Cells[floating] cells
    cdef Factors[floating] users, items
    cdef Steps steps
    cdef double error = 0
    cdef Py_ssize_t ld = user_factors.shape[1]
    cdef Status status
    cells.ratings, cells.begin = <const Rating[floating]*>&ratings[0], &begin[0]
    cells.parts = diagonals.shape[0]
    users.rows, users.records = &user_factors[0, 0], <Record[floating]*>&user_records[0, 0]
    items.rows, items.records = &item_factors[0, 0], <Record[floating]*>&item_records[0, 0]
    steps.rate, steps.bias_penalty, steps.adaptive, steps.biases = (
        rate, bias_penalty, adaptive, biases)
    with nogil:
        status = c_descend_epoch(
            cells, &diagonals[0], steps, users, items, f, ld, &error, n_threads)
    check(status)
    return error
