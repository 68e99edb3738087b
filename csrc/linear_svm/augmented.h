#pragma once
// Rows of the method of multipliers. Internal to the family.
#include "linear_svm/linear_svm.h"

namespace fastml {

// A row's multiplier a is where the dual is best if it also pays (a - center)² / (2 C stiffness):
// between its bounds it moves by C stiffness for a unit of the margin.
struct Augmented {
    Problem problem;
    const double* center;  // (n)
    double stiffness;
};

// What other rows add to the problem, whose multipliers are settled: their losses are linear.
struct Settled {
    const double* w;  // (d + 1) to start from, or null: zeros
    const double* u;  // (d + 1), the sum of a_i x_i of those rows, or null
    double loss;      // of those rows at w = 0, if it were as linear there
    double wide;      // how far from its hinge a row may be at w; 0: not known
};

// `augmented` on some of the rows.
template <class T>
Solver* augmented_within(const Rows<T>&, const Problem&, const Limits&, const Settled&) noexcept;

// `augmented` on few rows at a time, of many: see narrowing.cpp.
template <class T>
Solver* narrowing(const Rows<T>&, const Problem&, const Limits&) noexcept;
// Whether that pays.
template <class T> bool worth_narrowing(const Rows<T>&);

// `augmented` where the best w may have only a constant, which is looked at first: see constant.cpp.
template <class T>
Solver* constant_first(const Rows<T>&, const Problem&, const Limits&) noexcept;
template <class T> bool may_be_constant(const Rows<T>&, const Problem&);

// `augmented` where it has not.
template <class T>
Solver* augmented_varied(const Rows<T>&, const Problem&, const Limits&) noexcept;

// `augmented` where a class is rare, on its rows and few of the other: see rare.cpp.
template <class T>
Solver* rare_first(const Rows<T>&, const Problem&, const Limits&) noexcept;
template <class T> bool may_be_rare(const Rows<T>&, const Problem&);

// `augmented` where none is.
template <class T>
Solver* augmented_anyway(const Rows<T>&, const Problem&, const Limits&) noexcept;

// Of rows, to be added: the terms of the primal and of the dual.
struct AugmentedSums {
    double loss, dual;
};

}  // namespace fastml
