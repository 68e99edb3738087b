#pragma once
#include <cstddef>

namespace fastml {

// Variables that are optimised together: beta within bounds, v the negative gradient. Those up to
// `split` are paired among themselves, and those from there on (the signs, with nu).
template <class T> struct WorkingSet {
    std::ptrdiff_t n, split, ld;
    const T *K, *diagonal;  // (n, ld)
    double *beta, *v;
    const double *lower, *upper;
    double *rise, *fall, *risen;  // 0, or what keeps a variable at its bound out of the search
    float* gain;
};

// For Newton steps with at most so many variables: A (most, most), and (most) each.
struct NewtonMemory {
    std::ptrdiff_t most;
    double *A, *x, *first, *last;
    std::ptrdiff_t* free;
};

// Where finished kernel values go: to rows that are kept, unless null; and times coef to sums.
template <class K> struct Delivery {
    K* const* keep;
    const double* coef;
    double* sums;
};

// Whose they are: rows and columns of X.
template <class S> struct Given {
    const S* X;
    const std::ptrdiff_t *ids, *columns;
    std::ptrdiff_t d;
};

}  // namespace fastml
