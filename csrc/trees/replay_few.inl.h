// Nodes of few rows; see few.h.

constexpr int few_bits = 4;

#ifdef FML_LANES
// One step of Batcher's bitonic sort: each lane and the one that differs in bit `step` of its
// number, in the order of bit `run`.
template <int run, int step> FML_INLINE __m512i sort_step(__m512i v) {
    const __m512i other = step == 1   ? _mm512_shuffle_epi32(v, _MM_PERM_CDAB)
                          : step == 2 ? _mm512_shuffle_epi32(v, _MM_PERM_BADC)
                          : step == 4 ? _mm512_shuffle_i32x4(v, v, 0xb1)
                                      : _mm512_shuffle_i32x4(v, v, 0x4e);
    unsigned larger = 0;
    for (unsigned i = 0; i < 16; ++i)
        larger |= unsigned{((i & run) != 0) != ((i & step) != 0)} << i;
    return _mm512_mask_max_epu32(_mm512_min_epu32(v, other), static_cast<__mmask16>(larger), v,
                                 other);
}
#endif

#ifdef FML_LANES
// sort_few where codes, which are in order, are zero or one and the same: a step instead of ten.
inline std::ptrdiff_t divide_few(__m512i code, __m512i at, std::ptrdiff_t m, std::uint32_t* order,
                                 std::uint32_t* codes, std::uint32_t* changes) {
    const __mmask16 there = first<std::uint32_t>(m);
    const __mmask16 high = _mm512_mask_test_epi32_mask(there, code, code);
    const auto low = static_cast<__mmask16>(there & ~high);
    const int n_low = count_bits(low);
    const auto behind = static_cast<__mmask16>(there & ~((1u << n_low) - 1));
    const __m512i sorted = _mm512_mask_expand_epi32(_mm512_maskz_compress_epi32(low, at), behind,
                                                    _mm512_maskz_compress_epi32(high, at));
    _mm512_storeu_si512(order, _mm512_mask_mov_epi32(at, there, sorted));
    _mm512_storeu_si512(codes,
                        _mm512_maskz_expand_epi32(behind, _mm512_maskz_compress_epi32(high, code)));
    changes[0] = static_cast<std::uint32_t>(n_low);
    return n_low != 0 && n_low != m;
}
#endif

template <class Code>
std::ptrdiff_t sort_few(const Code* column, const std::int32_t* rows, std::ptrdiff_t m,
                        [[maybe_unused]] bool two_values, std::uint32_t* order,
                        std::uint32_t* codes, std::uint32_t* changes) {
#ifdef FML_LANES
    const __mmask16 there = first<std::uint32_t>(m);
    const __m512i none = _mm512_set1_epi32(-1), lanes = Lanes<std::uint32_t>::numbers();
    __m512i code =
        _mm512_mask_i32gather_epi32(none, there, _mm512_loadu_si512(rows), column, sizeof(Code));
    if (sizeof(Code) < 4) code = _mm512_and_si512(code, _mm512_set1_epi32(Code(-1)));
    const __m512i at = _mm512_loadu_si512(order);
    const __m512i tie = _mm512_or_si512(_mm512_slli_epi32(lanes, few_bits), at);
    code = _mm512_permutexvar_epi32(at, code);
    if (two_values) return divide_few(code, at, m, order, codes, changes);
    code = _mm512_slli_epi32(code, 2 * few_bits);
    __m512i key = _mm512_mask_or_epi32(none, there, code, tie);
    key = sort_step<2, 1>(key);
    if (m > 2) key = sort_step<4, 1>(sort_step<4, 2>(key));
    if (m > 4) key = sort_step<8, 1>(sort_step<8, 2>(sort_step<8, 4>(key)));
    if (m > 8) key = sort_step<16, 1>(sort_step<16, 2>(sort_step<16, 4>(sort_step<16, 8>(key))));
    const __m512i low = _mm512_set1_epi32((1 << few_bits) - 1);
    _mm512_storeu_si512(order, _mm512_mask_and_epi32(lanes, there, key, low));
    code = _mm512_srli_epi32(key, 2 * few_bits);
    _mm512_storeu_si512(codes, code);
    const __m512i before =
        _mm512_permutexvar_epi32(_mm512_sub_epi32(lanes, _mm512_set1_epi32(1)), code);
    const __mmask16 changed = _mm512_mask_cmpneq_epu32_mask(there & 0xfffe, code, before);
    _mm512_storeu_si512(changes, _mm512_maskz_compress_epi32(changed, lanes));
    return count_bits(changed);
#else
    for (std::ptrdiff_t i = 0; i < m; ++i) {
        const std::uint32_t lane = order[i], code = column[rows[lane]];
        std::ptrdiff_t k = i;
        for (; k > 0 && codes[k - 1] > code; --k) {
            codes[k] = codes[k - 1];
            order[k] = order[k - 1];
        }
        codes[k] = code;
        order[k] = lane;
    }
    std::ptrdiff_t count = 0;
    for (std::ptrdiff_t i = 1; i < m; ++i) {
        changes[count] = static_cast<std::uint32_t>(i);
        count += codes[i] != codes[i - 1];
    }
    return count;
#endif
}

inline std::ptrdiff_t replay_sort_few_block(const void* column, int width, bool two_values,
                                            const std::int32_t* rows, std::ptrdiff_t m,
                                            std::uint32_t* order, std::uint32_t* codes,
                                            std::uint32_t* changes) {
    if (width == 1)
        return sort_few(static_cast<const std::uint8_t*>(column), rows, m, two_values, order, codes,
                        changes);
    if (width == 2)
        return sort_few(static_cast<const std::uint16_t*>(column), rows, m, two_values, order,
                        codes, changes);
    return sort_few(static_cast<const std::uint32_t*>(column), rows, m, two_values, order, codes,
                    changes);
}
