// One sweep of coordinate descent on all classes of a row; see multiclass.h.
#include "linear_svm/descent.inl.h"

// Classes that are summed at a time: so many that their sums stay in registers, twice, or each would
// wait for the one before.
constexpr std::ptrdiff_t class_unit = 8;
constexpr int class_vecs = class_unit / Simd<double>::lanes;
struct ClassSums {
    Simd<double>::Vec at[class_vecs];
};
FML_INLINE ClassSums load_classes(const double* x) {
    ClassSums sums;
    FML_UNROLL
    for (int v = 0; v < class_vecs; ++v)
        sums.at[v] = load<Simd<double>::Vec>(x + v * Simd<double>::lanes);
    return sums;
}
FML_INLINE void store_classes(double* x, const ClassSums& sums) {
    FML_UNROLL
    for (int v = 0; v < class_vecs; ++v) store(x + v * Simd<double>::lanes, sums.at[v]);
}
// sums += v x
FML_INLINE void add_classes(ClassSums& sums, double v, const ClassSums& x) {
    const auto scale = broadcast<Simd<double>::Vec>(v);
    FML_UNROLL
    for (int r = 0; r < class_vecs; ++r) sums.at[r] += scale * x.at[r];
}

// The entries of a row: columns are at their places, or those of `indices`.
template <class T> struct Entries {
    const T* x;
    const std::int32_t* indices;
    std::ptrdiff_t size;
    FML_INLINE std::ptrdiff_t column(std::ptrdiff_t q) const { return indices ? indices[q] : q; }
};
template <class T> FML_INLINE Entries<T> entries_of(const Rows<T>& X, std::ptrdiff_t i) {
    if (!X.indptr) return {X.data + i * X.d, nullptr, X.d};
    const std::ptrdiff_t first = X.indptr[i];
    return {X.data + first, X.indices + first, X.indptr[i + 1] - first};
}

// G = W x of row i.
template <class T>
void class_scores(const Rows<T>& X, const Multiclass& s, std::ptrdiff_t i, double* G) {
    const Entries<T> row = entries_of(X, i);
    for (std::ptrdiff_t m = 0; m < s.stride; m += class_unit) {
        const double* w = s.w + m;
        ClassSums even{}, odd{};
        add_classes(even, s.bias, load_classes(w + X.d * s.stride));
        std::ptrdiff_t q = 0;
        for (; q + 2 <= row.size; q += 2) {
            add_classes(even, row.x[q], load_classes(w + row.column(q) * s.stride));
            add_classes(odd, row.x[q + 1], load_classes(w + row.column(q + 1) * s.stride));
        }
        if (q < row.size) add_classes(even, row.x[q], load_classes(w + row.column(q) * s.stride));
        add_classes(even, 1, odd);
        store_classes(G + m, even);
    }
}

// w += v change
FML_INLINE void add_change(double* w, double v, const ClassSums& change) {
    ClassSums sums = load_classes(w);
    add_classes(sums, v, change);
    store_classes(w, sums);
}
template <class T>
FML_INLINE void add_changes(const Rows<T>& X, const Multiclass& s, std::ptrdiff_t i,
                            const double* change) {
    const Entries<T> row = entries_of(X, i);
    const std::ptrdiff_t stride = s.stride;
    for (std::ptrdiff_t m = 0; m < stride; m += class_unit) {
        const ClassSums by = load_classes(change + m);
        double* w = s.w + m;
        add_change(w + X.d * stride, s.bias, by);
        for (std::ptrdiff_t q = 0; q < row.size; ++q)
            add_change(w + row.column(q) * stride, row.x[q], by);
    }
}

// Rows come in no order that the machine could foresee.
template <class T>
FML_INLINE void entries_soon(const Rows<T>& X, const Multiclass& s, std::ptrdiff_t i) {
    FML_PREFETCH(s.a + i * s.k);
    const std::ptrdiff_t first = X.indptr ? X.indptr[i] : i * X.d;
    const std::ptrdiff_t size = X.indptr ? X.indptr[i + 1] - first : X.d;
    const std::ptrdiff_t most = size < 512 ? size : 512;
    for (std::ptrdiff_t q = 0; q < most; q += 64 / sizeof(T)) FML_PREFETCH(X.data + first + q);
    for (std::ptrdiff_t q = 0; X.indptr && q < most; q += 16) FML_PREFETCH(X.indices + first + q);
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
        if (t + 3 < s.active) entries_soon(X, s, s.order[t + 3]);
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
