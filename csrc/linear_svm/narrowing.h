#pragma once
// Rows near their hinges, and others; see narrowing.cpp. Internal to the family.
#include "linear_svm/linear_svm.h"

namespace fastml {

// Rows at most `near` from their hinge are open, of which those within `whole` are chosen, and some
// of the others, the fewer the farther they are: one in `distance / whole`, which counts as many
// times.
struct Choice {
    double near, whole;
    std::uint32_t seed;
};

// Of rows, to be added: the sum of C loss; of what is linear of it, at w = 0.
struct NarrowSums {
    double loss, linear;
};

}  // namespace fastml
