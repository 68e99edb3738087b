#pragma once
// How far to go along Newton's step. Internal to the family.
#include <cmath>

#include "common/pool.h"

namespace fastml {

// A slope that has fallen to so much of the first one is as good as none.
constexpr double flat_enough = 0.3;

// Where the derivative along a step is about zero, which is `first` at 0, piecewise linear, and
// grows. slope(t, fresh, &value) computes it at t; fresh: for the first time, at 1.
template <class Slope> Status line_search(double first, const Slope& slope, double* result) {
    double low = 0, at_low = first, high = 0, at_high = 0, t = 1;
    for (int i = 0; i < 50; ++i) {
        double value;
        const Status status = slope(t, i == 0, &value);
        if (status != Status::ok) return status;
        *result = t;
        if (!(std::fabs(value) > flat_enough * std::fabs(first))) break;
        if (value < 0)
            low = t, at_low = value;
        else
            high = t, at_high = value;
        if (high == 0)
            t = 2 * low;
        else
            t = i % 3 == 2 ? (low + high) / 2 : low + (high - low) * at_low / (at_low - at_high);
    }
    return Status::ok;
}

}  // namespace fastml
