// One sweep of coordinate descent on the classes of rows; see compatibility.h.
#include "linear_svm/descent.inl.h"

template <class T> void sweep_pairs(const T* psi, Compatibility& s) {
    const std::ptrdiff_t k = s.k, D = s.D;
    shuffle(s);
    s.worst = 0;
    for (std::ptrdiff_t t = 0; t < s.active; ++t) {
        const std::ptrdiff_t i = s.order[t], y = s.codes[i];
        const T* of_row = psi + i * k * D;
        double* a = s.a + i * k;
        // The largest score, costs included, and the least of classes that have a share.
        std::ptrdiff_t up = 0, down = y;
        double most = -1e300, least = 1e300, others = -1e300;
        for (std::ptrdiff_t m = 0; m < k; ++m) {
            const double score = dense_dot(of_row + m * D, D, s.w) + (m != y);
            if (score > most) most = score, up = m;
            if (a[m] > 0 && score < least) least = score, down = m;
            if (m != y && score > others) others = score;
        }
        const double violation = most - least;
        if (!(violation > 1e-12)) {
            if (down == y && others < least - s.shrinks) {
                s.order[t--] = s.order[--s.active];
                s.order[s.active] = static_cast<std::int32_t>(i);
            }
            continue;
        }
        s.worst = violation > s.worst ? violation : s.worst;
        const T *x_up = of_row + up * D, *x_down = of_row + down * D;
        double square = 0;
#pragma omp simd reduction(+ : square)
        for (std::ptrdiff_t p = 0; p < D; ++p) {
            const double e = static_cast<double>(x_up[p]) - x_down[p];
            square += e * e;
        }
        const double step = violation < a[down] * square ? violation / square : a[down];
        a[up] += step;
        a[down] = step < a[down] ? a[down] - step : 0.0;
#pragma omp simd
        for (std::ptrdiff_t p = 0; p < D; ++p)
            s.w[p] += step * (static_cast<double>(x_down[p]) - x_up[p]);
    }
    s.shrinks = s.worst > 0 ? s.worst : 1e300;
}

// scores (k) = psi_i w
template <class T> void pair_scores(const T* of_row, const Compatibility& s, double* scores) {
    for (std::ptrdiff_t m = 0; m < s.k; ++m) scores[m] = dense_dot(of_row + m * s.D, s.D, s.w);
}
