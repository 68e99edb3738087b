// Rows near their hinges, and others; see narrowing.h.
#include "common/simd.inl.h"

// How far a row's loss is from its hinge, at z: what it loses, where that is positive.
FML_INLINE double beyond(const Problem& p, std::ptrdiff_t i, double z) {
    const double e = p.b[i] - z;
    return p.regression ? (e < 0 ? -e : e) - p.epsilon : p.b[i] * e;
}

// A number for each row, as good as random (a finaliser of multiplications and shifts).
FML_INLINE std::uint32_t draw(std::uint32_t i) {
    i = (i ^ i >> 16) * 0x85ebca6bu;
    i = (i ^ i >> 13) * 0xc2b2ae35u;
    return i ^ i >> 16;
}

// Which of rows [begin, end) are chosen; and a, the multipliers of what the others lose, if all but
// the chosen ones stay on their sides of the hinges: those that are not open, and as much of the
// open ones as makes up for the chosen ones' scale.
inline void settle_block(const Problem& p, std::ptrdiff_t begin, std::ptrdiff_t end,
                         const double* z, const Choice& by, double* a, unsigned char* chosen,
                         NarrowSums* sums) {
    double loss = 0, linear = 0;
#pragma omp simd reduction(+ : loss, linear)
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        const double v = beyond(p, i, z[i]);
        const double side = p.regression ? (p.b[i] - z[i] < 0 ? -1.0 : 1.0) : p.b[i];
        const bool within = (v < 0 ? -v : v) <= by.near;
        const bool taken = within & (draw(static_cast<std::uint32_t>(i) ^ by.seed) <= by.draw);
        const double cost = v > 0 ? (taken ? 1 - by.scale : 1.0) * p.C[i] : 0.0;
        a[i] = cost * side;
        chosen[i] = taken;
        loss += v > 0 ? p.C[i] * v : 0.0;
        linear += cost * (side * p.b[i] - p.epsilon);
    }
    sums->loss += loss;
    sums->linear += linear;
}
