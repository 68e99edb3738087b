"""Votes of neighbours. Arguments are already validated; see csrc/votes/votes.h for the contract."""

from libc.stdint cimport int64_t

import numpy as np

from fastml._native.runtime cimport Status, bind_pool, check, the_pool
from fastml._native.votes cimport CVote, Poll, Weighting

cdef extern from "votes/votes.h" namespace "fastml" nogil:
    Status c_count "fastml::count_votes"(
        const CVote&, Py_ssize_t, const int64_t*, const double*, Py_ssize_t, Py_ssize_t, int
    ) noexcept
    Status c_count_lists "fastml::count_lists"(
        const CVote&, const int64_t*, const int64_t*, const double*, Py_ssize_t, int
    ) noexcept

bind_pool(the_pool())

cdef dict POLLS = {
    "winner": <int>Poll.winner, "share": <int>Poll.share, "mean": <int>Poll.mean,
}
cdef dict WEIGHTINGS = {
    "same": <int>Weighting.same, "inverse": <int>Weighting.inverse, "given": <int>Weighting.given,
}


cdef class Vote:
    """A vote for `n_queries`, to be held by a search; `outcome` is what came of it.

    `targets` (n, n_outputs) are int64 codes of classes, of which output j has n_classes[j], or
    float64 values for poll "mean". The outcome is (n_queries, n_outputs); for poll "share" it has
    a column for each class, those of the first output first, NaN where votes come to nothing
    (`may_be_none`: 0).
    """

    def __init__(
        self,
        str poll,
        str weighting,
        targets,
        n_classes,
        Py_ssize_t n_queries,
        bint may_be_none=False,
    ):
        cdef const int64_t[:, ::1] codes
        cdef const int64_t[::1] first_class
        cdef const double[:, ::1] values
        cdef int64_t[:, ::1] winners
        cdef double[:, ::1] shares
        cdef int kind = POLLS[poll], weights = WEIGHTINGS[weighting]
        self.vote.poll, self.vote.weighting = <Poll>kind, <Weighting>weights
        self.vote.may_be_none = may_be_none
        self.vote.n_outputs = targets.shape[1]
        self.vote.n_classes = sum(n_classes)
        starts = np.cumsum([0, *n_classes], dtype=np.int64)
        columns = starts[-1] if poll == "share" else targets.shape[1]
        self.outcome = np.empty(
            (n_queries, columns), dtype=np.int64 if poll == "winner" else np.float64
        )
        self.kept = targets, starts
        if poll == "mean":
            values = targets
            self.vote.values = &values[0, 0]
        else:
            codes, first_class = targets, starts
            self.vote.codes, self.vote.first_class = &codes[0, 0], &first_class[0]
        if n_queries and poll == "winner":
            winners = self.outcome
            self.vote.winners = &winners[0, 0]
        elif n_queries:
            shares = self.outcome
            self.vote.shares = &shares[0, 0]

    @property
    def is_weighted(self):
        """Whether it asks for distances, or weights in their place."""
        return self.vote.weighting != Weighting.same

    def count(
        self,
        const int64_t[:, ::1] rows,    # IN
        const double[:, ::1] weights,  # IN: distances or weights, or None
        Py_ssize_t first,
        int n_threads,
    ):
        """Take the neighbours of queries `first` and following from tables."""
        cdef const double* values = &weights[0, 0] if weights is not None else NULL
        cdef Status status
        with nogil:
            status = c_count(
                self.vote, first, &rows[0, 0], values, rows.shape[0], rows.shape[1], n_threads
            )
        check(status)

    def count_lists(
        self,
        const int64_t[::1] offsets,  # IN: where each query's neighbours begin, and their end
        const int64_t[::1] rows,     # IN
        const double[::1] weights,   # IN: distances or weights, or None
        int n_threads,
    ):
        """Take all queries' neighbours, of which each may have another number."""
        cdef const double* values = NULL
        cdef const int64_t* prows = &rows[0] if rows.shape[0] else NULL
        cdef Py_ssize_t n = offsets.shape[0] - 1
        cdef Status status
        if weights is not None and weights.shape[0]:
            values = &weights[0]
        with nogil:
            status = c_count_lists(self.vote, &offsets[0], prows, values, n, n_threads)
        check(status)
