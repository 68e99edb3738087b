#include "common/simd.inl.h"

// The sum of the lanes.
template <class T> FML_INLINE T total_of(const typename Simd<T>::Vec& v) {
#if FML_X86_REGIONS && FML_VECTOR_BYTES == 64
    if constexpr (sizeof(T) == 4)
        return _mm512_reduce_add_ps((__m512)v);
    else
        return _mm512_reduce_add_pd((__m512d)v);
#else
    T lanes[Simd<T>::lanes];
    store(lanes, v);
    for (int s = Simd<T>::lanes / 2; s; s /= 2)
        for (int l = 0; l < s; ++l) lanes[l] += lanes[l + s];
    return lanes[0];
#endif
}

template <class T>
FML_INLINE T dot(const T* u, const T* v, std::ptrdiff_t ld) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes, vecs = step_unit / lanes ? step_unit / lanes : 1;
    Vec sum[vecs] = {};
    for (std::ptrdiff_t j = 0; j < ld; j += vecs * lanes) {
        FML_UNROLL
        for (int v0 = 0; v0 < vecs; ++v0)
            sum[v0] += load<Vec>(u + j + v0 * lanes) * load<Vec>(v + j + v0 * lanes);
    }
    FML_UNROLL
    for (int v0 = 1; v0 < vecs; ++v0) sum[0] += sum[v0];
    return total_of<T>(sum[0]);
}

// The step for one rating, of whose row width is known to the compiler if `fixed` is not 0.
template <class T, int fixed, bool adaptive> struct Stepper {
    using Vec = typename Simd<T>::Vec;
    static constexpr int lanes = Simd<T>::lanes;
    T rate, bias_penalty, share;  // share: 1 / f
    bool biases;
    std::ptrdiff_t ld_;

    FML_INLINE std::ptrdiff_t ld() const { return fixed ? fixed * step_unit : ld_; }

    FML_INLINE T run(T value, T* u, T* v, Record<T>& user, Record<T>& item) const {
        const T error = value - dot(u, v, ld()) - (user.bias + item.bias);
        const T pu = user.penalty, pv = item.penalty;
        const T ru = adaptive ? rate / std::sqrt(user.squares) : rate;
        const T rv = adaptive ? rate / std::sqrt(item.squares) : rate;
        const Vec e = broadcast<Vec>(error), wu = broadcast<Vec>(pu), wv = broadcast<Vec>(pv);
        const Vec su = broadcast<Vec>(ru), sv = broadcast<Vec>(rv);
        Vec gu2{}, gv2{};
        for (std::ptrdiff_t j = 0; j < ld(); j += lanes) {
            const Vec uj = load<Vec>(u + j), vj = load<Vec>(v + j);
            const Vec gu = e * vj - wu * uj, gv = e * uj - wv * vj;
            store(u + j, uj + su * gu);
            store(v + j, vj + sv * gv);
            if (adaptive) {
                gu2 += gu * gu;
                gv2 += gv * gv;
            }
        }
        if (adaptive) {
            user.squares += total_of<T>(gu2) * share;
            item.squares += total_of<T>(gv2) * share;
        }
        if (biases) {
            step_bias(error, user);
            step_bias(error, item);
        }
        return error;
    }
    FML_INLINE void step_bias(T error, Record<T>& row) const {
        const T g = error - row.penalty * bias_penalty * row.bias;
        row.bias += (adaptive ? rate / std::sqrt(row.bias_squares) : rate) * g;
        row.bias_squares += g * g;
    }
};

template <class T, int fixed, bool adaptive>
double descend(const Rating<T>* ratings, std::ptrdiff_t n, const Steps& steps,
               const Factors<T>& users, const Factors<T>& items, std::ptrdiff_t f,
               std::ptrdiff_t ld) {
    constexpr std::ptrdiff_t ahead = 4, line = 64 / sizeof(T);
    const Stepper<T, fixed, adaptive> stepper{
        static_cast<T>(steps.rate), static_cast<T>(steps.bias_penalty), T(1) / f, steps.biases, ld};
    double sum = 0;
    for (std::ptrdiff_t e = 0; e < n; ++e) {
        if (e + ahead < n) {
            const Rating<T>& next = ratings[e + ahead];
            FML_PREFETCH(users.records + next.user);
            FML_PREFETCH(items.records + next.item);
            for (std::ptrdiff_t j = 0; j < stepper.ld(); j += line) {
                FML_PREFETCH(users.rows + next.user * stepper.ld() + j);
                FML_PREFETCH(items.rows + next.item * stepper.ld() + j);
            }
        }
        const Rating<T>& now = ratings[e];
        const T error = stepper.run(now.value, users.rows + now.user * stepper.ld(),
                                    items.rows + now.item * stepper.ld(), users.records[now.user],
                                    items.records[now.item]);
        sum += static_cast<double>(error) * error;
    }
    return sum;
}

template <class T, bool adaptive>
double descend_by_width(const Rating<T>* ratings, std::ptrdiff_t n, const Steps& steps,
                        const Factors<T>& users, const Factors<T>& items, std::ptrdiff_t f,
                        std::ptrdiff_t ld) {
    switch (ld / step_unit) {
        case 1:
            return descend<T, 1, adaptive>(ratings, n, steps, users, items, f, ld);
        case 2:
            return descend<T, 2, adaptive>(ratings, n, steps, users, items, f, ld);
        case 3:
            return descend<T, 3, adaptive>(ratings, n, steps, users, items, f, ld);
        case 4:
            return descend<T, 4, adaptive>(ratings, n, steps, users, items, f, ld);
        case 8:
            return descend<T, 8, adaptive>(ratings, n, steps, users, items, f, ld);
        default:
            return descend<T, 0, adaptive>(ratings, n, steps, users, items, f, ld);
    }
}

// One step for each of n ratings in turn; the sum of the squared errors.
template <class T>
double descend_block(const Rating<T>* ratings, std::ptrdiff_t n, const Steps& steps,
                     const Factors<T>& users, const Factors<T>& items, std::ptrdiff_t f,
                     std::ptrdiff_t ld) {
    return steps.adaptive ? descend_by_width<T, true>(ratings, n, steps, users, items, f, ld)
                          : descend_by_width<T, false>(ratings, n, steps, users, items, f, ld);
}
