// Rows of the method of multipliers; see augmented.h.
#include "common/simd.inl.h"

// The multiplier of a row at distance e from its target, with its bounds. By value, so that loops
// over rows do not look it up again after what they store.
struct Multiplier {
    double a, low, high;
};
FML_INLINE Multiplier multiplier(bool regression, double stiffness, double epsilon, double b,
                                 double C, double center, double e) {
    const double scale = stiffness * C, corner = scale * epsilon;
    const double t = center + scale * e;
    const double up = t - corner, down = t + corner;
    const double v = up > 0 ? up : down < 0 ? down : 0;
    const double low = regression || b < 0 ? -C : 0, high = regression || b > 0 ? C : 0;
    const double most = v < high ? v : high;
    return {most > low ? most : low, low, high};
}

template <bool regression>
FML_INLINE void rows_of(const Augmented& s, std::ptrdiff_t begin, std::ptrdiff_t end, double* z,
                        const double* dz, double t, double* a, double* inside,
                        AugmentedSums* sums) {
    const double *b = s.problem.b, *C = s.problem.C, *center = s.center;
    const double stiffness = s.stiffness, epsilon = s.problem.epsilon;
    double loss = 0, dual = 0;
#pragma omp simd reduction(+ : loss, dual)
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        const double there = z[i] + t * dz[i], e = b[i] - there;
        const Multiplier m = multiplier(regression, stiffness, epsilon, b[i], C[i], center[i], e);
        z[i] = there;
        a[i] = m.a;
        inside[i] = (m.a > m.low) & (m.a < m.high) & (m.a != 0) ? C[i] : 0.0;
        const double v = regression ? std::fabs(e) - epsilon : b[i] * e;
        loss += C[i] * (v > 0 ? v : 0);
        dual += b[i] * m.a - epsilon * std::fabs(m.a);
    }
    sums->loss += loss;
    sums->dual += dual;
}

// Takes the step: z += t dz. Then a; C where that is within its bounds and off its corner, else 0;
// and the terms of the objectives.
inline void augmented_rows(const Augmented& s, std::ptrdiff_t begin, std::ptrdiff_t end, double* z,
                           const double* dz, double t, double* a, double* inside,
                           AugmentedSums* sums) {
    if (s.problem.regression)
        rows_of<true>(s, begin, end, z, dz, t, a, inside, sums);
    else
        rows_of<false>(s, begin, end, z, dz, t, a, inside, sums);
}

template <bool regression>
FML_INLINE double slope_of(const Augmented& s, std::ptrdiff_t begin, std::ptrdiff_t end,
                           const double* z, const double* dz, double t) {
    const double *b = s.problem.b, *C = s.problem.C, *center = s.center;
    const double stiffness = s.stiffness, epsilon = s.problem.epsilon;
    double slope = 0;
#pragma omp simd reduction(+ : slope)
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        const double e = b[i] - (z[i] + t * dz[i]);
        slope -= dz[i] * multiplier(regression, stiffness, epsilon, b[i], C[i], center[i], e).a;
    }
    return slope;
}

// The derivative along dz, at z + t dz, of what rows add to the objective in w.
inline double augmented_slope(const Augmented& s, std::ptrdiff_t begin, std::ptrdiff_t end,
                              const double* z, const double* dz, double t) {
    return s.problem.regression ? slope_of<true>(s, begin, end, z, dz, t)
                                : slope_of<false>(s, begin, end, z, dz, t);
}
