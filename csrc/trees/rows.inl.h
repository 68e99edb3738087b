// Passes over the rows of a node. Most nodes have a few rows, which GCC would take one by one behind
// a loop over whole vectors: with masks they are one more vector.
#if FML_X86_REGIONS && FML_VECTOR_BYTES == 64
constexpr ptrdiff_t row_lanes = 16;
FML_INLINE __mmask16 lanes_from(ptrdiff_t i, ptrdiff_t m) {
    return static_cast<__mmask16>(m - i < row_lanes ? (1u << (m - i)) - 1 : 0xffffu);
}

// Of these, the rows of `left`; all if it is null.
FML_INLINE __mmask16 lanes_left(const std::uint8_t* left, ptrdiff_t i, ptrdiff_t m) {
    const __mmask16 there = lanes_from(i, m);
    if (!left) return there;
    const __m128i side = _mm_loadu_si128((const __m128i*)(left + i));
    return there & _mm_test_epi8_mask(side, side);
}

inline void range_block(const std::uint32_t* codes, ptrdiff_t m, std::uint32_t* least,
                        std::uint32_t* largest) {
    __m512i low = _mm512_set1_epi32(-1), high = _mm512_setzero_si512();
    for (ptrdiff_t i = 0; i < m; i += row_lanes) {
        const __mmask16 there = lanes_from(i, m);
        const __m512i code = _mm512_maskz_loadu_epi32(there, codes + i);
        low = _mm512_mask_min_epu32(low, there, low, code);
        high = _mm512_max_epu32(high, code);
    }
    *least = _mm512_reduce_min_epu32(low);
    *largest = _mm512_reduce_max_epu32(high);
}

// The codes of rows [i, m), sixteen at most; `none` behind them.
template <class Code>
FML_INLINE __m512i codes_from(const Code* x, const std::int32_t* rows, ptrdiff_t i, ptrdiff_t m,
                              __m512i none) {
    const __m512i code = _mm512_mask_i32gather_epi32(none, lanes_from(i, m),
                                                     _mm512_loadu_si512(rows + i), x, sizeof(Code));
    return _mm512_and_si512(code, _mm512_set1_epi32(static_cast<int>(Code(-1))));
}

template <class Code>
ptrdiff_t codes_up_to(const Code* x, const std::int32_t* rows, ptrdiff_t m, std::uint32_t last,
                      std::uint32_t other, std::uint8_t* left) {
    const __m512i largest = _mm512_set1_epi32(static_cast<int>(last));
    const __m512i also = _mm512_set1_epi32(static_cast<int>(other));
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < m; i += row_lanes) {
        const __m512i code = codes_from(x, rows, i, m, largest);
        const __mmask16 low =
            lanes_from(i, m) & static_cast<__mmask16>(_mm512_cmple_epu32_mask(code, largest) |
                                                      _mm512_cmpeq_epi32_mask(code, also));
        _mm_storeu_si128((__m128i*)(left + i), _mm_maskz_set1_epi8(low, 1));
        count += count_bits(low);
    }
    return count;
}

inline std::uint64_t gather_words_block(const std::uint64_t* words, const std::int32_t* rows,
                                        ptrdiff_t m, std::uint64_t* out) {
    const __m512i one = _mm512_set1_epi64(static_cast<long long>(words[rows[0]]));
    __m512i varying = _mm512_setzero_si512();
    for (ptrdiff_t i = 0; i < m; i += 8) {
        const auto there = static_cast<__mmask8>(lanes_from(i, m));
        const __m256i row = _mm256_loadu_si256((const __m256i*)(rows + i));
        const __m512i word = _mm512_mask_i32gather_epi64(one, there, row, words, 8);
        _mm512_storeu_si512(out + i, word);
        varying = _mm512_or_si512(varying, _mm512_xor_si512(word, one));
    }
    return static_cast<std::uint64_t>(_mm512_reduce_or_epi64(varying));
}

inline ptrdiff_t without_bit_block(const std::uint64_t* words, ptrdiff_t m, int number,
                                   std::uint8_t* left) {
    const __m512i bit = _mm512_set1_epi64(static_cast<long long>(1ull << number));
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < m; i += row_lanes) {
        const unsigned low = _mm512_testn_epi64_mask(_mm512_loadu_si512(words + i), bit);
        const unsigned high = _mm512_testn_epi64_mask(_mm512_loadu_si512(words + i + 8), bit);
        const __mmask16 without = lanes_from(i, m) & static_cast<__mmask16>(low | high << 8);
        _mm_storeu_si128((__m128i*)(left + i), _mm_maskz_set1_epi8(without, 1));
        count += count_bits(without);
    }
    return count;
}

template <class Code>
ptrdiff_t uncommon_codes(const Code* x, std::uint32_t common, const std::int32_t* rows,
                         const std::uint32_t* tags, ptrdiff_t m, std::uint32_t* codes,
                         std::uint32_t* their_tags) {
    const __m512i usual = _mm512_set1_epi32(static_cast<int>(common));
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < m; i += row_lanes) {
        const __m512i tag = _mm512_loadu_si512(tags + i);
        const __m512i code = codes_from(x, rows, i, m, usual);
        const __mmask16 other = _mm512_cmpneq_epi32_mask(code, usual);
        _mm512_storeu_si512(codes + count, _mm512_maskz_compress_epi32(other, code));
        _mm512_storeu_si512(their_tags + count, _mm512_maskz_compress_epi32(other, tag));
        count += count_bits(other);
    }
    return count;
}

// Values of x, one by one: many processors take several times as long for a gather.
FML_INLINE __m256 eight_of(const float* x, const std::int32_t* rows) {
    const __m128 low = _mm_setr_ps(x[rows[0]], x[rows[1]], x[rows[2]], x[rows[3]]);
    const __m128 high = _mm_setr_ps(x[rows[4]], x[rows[5]], x[rows[6]], x[rows[7]]);
    return _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
}
FML_INLINE __m512 sixteen_of(const float* x, const std::int32_t* rows) {
    const __m256 low = eight_of(x, rows), high = eight_of(x, rows + 8);
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

// Behind the rows there are others.
inline ptrdiff_t gather_range_block(const float* x, const std::int32_t* rows, ptrdiff_t m,
                                    float* values, float* least, float* largest) {
    const __m512 infinity = _mm512_set1_ps(std::numeric_limits<float>::infinity());
    __m512 low = infinity, high = _mm512_sub_ps(_mm512_setzero_ps(), infinity);
    ptrdiff_t missing = 0;
    for (ptrdiff_t i = 0; i < m; i += row_lanes) {
        const __mmask16 there = lanes_from(i, m);
        const __m512 value = sixteen_of(x, rows + i);
        _mm512_storeu_ps(values + i, value);
        low = _mm512_mask_min_ps(low, there, value, low);  // of NaN and another, the other
        high = _mm512_mask_max_ps(high, there, value, high);
        missing += count_bits(_mm512_mask_cmp_ps_mask(there, value, value, _CMP_UNORD_Q));
    }
    *least = _mm512_reduce_min_ps(low);
    *largest = _mm512_reduce_max_ps(high);
    return missing;
}

inline ptrdiff_t side_block(const float* values, ptrdiff_t m, float threshold, std::uint8_t missing,
                            std::uint8_t* left) {
    const __m512 bound = _mm512_set1_ps(threshold);
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < m; i += row_lanes) {
        const __mmask16 there = lanes_from(i, m);
        const __m512 value = _mm512_loadu_ps(values + i);
        const __mmask16 below = missing ? _mm512_mask_cmp_ps_mask(there, value, bound, _CMP_NGT_UQ)
                                        : _mm512_mask_cmp_ps_mask(there, value, bound, _CMP_LE_OQ);
        _mm_storeu_si128((__m128i*)(left + i), _mm_maskz_set1_epi8(below, 1));
        count += count_bits(below);
    }
    return count;
}

// The sums over those of `left`, of all if it is null.
FML_INLINE void add_pairs(const std::uint8_t* left, const std::uint32_t* tags, ptrdiff_t m,
                          std::uint32_t* sums) {
    __m512i w = _mm512_setzero_si512(), second = w;
    const __m512i one = _mm512_set1_epi32(1);
    for (ptrdiff_t i = 0; i < m; i += row_lanes) {
        const __mmask16 there = lanes_left(left, i, m);
        const __m512i tag = _mm512_maskz_loadu_epi32(there, tags + i);
        const __m512i weight = _mm512_srli_epi32(tag, 1);
        w = _mm512_add_epi32(w, weight);
        second = _mm512_mask_add_epi32(second, _mm512_test_epi32_mask(tag, one), second, weight);
    }
    sums[0] = static_cast<std::uint32_t>(_mm512_reduce_add_epi32(w));
    sums[1] = static_cast<std::uint32_t>(_mm512_reduce_add_epi32(second));
}

// visit(n_classes), as a type: sums of so many are kept in registers.
template <class Visit> FML_INLINE void with_so_many(ptrdiff_t n_classes, Visit visit) {
    switch (n_classes) {
        case 3:
            return visit(std::integral_constant<int, 3>());
        case 4:
            return visit(std::integral_constant<int, 4>());
        case 5:
            return visit(std::integral_constant<int, 5>());
        case 6:
            return visit(std::integral_constant<int, 6>());
        case 7:
            return visit(std::integral_constant<int, 7>());
        default:
            return visit(std::integral_constant<int, 8>());
    }
}

template <int n_classes>
FML_INLINE void add_classes(const std::uint8_t* left, const std::uint32_t* tags, ptrdiff_t m,
                            int bits, std::uint32_t* sums) {
    __m512i sum[n_classes];
    for (int c = 0; c < n_classes; ++c) sum[c] = _mm512_setzero_si512();
    const __m512i low = _mm512_set1_epi32((1 << bits) - 1);
    const __m128i shift = _mm_cvtsi32_si128(bits);
    for (ptrdiff_t i = 0; i < m; i += row_lanes) {
        const __mmask16 there = lanes_left(left, i, m);
        const __m512i tag = _mm512_maskz_loadu_epi32(there, tags + i);
        const __m512i w = _mm512_srl_epi32(tag, shift), mine = _mm512_and_si512(tag, low);
        for (int c = 0; c < n_classes; ++c)
            sum[c] = _mm512_mask_add_epi32(
                sum[c], _mm512_cmpeq_epi32_mask(mine, _mm512_set1_epi32(c)), sum[c], w);
    }
    for (int c = 0; c < n_classes; ++c)
        sums[c] = static_cast<std::uint32_t>(_mm512_reduce_add_epi32(sum[c]));
}
inline void class_sums_block(const std::uint8_t* left, const std::uint32_t* tags, ptrdiff_t m,
                             int bits, ptrdiff_t n_classes, std::uint32_t* sums) {
    with_so_many(n_classes, [&](auto so_many) {
        add_classes<decltype(so_many)::value>(left, tags, m, bits, sums);
    });
}

// The rest of a vector that is stored falls where nothing is wanted any more.
inline ptrdiff_t move_left_block(const std::uint8_t* left, std::int32_t* rows, std::uint32_t* tags,
                                 ptrdiff_t m, std::int32_t* other_rows, std::uint32_t* other_tags) {
    ptrdiff_t n_left = 0, n_right = 0;
    for (ptrdiff_t i = 0; i < m; i += row_lanes) {
        const __mmask16 there = lanes_from(i, m);
        const __mmask16 low = lanes_left(left, i, m), high = there & ~low;
        const __m512i row = _mm512_loadu_si512(rows + i), tag = _mm512_loadu_si512(tags + i);
        _mm512_storeu_si512(other_rows + n_right, _mm512_maskz_compress_epi32(high, row));
        _mm512_storeu_si512(other_tags + n_right, _mm512_maskz_compress_epi32(high, tag));
        const __mmask16 written = lanes_from(n_left, m);
        _mm512_mask_storeu_epi32(rows + n_left, written, _mm512_maskz_compress_epi32(low, row));
        _mm512_mask_storeu_epi32(tags + n_left, written, _mm512_maskz_compress_epi32(low, tag));
        n_left += count_bits(low);
        n_right += count_bits(high);
    }
    std::memcpy(rows + n_left, other_rows, sizeof *rows * static_cast<std::size_t>(n_right));
    std::memcpy(tags + n_left, other_tags, sizeof *tags * static_cast<std::size_t>(n_right));
    return n_left;
}

// Adds wait for each other: the two halves of a vector of sides have sums of their own.
inline double sum_left_block(const std::uint8_t* left, const double* x, ptrdiff_t m) {
    __m512d low = _mm512_setzero_pd(), high = low;
    for (ptrdiff_t i = 0; i < m; i += row_lanes) {
        const unsigned there = lanes_left(left, i, m);
        low = _mm512_add_pd(low, _mm512_maskz_loadu_pd(static_cast<__mmask8>(there), x + i));
        high = _mm512_add_pd(high,
                             _mm512_maskz_loadu_pd(static_cast<__mmask8>(there >> 8), x + i + 8));
    }
    return _mm512_reduce_add_pd(_mm512_add_pd(low, high));
}

#else

inline void class_sums_block(const std::uint8_t* left, const std::uint32_t* tags, ptrdiff_t m,
                             int bits, ptrdiff_t n_classes, std::uint32_t* sums) {
    // Rows that go to the same counter wait for each other.
    constexpr int side_by_side = 4, most = 8;
    std::uint32_t counts[side_by_side][most] = {};
    for (ptrdiff_t i = 0; i < m; ++i) {
        const std::uint32_t side = left ? static_cast<std::uint32_t>(left[i]) : 1u;
        counts[i % side_by_side][tags[i] & ((1u << bits) - 1)] += (tags[i] >> bits) & (0 - side);
    }
    for (ptrdiff_t c = 0; c < n_classes; ++c)
        sums[c] = counts[0][c] + counts[1][c] + counts[2][c] + counts[3][c];
}

inline ptrdiff_t move_left_block(const std::uint8_t* left, std::int32_t* rows, std::uint32_t* tags,
                                 ptrdiff_t m, std::int32_t* other_rows, std::uint32_t* other_tags) {
    ptrdiff_t n_left = 0, n_right = 0;
    for (ptrdiff_t i = 0; i < m; ++i) {
        other_rows[n_right] = rows[i];
        other_tags[n_right] = tags[i];
        rows[n_left] = rows[i];
        tags[n_left] = tags[i];
        n_left += left[i];
        n_right += !left[i];
    }
    std::memcpy(rows + n_left, other_rows, sizeof *rows * static_cast<std::size_t>(n_right));
    std::memcpy(tags + n_left, other_tags, sizeof *tags * static_cast<std::size_t>(n_right));
    return n_left;
}

inline double sum_left_block(const std::uint8_t* left, const double* x, ptrdiff_t m) {
    double sum = 0;
    if (!left) {
#pragma omp simd reduction(+ : sum)
        for (ptrdiff_t i = 0; i < m; ++i) sum += x[i];
        return sum;
    }
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t i = 0; i < m; ++i) sum += left[i] ? x[i] : 0.0;
    return sum;
}

inline void range_block(const std::uint32_t* codes, ptrdiff_t m, std::uint32_t* least,
                        std::uint32_t* largest) {
    auto low = static_cast<std::int32_t>(codes[0]), high = low;
#pragma omp simd reduction(min : low) reduction(max : high)
    for (ptrdiff_t i = 0; i < m; ++i) {
        const auto code = static_cast<std::int32_t>(codes[i]);
        low = code < low ? code : low;
        high = code > high ? code : high;
    }
    *least = static_cast<std::uint32_t>(low);
    *largest = static_cast<std::uint32_t>(high);
}

template <class Code>
ptrdiff_t codes_up_to(const Code* x, const std::int32_t* rows, ptrdiff_t m, std::uint32_t last,
                      std::uint32_t other, std::uint8_t* left) {
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < m; ++i) {
        const std::uint32_t code = x[rows[i]];
        count += left[i] = (code <= last) | (code == other);
    }
    return count;
}

inline std::uint64_t gather_words_block(const std::uint64_t* words, const std::int32_t* rows,
                                        ptrdiff_t m, std::uint64_t* out) {
    const std::uint64_t one = words[rows[0]];
    std::uint64_t varying = 0;
    for (ptrdiff_t i = 0; i < m; ++i) {
        out[i] = words[rows[i]];
        varying |= out[i] ^ one;
    }
    return varying;
}

inline ptrdiff_t without_bit_block(const std::uint64_t* words, ptrdiff_t m, int number,
                                   std::uint8_t* left) {
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < m; ++i) {
        left[i] = static_cast<std::uint8_t>(~words[i] >> number & 1);
        count += left[i];
    }
    return count;
}

template <class Code>
ptrdiff_t uncommon_codes(const Code* x, std::uint32_t common, const std::int32_t* rows,
                         const std::uint32_t* tags, ptrdiff_t m, std::uint32_t* codes,
                         std::uint32_t* their_tags) {
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < m; ++i) {
        codes[count] = x[rows[i]];
        their_tags[count] = tags[i];
        count += codes[count] != common;
    }
    return count;
}

inline ptrdiff_t gather_range_block(const float* x, const std::int32_t* rows, ptrdiff_t m,
                                    float* values, float* least, float* largest) {
    float low = std::numeric_limits<float>::infinity(), high = -low;
    std::int32_t missing = 0;
    for (ptrdiff_t i = 0; i < m; ++i) values[i] = x[rows[i]];
#pragma omp simd reduction(min : low) reduction(max : high) reduction(+ : missing)
    for (ptrdiff_t i = 0; i < m; ++i) {
        const float value = values[i];
        low = value < low ? value : low;
        high = value > high ? value : high;
        missing += value != value;
    }
    *least = low;
    *largest = high;
    return missing;
}

inline ptrdiff_t side_block(const float* values, ptrdiff_t m, float threshold, std::uint8_t missing,
                            std::uint8_t* left) {
    std::int32_t count = 0;
#pragma omp simd reduction(+ : count)
    for (ptrdiff_t i = 0; i < m; ++i) {
        const float value = values[i];
        const std::int32_t side = (value <= threshold) | ((value != value) & missing);
        left[i] = static_cast<std::uint8_t>(side);
        count += side;
    }
    return count;
}

// The sums over those of `left`, of all if it is null.
FML_INLINE void add_pairs(const std::uint8_t* left, const std::uint32_t* tags, ptrdiff_t m,
                          std::uint32_t* sums) {
    std::uint32_t w = 0, second = 0;
#pragma omp simd reduction(+ : w, second)
    for (ptrdiff_t i = 0; i < m; ++i) {
        const std::uint32_t side = left ? static_cast<std::uint32_t>(left[i]) : 1u;
        const std::uint32_t weight = (tags[i] >> 1) & (0 - side);
        w += weight;
        second += weight & (0 - (tags[i] & 1));
    }
    sums[0] = w;
    sums[1] = second;
}
#endif

inline ptrdiff_t uncommon_block(const Column& column, const std::int32_t* rows,
                                const std::uint32_t* tags, ptrdiff_t m, std::uint32_t* codes,
                                std::uint32_t* their_tags) {
    return column.with_codes([&](const auto* x) {
        return uncommon_codes(x, column.common, rows, tags, m, codes, their_tags);
    });
}
inline ptrdiff_t up_to_block(const Column& column, const std::int32_t* rows, ptrdiff_t m,
                             std::uint32_t last, std::uint32_t other, std::uint8_t* left) {
    return column.with_codes(
        [&](const auto* x) { return codes_up_to(x, rows, m, last, other, left); });
}

inline void pair_sums_block(const std::uint32_t* tags, ptrdiff_t m, std::uint32_t* sums) {
    add_pairs(nullptr, tags, m, sums);
}
inline void pair_sums_left_block(const std::uint8_t* left, const std::uint32_t* tags, ptrdiff_t m,
                                 std::uint32_t* sums) {
    add_pairs(left, tags, m, sums);
}
