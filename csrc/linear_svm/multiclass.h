#pragma once
// The state of coordinate descent on all classes. Internal to the family.
#include "linear_svm/linear_svm.h"

namespace fastml {

struct Multiclass {
    const std::int32_t* codes;  // (n)
    const double* C;            // (n)
    double bias;
    std::ptrdiff_t n, k;
    std::ptrdiff_t stride;  // k, up to whole registers
    double* a;              // (n, k), rows sum to zero
    double* w;              // (d + 1, stride)
    const double* norms;    // (n)
    double* scratch;        // (3 stride)
    std::int32_t* order;    // (n), the rows still looked at first
    std::ptrdiff_t active;
    std::uint64_t state;  // of the random numbers, not 0
    double shrinks, worst;
};

}  // namespace fastml
