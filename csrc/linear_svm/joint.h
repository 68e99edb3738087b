#pragma once
// Rows of the method of multipliers of all classes. Internal to the family.
#include "linear_svm/linear_svm.h"

namespace fastml {

// A row gives the share f_m of its C to class m, f in the simplex: where the dual is best if it also
// pays C |f - center|² / (2 stiffness). Arrays of classes and rows hold class m from m n on.
struct Joint {
    const std::int32_t* codes;  // (n)
    const double* C;            // (n)
    std::ptrdiff_t n, k;        // k <= most_joint
    const double* center;       // (k, n)
    double stiffness;
};

// Classes, of which a row's set is kept in one number.
constexpr std::ptrdiff_t most_joint = 64;

// Of rows, to be added: the terms of the primal and of the dual.
struct JointSums {
    double loss, dual;
};

}  // namespace fastml
