// Squared losses, row by row.
#include "common/simd.inl.h"

// How far b - z is beyond what the loss forgives, with its sign.
FML_INLINE double excess(double b, double z, double epsilon, bool regression) {
    const double e = b - z;
    if (regression) return e > epsilon ? e - epsilon : e < -epsilon ? e + epsilon : 0;
    return b * e > 0 ? e : 0;
}

// a = -loss'(z) of rows [begin, end); `sums` grows.
inline void squared_rows(const Problem& p, std::ptrdiff_t begin, std::ptrdiff_t end,
                         const double* z, double* a, SquaredSums* sums) {
    double loss = 0, dual = 0;
#pragma omp simd reduction(+ : loss, dual)
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        const double v = excess(p.b[i], z[i], p.epsilon, p.regression);
        a[i] = 2 * p.C[i] * v;
        loss += p.C[i] * v * v;
        dual += p.b[i] * a[i] - p.epsilon * (a[i] < 0 ? -a[i] : a[i]) - p.C[i] * v * v;
    }
    sums->loss += loss;
    sums->dual += dual;
}

// The derivative of the loss along dz, at z + t dz.
inline double squared_slope(const Problem& p, std::ptrdiff_t begin, std::ptrdiff_t end,
                            const double* z, const double* dz, double t) {
    double slope = 0;
#pragma omp simd reduction(+ : slope)
    for (std::ptrdiff_t i = begin; i < end; ++i)
        slope -= 2 * p.C[i] * dz[i] * excess(p.b[i], z[i] + t * dz[i], p.epsilon, p.regression);
    return slope;
}
