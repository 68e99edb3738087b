// One sweep of coordinate descent on all classes of a row; see multiclass.h.
#include "linear_svm/descent.inl.h"

// G (stride) += v times a row of w.
FML_INLINE void add_entry(const double* w, std::ptrdiff_t stride, double v, double* G) {
#pragma omp simd
    for (std::ptrdiff_t m = 0; m < stride; ++m) G[m] += v * w[m];
}

// G = W x of row i.
template <class T>
void class_scores(const Rows<T>& X, const Multiclass& s, std::ptrdiff_t i, double* G) {
    for (std::ptrdiff_t m = 0; m < s.stride; ++m) G[m] = s.bias * s.w[X.d * s.stride + m];
    if (X.indptr) {
        for (std::int32_t q = X.indptr[i]; q < X.indptr[i + 1]; ++q)
            add_entry(s.w + X.indices[q] * s.stride, s.stride, X.data[q], G);
    } else {
        for (std::ptrdiff_t p = 0; p < X.d; ++p)
            add_entry(s.w + p * s.stride, s.stride, X.data[i * X.d + p], G);
    }
}

template <class T>
FML_INLINE void add_changes(const Rows<T>& X, const Multiclass& s, std::ptrdiff_t i,
                            const double* change) {
    add_entry(change, s.stride, s.bias, s.w + X.d * s.stride);
    if (X.indptr) {
        for (std::int32_t q = X.indptr[i]; q < X.indptr[i + 1]; ++q)
            add_entry(change, s.stride, X.data[q], s.w + X.indices[q] * s.stride);
    } else {
        for (std::ptrdiff_t p = 0; p < X.d; ++p)
            add_entry(change, s.stride, X.data[i * X.d + p], s.w + p * s.stride);
    }
}

// The a_m, and by how much they change, that minimise sum of Q a_m² / 2 + B_m a_m under sum of
// a = 0, a_y <= C and a_m <= 0 for others: a_m = min(bound, (beta - B_m) / Q), with D to be sorted.
FML_INLINE void best_classes(const double* B, std::ptrdiff_t k, std::ptrdiff_t y, double C,
                             double Q, double* a, double* D, double* change) {
    for (std::ptrdiff_t m = 0; m < k; ++m) {
        const double value = B[m] + (m == y ? Q * C : 0);
        std::ptrdiff_t r = m;
        for (; r > 0 && D[r - 1] < value; --r) D[r] = D[r - 1];
        D[r] = value;
    }
    double beta = D[0] - Q * C;
    std::ptrdiff_t r = 1;
    for (; r < k && beta < r * D[r]; ++r) beta += D[r];
    beta /= r;
    for (std::ptrdiff_t m = 0; m < k; ++m) {
        const double bound = m == y ? C : 0, value = (beta - B[m]) / Q;
        const double best = value < bound ? value : bound;
        change[m] = best - a[m];
        a[m] = best;  // not a[m] + change[m], which might miss the bound
    }
}

// Whether a row loses nothing, or all to one class, and no other's score comes near.
FML_INLINE bool settled(const double* G, std::ptrdiff_t k, std::ptrdiff_t y, double C,
                        const double* a, double shrinks) {
    std::ptrdiff_t top = y;
    if (a[y] != 0) {
        if (a[y] < C) return false;
        for (std::ptrdiff_t m = 0; m < k; ++m)
            if (m != y && a[m] < (top == y ? 0 : a[top])) top = m;
        if (a[top] > -C * (1 - 1e-12)) return false;
    }
    double others = -1e300;
    for (std::ptrdiff_t m = 0; m < k; ++m)
        if (m != top && G[m] > others) others = G[m];
    return others < G[top] - shrinks;
}

template <class T> void sweep_classes(const Rows<T>& X, Multiclass& s) {
    double *G = s.scratch, *D = G + s.stride, *change = D + s.stride;
    shuffle(s);
    s.worst = 0;
    for (std::ptrdiff_t m = 0; m < s.stride; ++m) change[m] = 0;
    for (std::ptrdiff_t t = 0; t < s.active; ++t) {
        const std::ptrdiff_t i = s.order[t], y = s.codes[i];
        double* a = s.a + i * s.k;
        if (!(s.norms[i] > 0)) continue;
        class_scores(X, s, i, G);
        for (std::ptrdiff_t m = 0; m < s.k; ++m) G[m] += m != y;
        // The largest gradient, and the least of those whose a may grow.
        double most = G[0], least = a[y] < s.C[i] ? G[y] : 1e300;
        for (std::ptrdiff_t m = 0; m < s.k; ++m) {
            most = G[m] > most ? G[m] : most;
            if (m != y && a[m] < 0 && G[m] < least) least = G[m];
        }
        if (most - least <= 1e-12) {
            if (settled(G, s.k, y, s.C[i], a, s.shrinks)) {
                s.order[t--] = s.order[--s.active];
                s.order[s.active] = static_cast<std::int32_t>(i);
            }
            continue;
        }
        s.worst = most - least > s.worst ? most - least : s.worst;
        for (std::ptrdiff_t m = 0; m < s.k; ++m) G[m] -= s.norms[i] * a[m];
        best_classes(G, s.k, y, s.C[i], s.norms[i], a, D, change);
        add_changes(X, s, i, change);
    }
    s.shrinks = s.worst > 0 ? s.worst : 1e300;
}
