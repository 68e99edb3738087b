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

template <bool regression>
FML_INLINE void settle_rows(const Problem& p, std::ptrdiff_t begin, std::ptrdiff_t end,
                            const double* z, const Choice& by, double* a, double* chosen,
                            NarrowSums* sums) {
    const double *b = p.b, *C = p.C, near = by.near, whole = 1 / by.whole, epsilon = p.epsilon;
    const std::uint32_t seed = by.seed;
    double loss = 0, linear = 0;
#pragma omp simd reduction(+ : loss, linear)
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        const double e = b[i] - z[i], v = regression ? std::fabs(e) - epsilon : b[i] * e;
        const double away = std::fabs(v), side = regression ? std::copysign(1.0, e) : b[i];
        const double scale = away * whole > 1 ? away * whole : 1.0;
        const std::uint32_t number = draw(static_cast<std::uint32_t>(i) ^ seed) >> 1;
        const bool taken = (away <= near) & (static_cast<std::int32_t>(number) * scale < 0x1p31);
        const double times = taken ? scale : 0.0, rest = taken ? 1 - scale : 1.0;
        const double cost = v > 0 ? rest * C[i] : 0.0;
        a[i] = cost * side;
        chosen[i] = times;
        loss += v > 0 ? C[i] * v : 0.0;
        linear += cost * (side * b[i] - epsilon);
    }
    sums->loss += loss;
    sums->linear += linear;
}

// Which of rows [begin, end) are chosen, and how often they count; and a, the multipliers of what the
// others lose, if all but the chosen ones stay on their sides of the hinges: those that are not
// open, and as much of the open ones as makes up for how often the chosen ones count.
inline void settle_block(const Problem& p, std::ptrdiff_t begin, std::ptrdiff_t end,
                         const double* z, const Choice& by, double* a, double* chosen,
                         NarrowSums* sums) {
    if (p.regression)
        settle_rows<true>(p, begin, end, z, by, a, chosen, sums);
    else
        settle_rows<false>(p, begin, end, z, by, a, chosen, sums);
}

// The derivative of the losses on the way from one z to another, so far along.
inline double hinges_slope(const Problem& p, std::ptrdiff_t begin, std::ptrdiff_t end,
                           const double* from, const double* to, double t) {
    const double *b = p.b, *C = p.C, epsilon = p.epsilon;
    const bool regression = p.regression;
    double slope = 0;
#pragma omp simd reduction(+ : slope)
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        const double dz = to[i] - from[i], e = b[i] - (from[i] + t * dz);
        const double v = regression ? std::fabs(e) - epsilon : b[i] * e;
        const double side = regression ? std::copysign(1.0, e) : b[i];
        slope -= v > 0 ? C[i] * side * dz : 0.0;
    }
    return slope;
}
