"""Votes for the bindings of searches, which hold them."""

from libc.stdint cimport int64_t
from libcpp cimport bool as bool_t

cdef extern from "votes/votes.h" namespace "fastml" nogil:
    cdef enum class Poll(int):
        winner
        share
        mean

    cdef enum class Weighting(int):
        same
        inverse
        given

    cdef cppclass CVote "fastml::Vote":
        Poll poll
        Weighting weighting
        Py_ssize_t n_outputs
        Py_ssize_t n_classes
        const int64_t* codes
        const int64_t* first_class
        const double* values
        int64_t* winners
        double* shares
        bool_t may_be_none

cdef class Vote:
    cdef CVote vote
    cdef object kept
    cdef readonly object outcome
