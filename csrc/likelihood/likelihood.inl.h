#include "common/simd.inl.h"
// after the vectors that it is made of
#include "common/math.inl.h"

// One vector's worth of a family's formulas over n entries, the last ones by way of a buffer.
template <class T, class Formula>
FML_INLINE void by_vectors(const T* ratings, const T* scores, std::ptrdiff_t n, T* value, T* first,
                           T* second, const Formula& formula) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    std::ptrdiff_t e = 0;
    Vec v, a, b;
    for (; e + lanes <= n; e += lanes) {
        formula.run(load<Vec>(ratings + e), load<Vec>(scores + e), v, a, b);
        store(value + e, v);
        store(first + e, a);
        store(second + e, b);
    }
    if (e == n) return;
    T in[2][lanes] = {}, out[3][lanes];
    for (int l = 0; l < n - e; ++l) {
        in[0][l] = ratings[e + l];
        in[1][l] = scores[e + l];
    }
    formula.run(load<Vec>(in[0]), load<Vec>(in[1]), v, a, b);
    store(out[0], v);
    store(out[1], a);
    store(out[2], b);
    for (int l = 0; l < n - e; ++l) {
        value[e + l] = out[0][l];
        first[e + l] = out[1][l];
        second[e + l] = out[2][l];
    }
}

template <class T> struct Gaussian {
    using Vec = typename Simd<T>::Vec;
    FML_INLINE void run(const Vec& r, const Vec& s, Vec& value, Vec& first, Vec& second) const {
        first = r - s;
        value = first * first * T(-0.5);
        second = broadcast<Vec>(T(-1));
    }
};

template <class T> struct Bernoulli {
    using Vec = typename Simd<T>::Vec;
    FML_INLINE void run(const Vec& r, const Vec& s, Vec& value, Vec& first, Vec& second) const {
        const Vec zero = broadcast<Vec>(T(0)), one = broadcast<Vec>(T(1));
        const Vec small =
            vexp<T>(zero - absolute<T>(s));  // of the likelier outcome: never overflows
        const Vec share = one / (one + small), rest = small * share;
        const Vec p = select(s < zero, rest, share);
        value = r * s - select(s < zero, zero, s) - vlog<T>(one + small);
        first = r - p;
        second = zero - share * rest;
    }
};

template <class T> struct Poisson {
    using Vec = typename Simd<T>::Vec;
    FML_INLINE void run(const Vec& r, const Vec& s, Vec& value, Vec& first, Vec& second) const {
        const Vec mean = vexp<T>(s);
        value = r * s - mean;
        first = r - mean;
        second = broadcast<Vec>(T(0)) - mean;
    }
};

template <class T>
void gaussian_block(const T* ratings, const T* scores, std::ptrdiff_t n, T* value, T* first,
                    T* second) {
    by_vectors(ratings, scores, n, value, first, second, Gaussian<T>{});
}
template <class T>
void bernoulli_block(const T* ratings, const T* scores, std::ptrdiff_t n, T* value, T* first,
                     T* second) {
    by_vectors(ratings, scores, n, value, first, second, Bernoulli<T>{});
}
template <class T>
void poisson_block(const T* ratings, const T* scores, std::ptrdiff_t n, T* value, T* first,
                   T* second) {
    by_vectors(ratings, scores, n, value, first, second, Poisson<T>{});
}

constexpr std::ptrdiff_t chunk_size = 512;

// out[e] = x·y for n entries.
template <class T>
void products(const Scored<T>& rows, const std::int32_t* indices, std::ptrdiff_t n, const T* x,
              T* out) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    constexpr std::ptrdiff_t ahead = 8;
    for (std::ptrdiff_t e = 0; e < n; ++e) {
        if (e + ahead < n)
            for (std::ptrdiff_t j = 0; j < rows.ld; j += 64 / static_cast<int>(sizeof(T)))
                FML_PREFETCH(rows.factors + indices[e + ahead] * rows.ld + j);
        const T* y = rows.factors + indices[e] * rows.ld;
        Vec sum{};
        for (std::ptrdiff_t j = 0; j < rows.ld; j += lanes)
            sum += load<Vec>(x + j) * load<Vec>(y + j);
        T parts[lanes], dot = 0;
        store(parts, sum);
        for (int l = 0; l < lanes; ++l) dot += parts[l];
        out[e] = dot;
    }
}

template <class T>
void linearise_block(const Scored<T>& rows, Likelihood<T> likelihood, std::ptrdiff_t begin,
                     std::ptrdiff_t end, const T* x, T* scores, T* target, T* scale, double* loss) {
    constexpr T tiny = std::numeric_limits<T>::epsilon();
    T value[chunk_size], first[chunk_size], second[chunk_size], dots[chunk_size];
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        loss[i] = 0;
        for (std::ptrdiff_t q = rows.indptr[i]; q < rows.indptr[i + 1]; q += chunk_size) {
            const std::ptrdiff_t left = rows.indptr[i + 1] - q;
            const std::ptrdiff_t n = left < chunk_size ? left : chunk_size;
            products(rows, rows.indices + q, n, x + i * rows.ld, dots);
            for (std::ptrdiff_t e = 0; e < n; ++e)
                scores[q + e] = rows.offset[rows.indices[q + e]] + dots[e];
            likelihood(rows.ratings + q, scores + q, n, value, first, second);
            double sum = 0;
#pragma omp simd reduction(- : sum)
            for (std::ptrdiff_t e = 0; e < n; ++e) {
                const T slope = first[e];
                const T least = (slope < 0 ? -slope : slope) * T(1 / longest_move) + tiny;
                const T curvature = -second[e] > least ? -second[e] : least;
                const T root = std::sqrt(curvature);
                scale[q + e] = root;
                target[q + e] = root * dots[e] + slope / root;
                sum -= value[e];
            }
            loss[i] += sum;
        }
    }
}

// Minus the log likelihood of a row whose scores are those of x + t·move.
template <class T>
double loss_at(const Scored<T>& rows, Likelihood<T> likelihood, std::ptrdiff_t i, const T* scores,
               const T* moves, T t) {
    T at[chunk_size], value[chunk_size], first[chunk_size], second[chunk_size];
    double sum = 0;
    for (std::ptrdiff_t q = rows.indptr[i]; q < rows.indptr[i + 1]; q += chunk_size) {
        const std::ptrdiff_t left = rows.indptr[i + 1] - q;
        const std::ptrdiff_t n = left < chunk_size ? left : chunk_size;
        for (std::ptrdiff_t e = 0; e < n; ++e) at[e] = scores[q + e] + t * moves[q + e];
        likelihood(rows.ratings + q, at, n, value, first, second);
#pragma omp simd reduction(- : sum)
        for (std::ptrdiff_t e = 0; e < n; ++e) sum -= value[e];
    }
    return sum;
}

// |x + t (step - x)|²
template <class T>
double squares_at(const T* x, const T* step, std::ptrdiff_t ld, T t) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::ptrdiff_t j = 0; j < ld; ++j) {
        const double at = x[j] + t * (step[j] - x[j]);
        sum += at * at;
    }
    return sum;
}

template <class T>
void damp_block(const Scored<T>& rows, Likelihood<T> likelihood, std::ptrdiff_t begin,
                std::ptrdiff_t end, const double* penalty, const T* step, T* x, T* scores, T* moves,
                const double* loss, double* total) {
    constexpr int most_halvings = 30;
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        T* mine = x + i * rows.ld;
        const T* there = step + i * rows.ld;
        const std::ptrdiff_t first = rows.indptr[i], n = rows.indptr[i + 1] - first;
        products(rows, rows.indices + first, n, there, moves + first);
        for (std::ptrdiff_t q = first; q < first + n; ++q)
            moves[q] += rows.offset[rows.indices[q]] - scores[q];
        const double half = penalty[i] / 2;
        const double before = loss[i] + half * squares_at(mine, there, rows.ld, T(0));
        double after = before;
        T t = 1;
        for (int halvings = 0;; t /= 2, ++halvings) {
            if (halvings == most_halvings) {
                after = before;
                break;
            }
            after = loss_at(rows, likelihood, i, scores, moves, t) +
                    half * squares_at(mine, there, rows.ld, t);
            if (after <= before) {
                for (std::ptrdiff_t j = 0; j < rows.ld; ++j) mine[j] += t * (there[j] - mine[j]);
                break;
            }
        }
        *total += after;
    }
}
