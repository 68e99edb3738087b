#pragma once
// The state of dual coordinate descent. Internal to the family.
#include "linear_svm/linear_svm.h"

namespace fastml {

// A coordinate a of the dual, all that its step needs on one cache line: [low, high] bounds it,
// curve is the part of the second derivative Q that is its own.
struct alignas(64) Coordinate {
    double a, b, low, high, curve, Q;
    std::ptrdiff_t first;  // entry of the row
    std::ptrdiff_t size;   // of the row
};

// How fast the objective falls along a coordinate, whose derivative is G; below 0, how far it is
// from falling either way.
inline double violation_of(const Coordinate& row, double G, double epsilon) {
    const double up = row.a < row.high ? -G - (row.a >= 0 ? epsilon : -epsilon) : -1e300;
    const double down = row.a > row.low ? G + (row.a > 0 ? epsilon : -epsilon) : -1e300;
    return up > down ? up : down;
}

struct Descent {
    std::ptrdiff_t n;
    Coordinate* rows;     // (n)
    double* at;           // w (d + 1), or, with a Gram matrix, X w (n)
    std::int32_t* order;  // (n), the rows still looked at first
    std::ptrdiff_t active;
    double epsilon, bias;
    std::uint64_t state;  // of the random numbers, not 0
    double shrinks;       // a row whose gradient is as far on the right side is set aside
    double part;          // of the worst violation of a sweep, which that is in the next one
    double worst, sum;    // of violations in the last sweep
    double gap;           // about the duality gap, from what the last sweep met
};

// One sweep with the Gram matrix K (n, n).
void gram_sweep(const double* K, Descent& s);

}  // namespace fastml
