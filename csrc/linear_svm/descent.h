#pragma once
// The state of dual coordinate descent. Internal to the family.
#include "linear_svm/linear_svm.h"

namespace fastml {

struct Descent {
    Problem problem;
    std::ptrdiff_t n;
    double* a;            // (n)
    double* at;           // w (d + 1), or, with a Gram matrix, X w (n)
    const double* norms;  // (n): |x|²
    std::int32_t* order;  // (n), the rows still looked at first
    std::ptrdiff_t active;
    std::uint64_t state;       // of the random numbers, not 0
    double shrinks;            // a row whose gradient is as far on the right side is set aside
    double worst, sum;         // of violations in the last sweep
};

// One sweep with the Gram matrix K (n, n).
void gram_sweep(const double* K, Descent& s);

}  // namespace fastml
