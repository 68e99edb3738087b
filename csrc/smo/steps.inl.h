// Two-variable steps inside a working set whose kernel matrix lies in cache.
#include "common/simd.inl.h"

// The first k with x[k] >= value, or n.
template <class T>
FML_INLINE std::ptrdiff_t first_at_least(const T* x, std::ptrdiff_t n, T value) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    constexpr unsigned all = static_cast<unsigned>((std::uint64_t{1} << lanes) - 1);
    const Vec v = broadcast<Vec>(value);
    for (std::ptrdiff_t k = 0; k < n; k += lanes) {
        const unsigned hit = all & ~below<T>(load<Vec>(x + k), v);
        if (hit) return k + lowest_bit(hit);
    }
    return n;
}

FML_INLINE double largest(const double* x, std::ptrdiff_t n) {
    double best = -std::numeric_limits<double>::infinity();
#pragma omp simd reduction(max : best)
    for (std::ptrdiff_t k = 0; k < n; ++k) best = x[k] > best ? x[k] : best;
    return best;
}

// v -= t (Ki - Kj), and what may rise of it.
template <class T>
FML_INLINE void move_pair(const T* Ki, const T* Kj, double t, std::ptrdiff_t n, double* v,
                          const double* rise, double* risen) {
    for (std::ptrdiff_t k = 0; k < n; ++k) {
        v[k] -= t * (static_cast<double>(Ki[k]) - static_cast<double>(Kj[k]));
        risen[k] = v[k] + rise[k];
    }
}

// What a step of each k against i would gain, or -1; returns the largest difference.
template <class T>
FML_INLINE double gains_of(const T* Ki, const T* diagonal, double vi, T ki, std::ptrdiff_t n,
                           const double* v, const double* fall, float* gain) {
    double widest = -std::numeric_limits<double>::infinity();
    const T tau = T(1e-12);
#pragma omp simd reduction(max : widest)
    for (std::ptrdiff_t k = 0; k < n; ++k) {
        const double room = vi - (v[k] + fall[k]);
        widest = room > widest ? room : widest;
        const T curve = ki + diagonal[k] - 2 * Ki[k];
        const float a = static_cast<float>(curve > tau ? curve : tau);
        const float g = static_cast<float>(room);
        gain[k] = g > 0 ? g * g / a : -1.0f;
    }
    return widest;
}

FML_INLINE float largest(const float* x, std::ptrdiff_t n) {
    float best = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : best)
    for (std::ptrdiff_t k = 0; k < n; ++k) best = x[k] > best ? x[k] : best;
    return best;
}

FML_INLINE void mark(double beta, double lower, double upper, double* rise, double* fall) {
    const double infinity = std::numeric_limits<double>::infinity();
    *rise = beta < upper ? 0 : -infinity;
    *fall = beta > lower ? 0 : infinity;
}

#include "smo/newton.inl.h"

struct Choice {
    std::ptrdiff_t i, j;
    double gap;
    float gain;
};

// The pair of variables in [begin, end) that a step gains most with, i the one that may rise most.
template <class T>
Choice choose_pair(const WorkingSet<T>& set, std::ptrdiff_t begin, std::ptrdiff_t end) {
    Choice c{-1, -1, -std::numeric_limits<double>::infinity(), -1.0f};
    const std::ptrdiff_t n = end - begin;
    if (n <= 0) return c;
    const double top = largest(set.risen + begin, n);
    if (!(top > c.gap)) return c;
    c.i = begin + first_at_least(set.risen + begin, n, top);
    if (c.i >= end) return c;
    c.gap = gains_of(set.K + c.i * set.ld + begin, set.diagonal + begin, top, set.diagonal[c.i], n,
                     set.v + begin, set.fall + begin, set.gain + begin);
    c.gain = largest(set.gain + begin, n);
    if (c.gain >= 0) c.j = begin + first_at_least(set.gain + begin, n, c.gain);
    return c;
}

// One step with a pair, exactly to a bound if it goes there; returns what it gains.
template <class T> double take_step(WorkingSet<T>& set, std::ptrdiff_t i, std::ptrdiff_t j) {
    const T *Ki = set.K + i * set.ld, *Kj = set.K + j * set.ld;
    double curve = static_cast<double>(set.diagonal[i]) + set.diagonal[j] - 2.0 * Ki[j];
    if (!(curve > 1e-12)) curve = 1e-12;
    const double want = (set.v[i] - set.v[j]) / curve;
    const double up = set.upper[i] - set.beta[i], down = set.beta[j] - set.lower[j];
    const double room = up < down ? up : down, t = want < room ? want : room;
    set.beta[i] = t == up ? set.upper[i] : set.beta[i] + t;
    set.beta[j] = t == down ? set.lower[j] : set.beta[j] - t;
    mark(set.beta[i], set.lower[i], set.upper[i], set.rise + i, set.fall + i);
    mark(set.beta[j], set.lower[j], set.upper[j], set.rise + j, set.fall + j);
    const double gain = t * (set.v[i] - set.v[j] - t * curve / 2);
    move_pair(Ki, Kj, t, set.n, set.v, set.rise, set.risen);
    return gain;
}

// Newton steps take as much time as two-variable steps do, or a fraction while those gain more with it.
template <class T> struct NewtonPurse {
    double saved = 0, price = 1, gained = 0, spent = 0;
    std::ptrdiff_t last_count = 0;

    static double cost(std::ptrdiff_t count, std::ptrdiff_t size) {
        const double n = static_cast<double>(count);
        return n * n * n / 3 + 2 * n * size;
    }

    // After a two-variable step that gained so much.
    void spend(WorkingSet<T>& set, const NewtonMemory& memory, double gain) {
        saved += 4.0 * set.n;
        spent += 4.0 * set.n;
        gained += gain;
        if (saved < price * cost(last_count, set.n)) return;
        saved = 0;
        double rate = gained / spent;
        std::ptrdiff_t split;
        for (int hits = 0; hits < 256; ++hits) {
            const std::ptrdiff_t count = free_of(set, memory, &split);
            const bool more = count > last_count && hits == 0;
            last_count = count;
            if (count < 3 || count > memory.most || more) return;
            const double won = newton_step(set, memory, count, split);
            if (!(won > rate * cost(count, set.n))) break;
            price = 1;
        }
        price = price < 64 ? 2 * price : price;
        gained = spent = 0;
    }
};

template <class T> FML_INLINE void mark_all(WorkingSet<T>& set) {
    for (std::ptrdiff_t k = 0; k < set.n; ++k) {
        mark(set.beta[k], set.lower[k], set.upper[k], set.rise + k, set.fall + k);
        set.risen[k] = set.v[k] + set.rise[k];
    }
}

// Steps until the violation inside the set is at most `stop`, or `most` are done; returns how many.
// Variables [0, split) and [split, n) are not paired with each other.
template <class T>
std::ptrdiff_t pair_steps(WorkingSet<T>& set, const NewtonMemory& memory, double stop,
                          std::ptrdiff_t most) {
    mark_all(set);
    NewtonPurse<T> purse;
    std::ptrdiff_t steps = 0;
    for (; steps < most; ++steps) {
        Choice best = choose_pair(set, 0, set.split);
        if (set.split < set.n) {
            const Choice other = choose_pair(set, set.split, set.n);
            const double gap = other.gap > best.gap ? other.gap : best.gap;
            if (other.gain > best.gain) best = other;
            best.gap = gap;
        }
        if (!(best.gap > stop) || best.j < 0) break;
        purse.spend(set, memory, take_step(set, best.i, best.j));
    }
    return steps;
}

// One step with one variable, to a bound if it is on the way.
template <class T> void take_single_step(WorkingSet<T>& set, std::ptrdiff_t i) {
    const double curve = set.diagonal[i] > T(1e-12) ? set.diagonal[i] : 1e-12;
    double to = set.beta[i] + set.v[i] / curve;
    to = to > set.upper[i] ? set.upper[i] : to < set.lower[i] ? set.lower[i] : to;
    const double t = to - set.beta[i];
    set.beta[i] = to;
    mark(to, set.lower[i], set.upper[i], set.rise + i, set.fall + i);
    const T* Ki = set.K + i * set.ld;
    for (std::ptrdiff_t k = 0; k < set.n; ++k) {
        set.v[k] -= t * static_cast<double>(Ki[k]);
        set.risen[k] = set.v[k] + set.rise[k];
    }
}

// The same without the constraint on the sum: one variable a step, or two where those gain more. One
// at a time, opposite labels of equal rows would climb to their bounds by steps of constant length.
template <class T>
std::ptrdiff_t single_steps(WorkingSet<T>& set, const NewtonMemory&, double stop,
                            std::ptrdiff_t most) {
    mark_all(set);
    std::ptrdiff_t steps = 0;
    for (; steps < most; ++steps) {
        double up = 0, down = 0;
#pragma omp simd reduction(max : up) reduction(min : down)
        for (std::ptrdiff_t k = 0; k < set.n; ++k) {
            // risen is -infinity, and v + fall infinity, where there is no room.
            const double rising = set.risen[k], falling = set.v[k] + set.fall[k];
            up = rising > up ? rising : up;
            down = falling < down ? falling : down;
            const double open = rising > 0 ? rising : falling < 0 ? falling : 0;
            const double curve = static_cast<double>(set.diagonal[k]);
            set.gain[k] = static_cast<float>(open * open / (curve > 1e-12 ? curve : 1e-12));
        }
        const float best = largest(set.gain, set.n);
        const std::ptrdiff_t i = first_at_least(set.gain, set.n, best);
        if (!(up - down > stop) || i >= set.n || !(best > 0)) break;
        const Choice pair = choose_pair(set, 0, set.n);
        if (pair.j >= 0 && pair.gain > best)
            take_step(set, pair.i, pair.j);
        else
            take_single_step(set, i);
    }
    return steps;
}

// sums[j] += coef[i] rows[i][j] over all rows, for j in [begin, end).
inline void add_rows_block(const float* const* rows, std::ptrdiff_t count, const double* coef,
                           std::ptrdiff_t begin, std::ptrdiff_t end, double* sums) {
    std::ptrdiff_t i = 0;
    for (; i + 4 <= count; i += 4) {
        const float *a = rows[i], *b = rows[i + 1], *c = rows[i + 2], *d = rows[i + 3];
        const double wa = coef[i], wb = coef[i + 1], wc = coef[i + 2], wd = coef[i + 3];
        for (std::ptrdiff_t j = begin; j < end; ++j)
            sums[j] += (wa * static_cast<double>(a[j]) + wb * static_cast<double>(b[j])) +
                       (wc * static_cast<double>(c[j]) + wd * static_cast<double>(d[j]));
    }
    for (; i < count; ++i)
        for (std::ptrdiff_t j = begin; j < end; ++j)
            sums[j] += coef[i] * static_cast<double>(rows[i][j]);
}
