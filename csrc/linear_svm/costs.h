#pragma once
// What the rows of two classes cost. Internal to the family.
#include "linear_svm/linear_svm.h"

namespace fastml {

// What rows of a class cost, where each loses 1; and how many there are.
struct Cost {
    double sum = 0;
    std::ptrdiff_t rows = 0;
};
struct Costs {
    Cost of[2];  // the negative one first
    bool positive_is_frequent() const { return of[1].sum > of[0].sum; }
    const Cost& frequent() const { return of[positive_is_frequent()]; }
    const Cost& rare() const { return of[!positive_is_frequent()]; }
};
inline Costs costs(const Problem& problem, std::ptrdiff_t n) {
    Costs costs;
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        Cost& mine = costs.of[problem.b[i] > 0];
        mine.sum += problem.C[i];
        ++mine.rows;
    }
    return costs;
}

// What multipliers of the classes differ by where w has only its constant, which scores 1.
inline double unit(const Problem& problem) { return 1 / (problem.bias * problem.bias); }

}  // namespace fastml
