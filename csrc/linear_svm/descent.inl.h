// One sweep of dual coordinate descent; see descent.h.
#include "linear_svm/passes.inl.h"

// y += a x
template <class T>
FML_INLINE void axpy(const T* x, std::ptrdiff_t n, double a, double* y) {
    using Vec = Simd<double>::Vec;
    constexpr int lanes = Simd<double>::lanes;
    const Vec scale = broadcast<Vec>(a);
    std::ptrdiff_t p = 0;
    for (; p + 4 * lanes <= n; p += 4 * lanes) {
        FML_UNROLL
        for (int v = 0; v < 4; ++v) {
            double* to = y + p + v * lanes;
            store(to, load<Vec>(to) + load_as<double>(x + p + v * lanes) * scale);
        }
    }
    for (; p < n; ++p) y[p] += a * x[p];
}

// Where the gradient comes from: rows, or their Gram matrix.
template <class T> struct FromRows {
    const Rows<T>& X;
    double bias;
    FML_INLINE double product(const Descent& s, const Coordinate& row) const {
        const T* x = X.data + row.first;
        const double z = X.indptr ? sparse_dot(x, X.indices + row.first, row.size, s.at)
                                  : dense_dot(x, row.size, s.at);
        return z + bias * s.at[X.d];
    }
    FML_INLINE void add(const Descent& s, const Coordinate& row, double change) const {
        const T* x = X.data + row.first;
        s.at[X.d] += change * bias;
        if (X.indptr)
            sparse_add(x, X.indices + row.first, row.size, change, s.at);
        else
            axpy(x, row.size, change, s.at);
    }
    // Rows come in no order that the machine could foresee.
    FML_INLINE void soon(const Coordinate& row) const {
        const T* x = X.data + row.first;
        FML_PREFETCH(x);
        if (!X.indptr) return;
        const std::int32_t* at = X.indices + row.first;
        const std::ptrdiff_t size = row.size < 512 ? row.size : 512;
        for (std::ptrdiff_t q = 0; q < size; q += 64 / sizeof(T)) FML_PREFETCH(x + q);
        for (std::ptrdiff_t q = 0; q < size; q += 16) FML_PREFETCH(at + q);
    }
};
template <class T> struct FromGram {
    const T* K;
    FML_INLINE double product(const Descent& s, const Coordinate& row) const {
        return s.at[&row - s.rows];
    }
    FML_INLINE void add(const Descent& s, const Coordinate& row, double change) const {
        axpy(K + (&row - s.rows) * s.n, s.n, change, s.at);
    }
    FML_INLINE void soon(const Coordinate&) const {}
};

// The first `active` of `order`.
template <class State> void shuffle(State& s) {
    for (std::ptrdiff_t t = s.active - 1; t > 0; --t) {
        s.state ^= s.state << 13;
        s.state ^= s.state >> 7;
        s.state ^= s.state << 17;
        const std::ptrdiff_t r = (s.state >> 32) * static_cast<std::uint64_t>(t + 1) >> 32;
        const std::int32_t kept = s.order[t];
        s.order[t] = s.order[r];
        s.order[r] = kept;
    }
}

// The least of Q (x - a)² / 2 + G (x - a) + epsilon |x| over [low, high].
FML_INLINE double best_value(double a, double G, double Q, double epsilon, double low,
                             double high) {
    if (!(Q > 0)) return G < -epsilon ? high : G > epsilon ? low : a;
    const double v = a * Q - G;
    const double x = (v > epsilon ? v - epsilon : v < -epsilon ? v + epsilon : 0) / Q;
    return x < low ? low : x > high ? high : x;
}

// What a row adds to the gap by which the objective can fall on the way from a to a bound; beyond
// zero it falls by 2 epsilon less.
FML_INLINE double linear_gap(double a, double bound, double violation, double epsilon) {
    const double way = bound > a ? bound - a : a - bound;
    const double near = (a < 0) != (bound < a) ? (a < 0 ? -a : a) : 0;
    if (near == 0 || near >= way) return violation * way;
    const double beyond = violation - 2 * epsilon;
    return violation * near + (beyond > 0 ? beyond * (way - near) : 0);
}

template <class Source> FML_INLINE void sweep(const Source& source, Descent& s) {
    shuffle(s);
    const double epsilon = s.epsilon;
    double worst = 0, sum = 0, gap = 0;
    for (std::ptrdiff_t t = 0; t < s.active; ++t) {
        if (t + 6 < s.active) FML_PREFETCH(s.rows + s.order[t + 6]);
        if (t + 3 < s.active) source.soon(s.rows[s.order[t + 3]]);
        const std::ptrdiff_t i = s.order[t];
        Coordinate& row = s.rows[i];
        const double a = row.a;
        const double G = source.product(s, row) - row.b + row.curve * a;
        const double violation = violation_of(row, G, epsilon);
        if (violation <= 0) {
            if (violation < -s.shrinks) {
                s.order[t--] = s.order[--s.active];
                s.order[s.active] = static_cast<std::int32_t>(i);
            }
            continue;
        }
        worst = violation > worst ? violation : worst;
        sum += violation;
        row.a = best_value(a, G, row.Q, epsilon, row.low, row.high);
        if (row.a == a) continue;
        // The row's part of it, before the step.
        gap += row.curve > 0 ? violation * violation / (2 * row.curve)
                             : linear_gap(a, row.a > a ? row.high : row.low, violation, epsilon);
        source.add(s, row, row.a - a);
    }
    s.worst = worst;
    s.sum = sum;
    s.gap = gap;
    s.shrinks = worst > 0 ? s.part * worst : 1e300;
}

template <class T> void sweep_rows(const Rows<T>& X, Descent& s) {
    sweep(FromRows<T>{X, s.bias}, s);
}
template <class T> void sweep_gram(const T* K, Descent& s) { sweep(FromGram<T>{K}, s); }
