// Random splits of few rows; see random_few.h.
#include "trees/exact_few.inl.h"

#ifdef FML_LANES
// Least and largest side by side: the least of a value is the largest of its negative.
inline std::ptrdiff_t range_few_block(const float* values, std::uint32_t present, float* least,
                                      float* largest) {
    const __m512 value = _mm512_load_ps(values);
    const auto there = static_cast<__mmask16>(present);
    const __mmask16 known = _mm512_mask_cmp_ps_mask(there, value, value, _CMP_ORD_Q);
    const __m512 none = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
    const __m512 high = _mm512_mask_mov_ps(none, known, value);
    const __m512 low = _mm512_mask_sub_ps(none, known, _mm512_set1_ps(-0.0f), value);
    const __m256 high_8 =
        _mm256_max_ps(_mm512_castps512_ps256(high), _mm512_extractf32x8_ps(high, 1));
    const __m256 low_8 = _mm256_max_ps(_mm512_castps512_ps256(low), _mm512_extractf32x8_ps(low, 1));
    __m256 both = _mm256_max_ps(_mm256_permute2f128_ps(high_8, low_8, 0x20),
                                _mm256_permute2f128_ps(high_8, low_8, 0x31));
    both = _mm256_max_ps(both, _mm256_permute_ps(both, 0x4e));
    both = _mm256_max_ps(both, _mm256_permute_ps(both, 0xb1));
    *largest = _mm256_cvtss_f32(both);
    *least = -_mm_cvtss_f32(_mm256_extractf128_ps(both, 1));
    return count_bits(static_cast<__mmask16>(there & ~known));
}

// The rows of the block that go left by the k-th side.
inline std::uint32_t left_block(const FewSides& sides, int k) {
    const __m512 value = _mm512_load_ps(sides.values[k]);
    const __m512 bound = _mm512_set1_ps(sides.thresholds[k]);
    return sides.missing_left[k] ? _mm512_cmp_ps_mask(value, bound, _CMP_NGT_UQ)
                                 : _mm512_cmp_ps_mask(value, bound, _CMP_LE_OQ);
}

// The order of m rows by numbers of a byte, after the k-th side. Each waits for the one before,
// but which rows are low does not: only where in the order they are.
FML_INLINE __m128i turn(const FewSides& sides, int k, std::ptrdiff_t m, __m128i order,
                        const std::uint64_t* moves, int* n_left) {
    const std::uint32_t left = left_block(sides, k);
    const __m128i marks = _mm_shuffle_epi8(_mm_movm_epi8(static_cast<__mmask16>(left)), order);
    const unsigned all = (1u << m) - 1;
    const unsigned low = static_cast<unsigned>(_mm_movemask_epi8(marks)) & all;
    *n_left = count_bits(low);
    if (m <= half)
        return _mm_shuffle_epi8(order, _mm_loadl_epi64((const __m128i*)(moves + all + 1 + low)));
    if (low == all) return order;
    return _mm512_cvtepi32_epi8(settled(_mm512_cvtepu8_epi32(order), m, low));
}

inline void replay_side_block(const FewSides& sides, std::ptrdiff_t m, std::uint8_t* order,
                              const std::uint64_t* moves) {
    int n_left;
    const __m128i now = _mm_load_si128((const __m128i*)order);
    _mm_store_si128((__m128i*)order, turn(sides, 0, m, now, moves, &n_left));
}

// Sums of the left rows of sides, half of the lanes, and which of the sides have enough rows.
struct FewLeft {
    __m512d w, wy;
    __mmask8 enough;
};
// Side by side, from whichever end has fewer rows; the numbers of these, as they are added, are the
// bytes of `next`.
FML_INLINE FewLeft add_few(const FewSums& rows, const FewNode& node, __m512i n_left, __m512i next,
                           int count) {
    const __m512i n_right = _mm512_sub_epi64(_mm512_set1_epi64(node.m), n_left);
    const __m512i fewer = _mm512_min_epi64(n_left, n_right);
    const __mmask8 backward = _mm512_cmpgt_epi64_mask(n_left, n_right);
    const __m512d sign = _mm512_maskz_mov_pd(backward, _mm512_set1_pd(-0.0));
    const __m512d low = _mm512_load_pd(rows.wy), high = _mm512_load_pd(rows.wy + half);
    const __m512d low_w = _mm512_load_pd(rows.w), high_w = _mm512_load_pd(rows.w + half);
    __m512d w = _mm512_maskz_mov_pd(backward, _mm512_set1_pd(node.w));
    __m512d left = _mm512_maskz_mov_pd(backward, _mm512_set1_pd(node.wy));
    for (std::ptrdiff_t i = 0; i < node.m / 2; ++i) {
        const __mmask8 more = _mm512_cmpgt_epi64_mask(fewer, _mm512_set1_epi64(i));
        const __m512d wy = _mm512_permutex2var_pd(low, next, high);
        left = _mm512_mask_add_pd(left, more, left, _mm512_xor_pd(sign, wy));
        const __m512d own = _mm512_permutex2var_pd(low_w, next, high_w);
        w = _mm512_mask_add_pd(w, more, w, _mm512_xor_pd(sign, own));
        next = _mm512_srli_epi64(next, 8);
    }
    const auto all = static_cast<__mmask8>((1u << count) - 1);
    return {w, left, _mm512_mask_cmpge_epi64_mask(all, fewer, _mm512_set1_epi64(node.least_rows))};
}

FML_INLINE FewLeft left_sums(const FewSides& sides, const FewSums& rows, const FewNode& node,
                             std::uint8_t* order, const std::uint64_t* moves) {
    alignas(64) std::int64_t n_left[FewSides::most], next[FewSides::most];
    const __m128i numbers = _mm_set_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m128i backwards = _mm_sub_epi8(_mm_set1_epi8(static_cast<char>(node.m - 1)), numbers);
    __m128i now = _mm_load_si128((const __m128i*)order);
    for (int k = 0; k < sides.count; ++k) {
        int count;
        now = turn(sides, k, node.m, now, moves, &count);
        n_left[k] = count;
        next[k] =
            _mm_cvtsi128_si64(_mm_shuffle_epi8(now, 2 * count > node.m ? backwards : numbers));
    }
    _mm_store_si128((__m128i*)order, now);
    return add_few(rows, node, _mm512_load_si512(n_left), _mm512_load_si512(next), sides.count);
}

inline FewChoice replay_sides_block(const FewSides& sides, const FewSums& rows, const FewNode& node,
                                    std::uint8_t* order, const std::uint64_t* moves) {
    const FewLeft sums = left_sums(sides, rows, node, order, moves);
    const __m512d w = sums.w, left = sums.wy;
    const __m512d rest = _mm512_set1_pd(node.w) - w, right = _mm512_set1_pd(node.wy) - left;
    const __m512d least = _mm512_set1_pd(node.least_weight);
    const __m512d proxy = left * left / w + right * right / rest;
    // Not LT: NaN is not too little for scikit-learn; but no proxy that is NaN beats another.
    __mmask8 possible = _mm512_mask_cmp_pd_mask(sums.enough, w, least, _CMP_NLT_UQ);
    possible = _mm512_mask_cmp_pd_mask(possible, rest, least, _CMP_NLT_UQ);
    possible = _mm512_mask_cmp_pd_mask(possible, proxy, proxy, _CMP_ORD_Q);
    const __m512d none = _mm512_set1_pd(-std::numeric_limits<double>::infinity());
    const __m512d scores = _mm512_mask_mov_pd(none, possible, proxy);
    const double best = _mm512_reduce_max_pd(scores);
    const unsigned equal = _mm512_cmp_pd_mask(scores, _mm512_set1_pd(best), _CMP_EQ_OQ);
    return {best, __builtin_ctz(equal)};
}

inline void replay_sums_block(const FewSides& sides, const FewSums& rows, const FewNode& node,
                              std::uint8_t* order, const std::uint64_t* moves, double* w,
                              double* wy) {
    const FewLeft sums = left_sums(sides, rows, node, order, moves);
    _mm512_store_pd(w, sums.w);
    _mm512_store_pd(wy, _mm512_maskz_mov_pd(sums.enough, sums.wy));
}

template <class Rows>
FewChoice choose_side_block(const FewSides& sides, const FewPart& part, const Rows& rows) {
    alignas(16) std::uint16_t left[FewSides::most];
    unsigned possible = 0;
    for (int k = 0; k < sides.count; ++k) {
        const auto low = static_cast<std::uint16_t>(left_block(sides, k) & part.present);
        const int n_left = count_bits(low);
        possible |= unsigned{n_left >= part.least_rows && part.m - n_left >= part.least_rows} << k;
        left[k] = low;
    }
    auto sums = sums_of(rows);
    sums.subsets(_mm512_cvtepu16_epi64(_mm_load_si128((const __m128i*)left)), part.size);
    __mmask8 enough;
    __m512d proxy = sums.score(part.least_weight, &enough);
    enough &= static_cast<__mmask8>(possible);
    proxy =
        _mm512_mask_mov_pd(_mm512_set1_pd(-std::numeric_limits<double>::infinity()), enough, proxy);
    const double best = _mm512_reduce_max_pd(proxy);
    const unsigned equal = _mm512_cmp_pd_mask(proxy, _mm512_set1_pd(best), _CMP_EQ_OQ);
    return {best, __builtin_ctz(equal)};
}

inline void sum_targets_block(const FewTargets& targets, std::uint32_t rows, double* sums) {
    const double* const of[] = {targets.w, targets.wy, targets.wyy};
    FML_UNROLL
    for (int k = 0; k < 3; ++k)
        sums[k] = _mm512_reduce_add_pd(
            _mm512_maskz_loadu_pd(static_cast<__mmask8>(rows), of[k]) +
            _mm512_maskz_loadu_pd(static_cast<__mmask8>(rows >> half), of[k] + half));
}
#else
inline std::ptrdiff_t range_few_block(const float* values, std::uint32_t present, float* least,
                                      float* largest) {
    float low = std::numeric_limits<float>::infinity(), high = -low;
    std::ptrdiff_t missing = 0;
    for (std::ptrdiff_t i = 0; i < few; ++i) {
        if (!(present >> i & 1)) continue;
        const float value = values[i];
        low = value < low ? value : low;
        high = value > high ? value : high;
        missing += value != value;
    }
    *least = low;
    *largest = high;
    return missing;
}

inline std::ptrdiff_t turn(const FewSides& sides, int k, std::ptrdiff_t m, std::uint8_t* order) {
    const float* const values = sides.values[k];
    const float threshold = sides.thresholds[k];
    const bool missing_left = sides.missing_left[k];
    std::ptrdiff_t begin = 0, end = m;
    while (begin < end) {
        const std::uint8_t i = order[begin];
        if (values[i] <= threshold || (missing_left && values[i] != values[i])) {
            ++begin;
        } else {
            order[begin] = order[--end];
            order[end] = i;
        }
    }
    return end;
}

inline void replay_side_block(const FewSides& sides, std::ptrdiff_t m, std::uint8_t* order,
                              const std::uint64_t*) {
    turn(sides, 0, m, order);
}

// Sums of the left rows of the k-th side, and whether it has enough rows.
struct FewLeft {
    double w, wy;
    bool enough;
};
inline FewLeft left_sums(const FewSides& sides, int k, const FewSums& rows, const FewNode& node,
                         std::uint8_t* order) {
    const std::ptrdiff_t n_left = turn(sides, k, node.m, order), n_right = node.m - n_left;
    if (n_left < node.least_rows || n_right < node.least_rows) return {0, 0, false};
    const bool forward = n_left <= n_right;
    const std::ptrdiff_t count = forward ? n_left : n_right;
    const double sign = forward ? 1.0 : -1.0;
    FewLeft left{forward ? 0.0 : node.w, forward ? 0.0 : node.wy, true};
    for (std::ptrdiff_t i = 0; i < count; ++i) {
        const std::uint8_t row = order[forward ? i : node.m - 1 - i];
        left.w += sign * rows.w[row];
        left.wy += sign * rows.wy[row];
    }
    return left;
}

inline FewChoice replay_sides_block(const FewSides& sides, const FewSums& rows, const FewNode& node,
                                    std::uint8_t* order, const std::uint64_t*) {
    FewChoice best{-std::numeric_limits<double>::infinity(), 0};
    for (int k = 0; k < sides.count; ++k) {
        const FewLeft left = left_sums(sides, k, rows, node, order);
        const double rest = node.w - left.w, right = node.wy - left.wy;
        if (!left.enough || left.w < node.least_weight || rest < node.least_weight) continue;
        const double proxy = left.wy * left.wy / left.w + right * right / rest;
        if (proxy > best.proxy) best = {proxy, k};
    }
    return best;
}

inline void replay_sums_block(const FewSides& sides, const FewSums& rows, const FewNode& node,
                              std::uint8_t* order, const std::uint64_t*, double* w, double* wy) {
    for (int k = 0; k < sides.count; ++k) {
        const FewLeft left = left_sums(sides, k, rows, node, order);
        w[k] = left.w;
        wy[k] = left.wy;
    }
}

inline std::uint32_t left_block(const FewSides& sides, int k) {
    const float* const values = sides.values[k];
    std::uint32_t left = 0;
    for (std::uint32_t i = 0; i < few; ++i) {
        const bool low =
            values[i] <= sides.thresholds[k] || (sides.missing_left[k] && values[i] != values[i]);
        left |= std::uint32_t{low} << i;
    }
    return left;
}

template <class Rows>
FewChoice choose_side_block(const FewSides& sides, const FewPart& part, const Rows& rows) {
    FewChoice best{-std::numeric_limits<double>::infinity(), 0};
    for (int k = 0; k < sides.count; ++k) {
        const std::uint32_t left = left_block(sides, k) & part.present;
        auto sums = sums_of(rows);
        std::ptrdiff_t n_left = 0;
        for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(part.size); ++i) {
            if (!(left >> i & 1)) continue;
            sums.add(i);
            ++n_left;
        }
        if (n_left < part.least_rows || part.m - n_left < part.least_rows) continue;
        const double proxy = sums.score(part.least_weight);
        if (proxy > best.proxy) best = {proxy, k};
    }
    return best;
}

inline void sum_targets_block(const FewTargets& targets, std::uint32_t rows, double* sums) {
    sums[0] = sums[1] = sums[2] = 0;
    for (std::ptrdiff_t i = 0; i < few; ++i) {
        if (!(rows >> i & 1)) continue;
        sums[0] += targets.w[i];
        sums[1] += targets.wy[i];
        sums[2] += targets.wyy[i];
    }
}
#endif
