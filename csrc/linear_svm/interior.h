#pragma once
// Rows of the interior point method. Internal to the family.
#include "linear_svm/linear_svm.h"

namespace fastml {

// The loss of a row is one hinge, C max(0, m - sign z), or two (regression), each with
//   alpha in (0, C), beta = C - alpha, slack and over > 0, slack - over = sign z - m,
// and, at the optimum, alpha slack = beta over = 0. Arrays have the first hinges of all rows, then
// the second.
struct Hinges {
    Problem problem;
    std::ptrdiff_t n;
    double *alpha, *beta, *slack, *over;
    double *by_alpha,
        *by_beta;  // products of the predictor's changes, which the corrector makes up
};

// What other rows add to the problem, whose multipliers are settled: their losses are linear.
struct Settled {
    const double* w;  // (d + 1) to start from, or null: zeros
    const double* u;  // (d + 1), the sum of a_i x_i of those rows, or null
    double loss;      // of those rows at w = 0, if it were as linear there
    double wide;      // how far from its hinge a row may be at w; 0: not known
};

// `interior` on some of the rows.
template <class T>
Solver* interior_within(const Rows<T>&, const Problem&, const Limits&, const Settled&) noexcept;

// `interior` on few rows at a time, of many: see narrowing.cpp.
template <class T>
Solver* narrowing(const Rows<T>&, const Problem&, const Limits&) noexcept;
// Whether that pays.
template <class T> bool worth_narrowing(const Rows<T>&);

// Of rows, to be added; `fastest` is the largest.
struct HingeSums {
    double loss, dual;             // sum of C max(0, m - sign z), of m alpha
    double product, slope, curve;  // alpha slack + beta over after a step of t: with t and t²
    double fastest;                // 1 / the step that takes the first of the four to zero
};

}  // namespace fastml
