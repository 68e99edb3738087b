#pragma once
#include <cstddef>

#include "als/als.h"

namespace fastml {

// The normal equations of a row before its bias and penalty: A (ld, ld), the upper triangle, and
// vectors of ld; total is the sum of the targets.
template <class T> struct Equations {
    T *A, *rhs, *sum;
    double* total;
};

// Rows of so many entries are cut into parts of so many, for all threads, and solved exactly.
constexpr std::ptrdiff_t long_row = 1 << 17, long_part = 1 << 15;

inline bool is_long(std::ptrdiff_t n, const Ridge& ridge) {
    return n > long_row && ridge.method != Method::blocks && !ridge.nonnegative;
}

}  // namespace fastml
