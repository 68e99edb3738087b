// Passing over rows in the order of a feature, sixteen at a time: the sums before each row that has
// another code than the one before it.
#if FML_X86_REGIONS && FML_VECTOR_BYTES == 64

// The sums of the first 1, 2, ... lanes.
template <int by> FML_INLINE __m512i plus_lanes_before(__m512i v) {
    return _mm512_add_epi32(v, _mm512_alignr_epi32(v, _mm512_setzero_si512(), 16 - by));
}
FML_INLINE __m512i running(__m512i v) {
    return plus_lanes_before<8>(
        plus_lanes_before<4>(plus_lanes_before<2>(plus_lanes_before<1>(v))));
}
FML_INLINE __m512i last_lane(__m512i v) {
    return _mm512_permutexvar_epi32(_mm512_set1_epi32(15), v);
}

struct SixteenDoubles {
    __m512d low, high;

    static FML_INLINE SixteenDoubles of(__m512i v) {
        return {_mm512_cvtepi32_pd(_mm512_castsi512_si256(v)),
                _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(v, 1))};
    }
    FML_INLINE void add_squares(const SixteenDoubles& x) {
        low += x.low * x.low;
        high += x.high * x.high;
    }
    // Those of `lanes`, and anything behind them.
    FML_INLINE void store(double* out, __mmask16 lanes) const {
        const auto first = static_cast<__mmask8>(lanes);
        _mm512_storeu_pd(out, _mm512_maskz_compress_pd(first, low));
        _mm512_storeu_pd(out + count_bits(first),
                         _mm512_maskz_compress_pd(static_cast<__mmask8>(lanes >> 8), high));
    }
};

// step(tags, changed, queue) adds rows, and puts the sums before those that have changed.
template <class Step> FML_INLINE void scan_rows(const Scan& scan, Queue& queue, Step step) {
    const __m512i even =
        _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    const __m512i base = _mm512_set1_epi64(scan.base);
    __m512i before = _mm512_set1_epi32(
        static_cast<int>(scan.begin ? scan.pairs[scan.begin - 1] >> 32 : scan.pairs[0] >> 32));
    for (ptrdiff_t i = scan.begin; i < scan.end; i += row_lanes) {
        const __mmask16 there = lanes_from(i, scan.end);
        const __m512i a = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(there), scan.pairs + i);
        const __m512i b =
            _mm512_maskz_loadu_epi64(static_cast<__mmask8>(there >> 8), scan.pairs + i + 8);
        const __m512i tag = _mm512_permutex2var_epi32(a, even, b);
        const __m512i code = _mm512_permutex2var_epi32(a, odd, b);
        const __m512i lower = _mm512_alignr_epi32(code, before, 15);
        before = code;
        __mmask16 changed = _mm512_mask_cmpneq_epi32_mask(there, code, lower);
        if (i < scan.first)
            changed &= scan.first - i > 15 ? 0 : static_cast<__mmask16>(~0u << (scan.first - i));
        if (i + 15 > scan.last)
            changed &= scan.last < i ? 0 : static_cast<__mmask16>((2u << (scan.last - i)) - 1);
        if (changed) {
            const auto place = [&](__m512i below, __m512i above) {
                return _mm512_or_si512(_mm512_slli_epi64(_mm512_add_epi64(below, base), 32),
                                       _mm512_add_epi64(above, base));
            };
            const auto first = static_cast<__mmask8>(changed);
            const __m512i low = place(_mm512_cvtepu32_epi64(_mm512_castsi512_si256(lower)),
                                      _mm512_cvtepu32_epi64(_mm512_castsi512_si256(code)));
            const __m512i high = place(_mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(lower, 1)),
                                       _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(code, 1)));
            std::int64_t* const out = queue.place + queue.count;
            _mm512_storeu_si512(out, _mm512_maskz_compress_epi64(first, low));
            _mm512_storeu_si512(out + count_bits(first),
                                _mm512_maskz_compress_epi64(changed >> 8, high));
        }
        step(tag, changed, queue);
        queue.count += count_bits(changed);
    }
}

inline void scan_pair_block(const Scan& scan, std::uint32_t* w, std::uint32_t* second,
                            Queue& queue) {
    __m512i passed = _mm512_set1_epi32(static_cast<int>(*w));
    __m512i passed_second = _mm512_set1_epi32(static_cast<int>(*second));
    const __m512i one = _mm512_set1_epi32(1);
    scan_rows(scan, queue, [&](__m512i tag, __mmask16 changed, Queue& out) {
        const __m512i own = _mm512_srli_epi32(tag, 1);
        const __m512i own_second = _mm512_maskz_mov_epi32(_mm512_test_epi32_mask(tag, one), own);
        const __m512i sum = _mm512_add_epi32(passed, running(own));
        const __m512i sum_second = _mm512_add_epi32(passed_second, running(own_second));
        if (changed) {
            SixteenDoubles::of(_mm512_sub_epi32(sum, own)).store(out.w + out.count, changed);
            SixteenDoubles::of(_mm512_sub_epi32(sum_second, own_second))
                .store(out.left + out.count, changed);
        }
        passed = last_lane(sum);
        passed_second = last_lane(sum_second);
    });
    *w = static_cast<std::uint32_t>(_mm512_cvtsi512_si32(passed));
    *second = static_cast<std::uint32_t>(_mm512_cvtsi512_si32(passed_second));
}

template <int n_classes>
FML_INLINE void scan_so_many(const Scan& scan, int bits, const std::uint32_t* total,
                             std::uint32_t* left, Queue& queue) {
    __m512i passed[n_classes];
    for (int c = 0; c < n_classes; ++c) passed[c] = _mm512_set1_epi32(static_cast<int>(left[c]));
    const __m512i low = _mm512_set1_epi32((1 << bits) - 1);
    const __m128i shift = _mm_cvtsi32_si128(bits);
    scan_rows(scan, queue, [&](__m512i tag, __mmask16 changed, Queue& out) {
        const __m512i w = _mm512_srl_epi32(tag, shift), mine = _mm512_and_si512(tag, low);
        __m512i sums = _mm512_setzero_si512();
        SixteenDoubles lefts{_mm512_setzero_pd(), _mm512_setzero_pd()}, rights = lefts;
        for (int c = 0; c < n_classes; ++c) {
            const __m512i own =
                _mm512_maskz_mov_epi32(_mm512_cmpeq_epi32_mask(mine, _mm512_set1_epi32(c)), w);
            const __m512i sum = _mm512_add_epi32(passed[c], running(own));
            const __m512i before = _mm512_sub_epi32(sum, own);
            passed[c] = last_lane(sum);
            if (!changed) continue;
            sums = _mm512_add_epi32(sums, before);
            lefts.add_squares(SixteenDoubles::of(before));
            rights.add_squares(SixteenDoubles::of(
                _mm512_sub_epi32(_mm512_set1_epi32(static_cast<int>(total[c])), before)));
        }
        if (!changed) return;
        SixteenDoubles::of(sums).store(out.w + out.count, changed);
        lefts.store(out.left + out.count, changed);
        rights.store(out.right + out.count, changed);
    });
    for (int c = 0; c < n_classes; ++c)
        left[c] = static_cast<std::uint32_t>(_mm512_cvtsi512_si32(passed[c]));
}
inline void scan_classes_block(const Scan& scan, int bits, ptrdiff_t n_classes,
                               const std::uint32_t* total, std::uint32_t* left, Queue& queue) {
    with_so_many(n_classes, [&](auto so_many) {
        scan_so_many<decltype(so_many)::value>(scan, bits, total, left, queue);
    });
}

#else
// Tallies do it row by row.
constexpr decltype(SearchKernels::scan_pair) scan_pair_block = nullptr;
constexpr decltype(SearchKernels::scan_classes) scan_classes_block = nullptr;
#endif
