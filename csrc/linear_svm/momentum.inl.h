// Planes through three points; see momentum.h. p = now - last and q = last - past.
#include "linear_svm/passes.inl.h"

// sums += now p, now q, p p, p q, q q, now now, of weights (n).
inline void weights_block(const double* now, const double* last, const double* past,
                          std::ptrdiff_t n, double* sums) {
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3, s4, s5)
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const double p = now[i] - last[i], q = last[i] - past[i];
        s0 += now[i] * p;
        s1 += now[i] * q;
        s2 += p * p;
        s3 += p * q;
        s4 += q * q;
        s5 += now[i] * now[i];
    }
    sums[0] += s0;
    sums[1] += s1;
    sums[2] += s2;
    sums[3] += s3;
    sums[4] += s4;
    sums[5] += s5;
}

// The same of multipliers, whose part of the objective is curve a² / 2 - b a + epsilon |a|;
// sums[5] += twice that, and corners += the slopes of epsilon |a|.
inline void multipliers_block(const Problem& problem, const double* now, const double* last,
                              const double* past, std::ptrdiff_t begin, std::ptrdiff_t end,
                              double* sums, double* corners) {
    const double *b = problem.b, *C = problem.C, epsilon = problem.epsilon;
    const double scale = problem.squared ? 0.5 : 0.0;
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, k0 = 0, k1 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3, s4, s5, k0, k1)
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        const double a = now[i], p = a - last[i], q = last[i] - past[i], curve = scale / C[i];
        const double slope = curve * a - b[i];
        const double corner = a > 0 ? epsilon : a < 0 ? -epsilon : 0.0;
        s0 += slope * p;
        s1 += slope * q;
        s2 += curve * p * p;
        s3 += curve * p * q;
        s4 += curve * q * q;
        s5 += a * (slope - b[i] + 2 * corner);
        k0 += corner * p;
        k1 += corner * q;
    }
    sums[0] += s0;
    sums[1] += s1;
    sums[2] += s2;
    sums[3] += s3;
    sums[4] += s4;
    sums[5] += s5;
    corners[0] += k0;
    corners[1] += k1;
}

// now += c1 p + c2 q
inline void point_block(double* now, const double* last, const double* past, std::ptrdiff_t n,
                        double c1, double c2) {
#pragma omp simd
    for (std::ptrdiff_t i = 0; i < n; ++i)
        now[i] += c1 * (now[i] - last[i]) + c2 * (last[i] - past[i]);
}

// w += change x_i, and what the objective gains, whose derivative by a_i is x_i w + g.
template <class T>
double change_row(const Rows<T>& X, double bias, std::ptrdiff_t i, double change, double g,
                  double Q, double* w) {
    double z = bias * w[X.d];
    z += X.indptr ? sparse_dot(X, i, w) : dense_dot(X.data + i * X.d, X.d, w);
    w[X.d] += bias * change;
    add_row(X, i, change, w);
    return change * (z + g + Q * change / 2);
}
