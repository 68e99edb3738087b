"""The items of largest score. Arguments are already validated; see csrc/ranking/ranking.h."""

from cython cimport floating
from libc.stdint cimport int32_t

from fastml._native.runtime cimport Status, bind_pool, check, the_pool

cdef extern from "ranking/ranking.h" namespace "fastml" nogil:
    cdef cppclass Scores[T]:
        const T* users
        const T* items
        const T* bias
        Py_ssize_t n_users, n_items, f
        const Py_ssize_t* seen_begin
        const Py_ssize_t* seen_end
        const int32_t* seen

    Status c_rank_items "fastml::rank_items"[T](
        const Scores[T]&, Py_ssize_t, int32_t*, T*, int) noexcept

bind_pool(the_pool())


def rank_items(
    const floating[:, ::1] users,         # IN
    const floating[:, ::1] items,         # IN
    const floating[::1] bias,             # IN, of the items, or None
    const Py_ssize_t[::1] seen_begin,     # IN, or None
    const Py_ssize_t[::1] seen_end,       # IN, or None
    const int32_t[::1] seen,              # IN, or None
    int32_t[:, ::1] ranked,               # OUT
    floating[:, ::1] scores,              # OUT
    int n_threads,
):
    """Write the items of largest score for each user, and their scores."""
    cdef Scores[floating] of
    cdef Status status
    of.users, of.items = &users[0, 0], &items[0, 0]
    of.bias = &bias[0] if bias is not None else NULL
    of.n_users, of.n_items, of.f = users.shape[0], items.shape[0], users.shape[1]
    of.seen_begin = &seen_begin[0] if seen_begin is not None else NULL
    of.seen_end = &seen_end[0] if seen_end is not None else NULL
    of.seen = &seen[0] if seen is not None and seen.shape[0] else NULL
    with nogil:
        status = c_rank_items(of, ranked.shape[1], &ranked[0, 0], &scores[0, 0], n_threads)
    check(status)
