#pragma once
// The state of descent on scores of rows and classes together. Internal to the family.
#include "linear_svm/linear_svm.h"

namespace fastml {

struct Compatibility {
    const std::int32_t* codes;  // (n)
    std::ptrdiff_t k, D;
    double* a;  // (n, k), of each class its share of C_i; w = sum of a (psi of codes - psi)
    double* w;  // (D)
    std::int32_t* order;  // (n), the rows still looked at first
    std::ptrdiff_t active;
    std::uint64_t state;  // of the random numbers, not 0
    double shrinks;       // a row whose class wins by as much is set aside
    double worst;         // violation in the last sweep
};

}  // namespace fastml
