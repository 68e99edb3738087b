"""Neighbour searches. Arguments are already validated; see csrc/neighbors for the contracts."""

from cython cimport floating
from libc.stdint cimport int64_t
from libcpp cimport bool as bool_t

import numpy as np

from fastml._native.runtime cimport Status, bind_pool, check, the_pool
from fastml._native.votes cimport CVote, Vote

cdef extern from "neighbors/neighbors.h" namespace "fastml" nogil:
    cdef enum class Metric(int):
        euclidean
        sqeuclidean
        cosine
        manhattan
        chebyshev

    cdef cppclass Neighborhood[T]:
        const T* queries
        const T* data
        Py_ssize_t n_queries
        Py_ssize_t n
        Py_ssize_t d
        Metric metric
        bool_t not_itself

    Status c_nearest "fastml::nearest"[T](
        const Neighborhood[T]&, Py_ssize_t, double*, int64_t*, int) noexcept

    Status c_nearest_vote "fastml::nearest_vote"[T](
        const Neighborhood[T]&, Py_ssize_t, const CVote&, int) noexcept

    cdef cppclass Within:
        bool_t with_distances
        void count(int64_t*) noexcept
        Status copy(const int64_t*, bool_t, double*, int64_t*, int) noexcept

    Status c_within "fastml::within"[T](
        const Neighborhood[T]&, const double*, Py_ssize_t, Within&, int) noexcept

    Status c_within_vote "fastml::within_vote"[T](
        const Neighborhood[T]&, const double*, const CVote&, int64_t*, int) noexcept

cdef extern from "neighbors/tables.h" namespace "fastml" nogil:
    Status c_smallest "fastml::smallest"[T](
        const T*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, T*, int64_t*, int) noexcept

bind_pool(the_pool())

cdef dict METRICS = {
    "euclidean": <int>Metric.euclidean,
    "sqeuclidean": <int>Metric.sqeuclidean,
    "cosine": <int>Metric.cosine,
    "manhattan": <int>Metric.manhattan,
    "chebyshev": <int>Metric.chebyshev,
}


cdef Neighborhood[floating] searched(
    const floating[:, ::1] queries, const floating[:, ::1] data, str metric, bint not_itself
) except *:
    cdef Neighborhood[floating] search
    cdef int kind = METRICS[metric]
    search.queries, search.data = &queries[0, 0], &data[0, 0]
    search.n_queries, search.n, search.d = queries.shape[0], data.shape[0], data.shape[1]
    search.metric, search.not_itself = <Metric>kind, not_itself
    return search


def nearest(
    const floating[:, ::1] queries,  # IN
    const floating[:, ::1] data,     # IN
    str metric,
    bint not_itself,
    double[:, ::1] distances,        # OUT, or None
    int64_t[:, ::1] rows,            # OUT
    int n_threads,
):
    """The nearest rows of the data to every query, as many as the outputs have columns."""
    cdef Neighborhood[floating] search = searched(queries, data, metric, not_itself)
    cdef Py_ssize_t k = rows.shape[1]
    cdef double* pdistances = &distances[0, 0] if distances is not None else NULL
    cdef Status status
    with nogil:
        status = c_nearest(search, k, pdistances, &rows[0, 0], n_threads)
    check(status)


def vote(
    const floating[:, ::1] queries,  # IN
    const floating[:, ::1] data,     # IN
    str metric,
    bint not_itself,
    Py_ssize_t k,
    Vote vote,                       # INOUT
    int n_threads,
):
    """Let the `k` nearest rows of the data to every query vote."""
    cdef Neighborhood[floating] search = searched(queries, data, metric, not_itself)
    cdef Status status
    with nogil:
        status = c_nearest_vote(search, k, vote.vote, n_threads)
    check(status)


def within(
    const floating[:, ::1] queries,  # IN
    const floating[:, ::1] data,     # IN
    str metric,
    bint not_itself,
    const double[::1] radius,        # IN, one for each query
    bint return_distance,
    bint sort,
    int n_threads,
    Py_ssize_t itself=0,
):
    """The rows within a radius of each query: offsets, rows, distances (or None).

    With `not_itself`, the first query is row `itself` of the data, and so on.
    """
    cdef Neighborhood[floating] search = searched(queries, data, metric, not_itself)
    cdef Within found
    cdef Status status
    cdef int64_t[::1] counts = np.empty(queries.shape[0], dtype=np.int64)
    found.with_distances = return_distance or sort
    with nogil:
        status = c_within(search, &radius[0], itself, found, n_threads)
    check(status)
    found.count(&counts[0])
    offsets = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)))
    cdef Py_ssize_t total = offsets[counts.shape[0]]
    rows = np.empty(max(1, total), dtype=np.int64)
    distances = np.empty(rows.size if return_distance else 1)
    cdef const int64_t[::1] starts = offsets
    cdef int64_t[::1] to_rows = rows
    cdef double[::1] to_distances = distances
    with nogil:
        status = found.copy(&starts[0], sort, &to_distances[0] if return_distance else NULL,
                            &to_rows[0], n_threads)
    check(status)
    return offsets, rows[:total], distances[:total] if return_distance else None


def within_vote(
    const floating[:, ::1] queries,  # IN
    const floating[:, ::1] data,     # IN
    str metric,
    bint not_itself,
    const double[::1] radius,        # IN, one for each query
    Vote vote,                       # INOUT
    int64_t[::1] counts,             # OUT: how many are near each query
    int n_threads,
):
    """Let the rows of the data within a radius of each query vote."""
    cdef Neighborhood[floating] search = searched(queries, data, metric, not_itself)
    cdef Status status
    with nogil:
        status = c_within_vote(search, &radius[0], vote.vote, &counts[0], n_threads)
    check(status)


def smallest(
    const floating[:, ::1] table,  # IN
    Py_ssize_t skipped,
    floating[:, ::1] values,       # OUT
    int64_t[:, ::1] columns,       # OUT
    int n_threads,
):
    """The smallest entries of each row, as many as the outputs have columns."""
    cdef Py_ssize_t k = columns.shape[1]
    cdef Status status
    with nogil:
        status = c_smallest(&table[0, 0], table.shape[0], table.shape[1], skipped, k,
                            &values[0, 0], &columns[0, 0], n_threads)
    check(status)
