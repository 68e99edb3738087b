#include "common/simd.inl.h"

// Columns are handled in chunks of 16 values, whose fates are the bits of one word.
constexpr std::ptrdiff_t chunk = 16;

template <class T>
void extent_block(const T* column, std::ptrdiff_t m, T* lo, T* hi) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    T least = column[0], greatest = column[0];
    std::ptrdiff_t i = 0;
    if (m >= lanes) {
        Vec low = load<Vec>(column), high = low;
        for (i = lanes; i + lanes <= m; i += lanes) {
            const Vec x = load<Vec>(column + i);
            low = minimum<T>(x, low);
            high = maximum<T>(x, high);
        }
        for (int l = 0; l < lanes; ++l) {
            least = low[l] < least ? low[l] : least;
            greatest = high[l] > greatest ? high[l] : greatest;
        }
    }
    for (; i < m; ++i) {
        least = column[i] < least ? column[i] : least;
        greatest = column[i] > greatest ? column[i] : greatest;
    }
    *lo = least;
    *hi = greatest;
}

// Which of 16 values are below x, by bits.
template <class T> FML_INLINE unsigned chunk_below(const T* values,
                                                   const typename Simd<T>::Vec& x) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    unsigned bits = 0;
    FML_UNROLL
    for (int l = 0; l < chunk; l += lanes) bits |= below<T>(load<Vec>(values + l), x) << l;
    return bits;
}
template <class T> FML_INLINE unsigned chunk_above(const T* values,
                                                   const typename Simd<T>::Vec& x) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    unsigned bits = 0;
    FML_UNROLL
    for (int l = 0; l < chunk; l += lanes) bits |= below<T>(x, load<Vec>(values + l)) << l;
    return bits;
}

// Appends those of 16 values whose bit is set to `out`; returns the new end. May write 16 values.
template <class V> FML_INLINE V* append(const V* values, unsigned bits, V* out) {
#if FML_X86_REGIONS && FML_VECTOR_BYTES == 64
    if constexpr (sizeof(V) == 4) {
        _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(bits, _mm512_loadu_si512(values)));
    } else {
        const unsigned low = bits & 255;
        _mm512_storeu_si512(out, _mm512_maskz_compress_epi64(low, _mm512_loadu_si512(values)));
        _mm512_storeu_si512(out + count_bits(low),
                            _mm512_maskz_compress_epi64(bits >> 8, _mm512_loadu_si512(values + 8)));
    }
    return out + count_bits(bits);
#else
    for (int l = 0; l < chunk; ++l) {
        *out = values[l];
        out += bits >> l & 1;
    }
    return out;
#endif
}

// Counts the values below a, and copies those in [a, b] to `kept` (room for m + 16).
template <class T>
void bracket_block(const T* values, std::ptrdiff_t m, T a, T b, std::ptrdiff_t* n_below,
                   std::ptrdiff_t* n_kept, T* kept) {
    using Vec = typename Simd<T>::Vec;
    const Vec va = broadcast<Vec>(a), vb = broadcast<Vec>(b);
    std::ptrdiff_t under = 0, i = 0;
    T* end = kept;
    for (; i + chunk <= m; i += chunk) {
        const unsigned less = chunk_below<T>(values + i, va);
        under += count_bits(less);
        end = append(values + i, ~(less | chunk_above<T>(values + i, vb)) & 0xffff, end);
    }
    for (; i < m; ++i) {
        under += values[i] < a;
        *end = values[i];
        end += values[i] >= a && values[i] <= b;
    }
    *n_below = under;
    *n_kept = end - kept;
}

template <class T>
void tally_block(const T* values, std::ptrdiff_t m, T pivot, std::ptrdiff_t* n_below,
                 std::ptrdiff_t* n_equal) {
    std::ptrdiff_t less = 0, equal = 0;
#pragma omp simd reduction(+ : less, equal)
    for (std::ptrdiff_t i = 0; i < m; ++i) {
        less += values[i] < pivot;
        equal += values[i] == pivot;
    }
    *n_below = less;
    *n_equal = equal;
}

// marks[i / 16] has bit i % 16 set if value i goes to the left: if it is below the pivot, or among
// the first `equal` that equal it.
template <class T>
void mark_block(const T* values, std::ptrdiff_t m, T pivot, std::ptrdiff_t equal,
                std::uint16_t* marks) {
    using Vec = typename Simd<T>::Vec;
    const Vec v = broadcast<Vec>(pivot);
    std::ptrdiff_t i = 0;
    for (; i + chunk <= m; i += chunk) {
        unsigned left = chunk_below<T>(values + i, v);
        if (equal > 0) {
            unsigned same = ~(left | chunk_above<T>(values + i, v)) & 0xffff;
            for (; same && equal > 0; same &= same - 1, --equal) left |= same & (~same + 1);
        }
        *marks++ = static_cast<std::uint16_t>(left);
    }
    unsigned left = 0;
    for (int l = 0; i < m; ++i, ++l) {
        const bool same = values[i] == pivot && equal > 0;
        equal -= same;
        left |= static_cast<unsigned>(values[i] < pivot || same) << l;
    }
    if (m % chunk) *marks = static_cast<std::uint16_t>(left);
}

// Deals the values out to left and right, order kept. Writes nothing beyond their ends.
template <class V>
void deal_block(const V* values, std::ptrdiff_t m, const std::uint16_t* marks, V* left, V* right) {
    std::ptrdiff_t i = 0;
#if FML_X86_REGIONS && FML_VECTOR_BYTES == 64
    // Compressed in a register and stored under a mask: the one instruction for both is slow.
    constexpr int lanes = 64 / sizeof(V);
    for (; i + lanes <= m; i += lanes) {
        const unsigned all = (1u << lanes) - 1;
        const unsigned yes = marks[i / chunk] >> i % chunk & all, no = ~yes & all;
        const int n_left = count_bits(yes);
        const __m512i v = _mm512_loadu_si512(values + i);
        if constexpr (sizeof(V) == 4) {
            _mm512_mask_storeu_epi32(left, all >> (lanes - n_left),
                                     _mm512_maskz_compress_epi32(yes, v));
            _mm512_mask_storeu_epi32(right, all >> n_left, _mm512_maskz_compress_epi32(no, v));
        } else {
            _mm512_mask_storeu_epi64(left, all >> (lanes - n_left),
                                     _mm512_maskz_compress_epi64(yes, v));
            _mm512_mask_storeu_epi64(right, all >> n_left, _mm512_maskz_compress_epi64(no, v));
        }
        left += n_left;
        right += lanes - n_left;
    }
#endif
    for (; i < m; ++i) {
        const bool yes = marks[i / chunk] >> i % chunk & 1;
        *(yes ? left : right) = values[i];
        left += yes;
        right += !yes;
    }
}
