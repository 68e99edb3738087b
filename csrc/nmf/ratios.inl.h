// What losses other than the squared one make of X and V = W·H, both a panel of columns at a time or
// only where X is stored. Little of V exists at once.
#include "nmf/narrow.inl.h"

#include "common/math.inl.h"

// The beta of a loss: those with a name have simpler formulas.
constexpr int itakura_saito = 0, kullback_leibler = 1, frobenius = 2, any_beta = 3;

template <class T> constexpr T tiny = T(std::numeric_limits<float>::epsilon());  // scikit-learn's

template <class T> FML_INLINE typename Simd<T>::Vec off_zero(const typename Simd<T>::Vec& v) {
    const auto least = broadcast<typename Simd<T>::Vec>(tiny<T>);
    return select(v < least, least, v);
}

// x / v for finite x and v > 0, within two units of the last place: a division of eight doubles keeps
// a core from multiplying for as long as ten products take.
template <class T>
FML_INLINE typename Simd<T>::Vec quotient(const typename Simd<T>::Vec& x,
                                          const typename Simd<T>::Vec& v) {
#if FML_X86_REGIONS && FML_VECTOR_BYTES == 64
    using Vec = typename Simd<T>::Vec;
    const Vec one = broadcast<Vec>(T(1)), zero = broadcast<Vec>(T(0));
    const Vec largest = broadcast<Vec>(std::numeric_limits<T>::max());
    Vec inverse;
    if constexpr (sizeof(T) == 4)
        inverse = (Vec)_mm512_rcp14_ps((__m512)v);
    else
        inverse = (Vec)_mm512_rcp14_pd((__m512d)v);
    const Vec off = one - v * inverse;
    inverse += inverse * (off + off * off);
    const Vec q = x * inverse;
    return select(v > largest, zero,
                  q + inverse * (x - v * q));  // infinity has no digits to correct
#else
    return x / v;
#endif
}

// x v^(beta - 2)
template <class T, int loss>
FML_INLINE typename Simd<T>::Vec weighted(const typename Simd<T>::Vec& x,
                                          const typename Simd<T>::Vec& v, T beta) {
    if constexpr (loss == kullback_leibler) return quotient<T>(x, off_zero<T>(v));
    if constexpr (loss == itakura_saito) {
        const auto inverse = broadcast<typename Simd<T>::Vec>(T(1)) / off_zero<T>(v);
        return inverse * inverse * x;
    }
    return vpow<T>(beta < 2 ? off_zero<T>(v) : v, beta - 2) * x;
}

// v^(beta - 1)
template <class T, int loss>
FML_INLINE typename Simd<T>::Vec weight(const typename Simd<T>::Vec& v, T beta) {
    if constexpr (loss == itakura_saito)
        return broadcast<typename Simd<T>::Vec>(T(1)) / off_zero<T>(v);
    return vpow<T>(beta < 1 ? off_zero<T>(v) : v, beta - 1);
}

// What an entry adds to the divergence, but for what the sums over all of X and V tell. Entries that
// are all but zero add nothing.
template <class T, int loss>
FML_INLINE typename Simd<T>::Vec cost(const typename Simd<T>::Vec& x,
                                      const typename Simd<T>::Vec& v, T beta) {
    using Vec = typename Simd<T>::Vec;
    const Vec zero = broadcast<Vec>(T(0)), least = off_zero<T>(v);
    const auto counts = x > broadcast<Vec>(tiny<T>);
    Vec sum;
    if constexpr (loss == kullback_leibler) {
        sum = x * vlog<T>(x / least) - x;
    } else if constexpr (loss == itakura_saito) {
        sum = x / least - vlog<T>(x / least);
    } else {
        sum = vpow<T>(x, beta) - x * vpow<T>(least, beta - 1) * beta;
    }
    return select(counts, sum, zero);
}

template <class T> FML_INLINE double sum_lanes(const typename Simd<T>::Vec& v, std::ptrdiff_t n) {
    T each[Simd<T>::lanes];
    store(each, v);
    double sum = 0;
    for (std::ptrdiff_t l = 0; l < n && l < Simd<T>::lanes; ++l) sum += each[l];
    return sum;
}

// V = m rows of W times columns [j, j + cols) of `flat`, H, and zeros up to whole vectors, goes to `end`.
template <class T, class End>
void panel_of(const Multiply<T>& job, const T* W, std::ptrdiff_t m, std::ptrdiff_t j,
              std::ptrdiff_t cols, const End& end) {
    product<T, false>(W, job.W.ld, std::ptrdiff_t(1), m, job.W.k, job.flat + j, job.ld_flat,
                      in_vectors<T>(cols), static_cast<const T*>(nullptr), 0, end);
}

// X / v in the place of v: divisions go on beside the products of the next tile. Rows of X that lie
// `ahead`, of the next block, are on their way meanwhile.
template <class T> struct StoreRatio {
    const T* X;
    std::ptrdiff_t ld_x, ahead, cols;
    T* out;
    std::ptrdiff_t ld;
    template <class V> FML_INLINE void operator()(std::ptrdiff_t r, std::ptrdiff_t j,
                                                  const V& sum) const {
        FML_PREFETCH(X + (r + ahead) * ld_x + j);
        store(out + r * ld + j,
              quotient<T>(load_some(X + r * ld_x + j, cols - j), off_zero<T>(sum)));
    }
};

// In the place of V (m, ld) x v^(beta - 2), for `cols` columns of X, rows being ld_x apart; and in
// P v^(beta - 1). X is null if it is stored elsewhere.
template <class T, int loss>
void weigh_panel(const T* X, std::ptrdiff_t ld_x, std::ptrdiff_t m, std::ptrdiff_t cols, T beta,
                 T* V, T* P, std::ptrdiff_t ld) {
    using Vec = typename Simd<T>::Vec;
    for (std::ptrdiff_t r = 0; r < m; ++r) {
        for (std::ptrdiff_t j = 0; j < cols; j += Simd<T>::lanes) {
            const std::ptrdiff_t at = r * ld + j;
            const Vec v = load<Vec>(V + at);
            store(P + at, weight<T, loss>(v, beta));
            if (X) store(V + at, weighted<T, loss>(load_some(X + r * ld_x + j, cols - j), v, beta));
        }
    }
}

// v = w·h of up to `lanes` entries of a row; of missing ones that of the last.
template <class T>
FML_INLINE typename Simd<T>::Vec entry_products(const std::int32_t* indices, std::ptrdiff_t n,
                                                const T* B, std::ptrdiff_t ld, const T* w) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    Vec sum[lanes];
    for (int e = 0; e < lanes; ++e) {
        const T* row = B + indices[e < n ? e : n - 1] * ld;
        sum[e] = broadcast<Vec>(T(0));
        for (std::ptrdiff_t j = 0; j < ld; j += lanes)
            sum[e] += load<Vec>(row + j) * load<Vec>(w + j);
    }
    return sums_of<T>(sum);
}

// num (ld) = sum over the stored entries of a row of x v^(beta - 2) h.
template <class T, int loss>
void weigh_row(const Rows<T>& X, std::ptrdiff_t i, const T* B, std::ptrdiff_t ld, const T* w,
               T beta, T* num) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    const std::int32_t end = X.indptr[i + 1];
    clear(num, ld);
    for (std::int32_t q = X.indptr[i]; q < end; q += lanes) {
        const std::int32_t* indices = X.indices + q;
        const std::ptrdiff_t n = end - q < lanes ? end - q : lanes;
        for (std::ptrdiff_t e = lanes; e < 2 * lanes && q + e < end; ++e)
            prefetch_row(B + indices[e] * ld, ld);
        const Vec v = entry_products(indices, n, B, ld, w);
        T x[lanes];
        store(x, weighted<T, loss>(load_some(X.data + q, n), v, beta));
        for (std::ptrdiff_t j = 0; j < ld; j += lanes) {
            Vec sum = load<Vec>(num + j);
            for (std::ptrdiff_t e = 0; e < n; ++e) sum += load<Vec>(B + indices[e] * ld + j) * x[e];
            store(num + j, sum);
        }
    }
}

template <class T, int loss>
double row_cost(const Rows<T>& X, std::ptrdiff_t i, const T* B, std::ptrdiff_t ld, const T* w,
                T beta) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    double sum = 0;
    for (std::int32_t q = X.indptr[i]; q < X.indptr[i + 1]; q += lanes) {
        const std::ptrdiff_t n = X.indptr[i + 1] - q;
        const Vec v = entry_products(X.indices + q, n, B, ld, w), x = load_some(X.data + q, n);
        if constexpr (loss == frobenius)
            sum += sum_lanes<T>(x * v, n);
        else
            sum += sum_lanes<T>(cost<T, loss>(x, v, beta), n);
    }
    return sum;
}

// Of a panel: what its entries add, if there is X, and with any_beta what V adds everywhere.
template <class T, int loss>
double panel_cost(const T* X, std::ptrdiff_t ld_x, std::ptrdiff_t m, std::ptrdiff_t cols, T beta,
                  const T* V, std::ptrdiff_t ld) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    T parts[widest_panel<T>] = {};  // of columns: rows of X are read as they lie
    for (std::ptrdiff_t r = 0; r < m; ++r) {
        for (std::ptrdiff_t j = 0; j < cols; j += lanes) {
            Vec part = load<Vec>(parts + j);
            const Vec v = load<Vec>(V + r * ld + j);
            if constexpr (loss == any_beta) part += vpow<T>(v, beta) * (beta - 1);
            if (X) {
                const Vec x = load_some(X + r * ld_x + j, cols - j);
                if constexpr (loss == frobenius)
                    part += (x - v) * (x - v);
                else
                    part += cost<T, loss>(x, v, beta);
            }
            store(parts + j, part);
        }
    }
    double sum = 0;
    for (std::ptrdiff_t j = 0; j < cols; ++j) sum += parts[j];
    return sum;
}
