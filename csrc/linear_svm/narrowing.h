#pragma once
// Rows near their hinges, and others; see narrowing.cpp. Internal to the family.
#include "linear_svm/linear_svm.h"

namespace fastml {

// Rows at most `near` from their hinge are open, of which those are chosen whose draw is at most
// `draw`; each counts `scale` times, for the others.
struct Choice {
    double near, scale;
    std::uint32_t draw, seed;
};

// Of rows, to be added: the sum of C loss; of what is linear of it, at w = 0.
struct NarrowSums {
    double loss, linear;
};

}  // namespace fastml
