// Planes through three points; see momentum.h. All arrays (n).
#include "linear_svm/passes.inl.h"

// sums += now p, now q, p p, p q, q q, where p = now - last and q = last - past.
inline void plane_block(const double* now, const double* last, const double* past, std::ptrdiff_t n,
                        double* sums) {
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3, s4)
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const double p = now[i] - last[i], q = last[i] - past[i];
        s0 += now[i] * p;
        s1 += now[i] * q;
        s2 += p * p;
        s3 += p * q;
        s4 += q * q;
    }
    sums[0] += s0;
    sums[1] += s1;
    sums[2] += s2;
    sums[3] += s3;
    sums[4] += s4;
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
