// Splits of few rows: with AVX-512 all at once, those between equal codes as well, which are passed
// over; otherwise one by one.
#include "trees/replay.inl.h"
#include "trees/replay_few.inl.h"

#ifdef FML_LANES
constexpr int half = 8;  // lanes

template <int by> FML_INLINE __m512i moved_up(__m512i v) {
    return _mm512_alignr_epi64(v, _mm512_setzero_si512(), half - by);
}
FML_INLINE __m512i add_lanes(__m512i v) {
    v = _mm512_add_epi64(v, moved_up<1>(v));
    v = _mm512_add_epi64(v, moved_up<2>(v));
    return _mm512_add_epi64(v, moved_up<4>(v));
}
template <int by> FML_INLINE __m512d plus_moved_up(__m512d v) {
    return v + _mm512_castsi512_pd(moved_up<by>(_mm512_castpd_si512(v)));
}
FML_INLINE __m512d add_lanes(__m512d v) {
    return plus_moved_up<4>(plus_moved_up<2>(plus_moved_up<1>(v)));
}

// The sums of x over those of m rows that each lane tells by bits: by tables of the sums of all
// subsets of four.
FML_INLINE __m512i subset_sums(const std::uint64_t* x, __m512i rows, std::ptrdiff_t m) {
    __m512i sums = _mm512_setzero_si512();
    const auto all = [x](std::ptrdiff_t i) {
        return _mm512_set1_epi64(static_cast<long long>(x[i]));
    };
    for (std::ptrdiff_t i = 0; i < m; i += 4) {
        __m512i low = _mm512_maskz_mov_epi64(0xaa, all(i));
        low = _mm512_mask_add_epi64(low, 0xcc, low, all(i + 1));
        low = _mm512_mask_add_epi64(low, 0xf0, low, all(i + 2));
        const __m512i high = _mm512_add_epi64(low, all(i + 3));
        sums = _mm512_add_epi64(sums, _mm512_permutex2var_epi64(low, rows, high));
        rows = _mm512_srli_epi64(rows, 4);
    }
    return sums;
}
FML_INLINE __m512d subset_sums(const double* x, __m512i rows, std::ptrdiff_t m) {
    __m512d sums = _mm512_setzero_pd();
    for (std::ptrdiff_t i = 0; i < m; i += 4) {
        __m512d low = _mm512_maskz_mov_pd(0xaa, _mm512_set1_pd(x[i]));
        low = _mm512_mask_add_pd(low, 0xcc, low, _mm512_set1_pd(x[i + 1]));
        low = _mm512_mask_add_pd(low, 0xf0, low, _mm512_set1_pd(x[i + 2]));
        const __m512d high = low + _mm512_set1_pd(x[i + 3]);
        sums += _mm512_permutex2var_pd(low, rows, high);
        rows = _mm512_srli_epi64(rows, 4);
    }
    return sums;
}

// Sums of the first 1, 2, ... rows, half of the lanes at a time; places (few) tell their order.
class ClassSums {
  public:
    explicit ClassSums(const FewClasses& classes)
        : of_(classes.of), low_(_mm512_load_si512(classes.of)),
          high_(_mm512_load_si512(classes.of + half)),
          total_(_mm512_set1_epi64(static_cast<long long>(classes.total))),
          total_w_(_mm512_set1_pd(classes.total_w)) {}

    void next(__m512i places) {
        sums_ =
            _mm512_add_epi64(add_lanes(_mm512_permutex2var_epi64(low_, places, high_)), before_);
        before_ = _mm512_permutexvar_epi64(_mm512_set1_epi64(half - 1), sums_);
    }
    // Of some rows, in all lanes.
    void only(__mmask16 rows) {
        const __m512i low = _mm512_maskz_mov_epi64(static_cast<__mmask8>(rows), low_);
        const __m512i high = _mm512_maskz_mov_epi64(static_cast<__mmask8>(rows >> half), high_);
        sums_ = _mm512_set1_epi64(_mm512_reduce_add_epi64(_mm512_add_epi64(low, high)));
    }
    // Of those of m rows that each lane tells by bits.
    void subsets(__m512i rows, std::ptrdiff_t m) { sums_ = subset_sums(of_, rows, m); }
    __m512d score(double least, __mmask8* enough) const {
        const __m512i right = _mm512_sub_epi64(total_, sums_);
        const __m512d w = _mm512_cvtepi64_pd(_mm512_sad_epu8(sums_, _mm512_setzero_si512()));
        const __m512d rest = total_w_ - w, bound = _mm512_set1_pd(least);
        *enough = _mm512_mask_cmp_pd_mask(_mm512_cmp_pd_mask(w, bound, _CMP_GE_OQ), rest, bound,
                                          _CMP_GE_OQ);
        return -rest * (1.0 - squares(right) / (rest * rest)) -
               w * (1.0 - squares(sums_) / (w * w));
    }

  private:
    static FML_INLINE __m512d squares(__m512i bytes) {
        const __m512i pairs =
            _mm512_madd_epi16(_mm512_maddubs_epi16(bytes, bytes), _mm512_set1_epi16(1));
        return _mm512_cvtepi64_pd(_mm512_add_epi64(
            _mm512_and_si512(pairs, _mm512_set1_epi64(0xffffffff)), _mm512_srli_epi64(pairs, 32)));
    }
    const std::uint64_t* of_;
    __m512i low_, high_, total_, sums_, before_ = _mm512_setzero_si512();
    __m512d total_w_;
};

class TargetSums {
  public:
    explicit TargetSums(const FewTargets& targets)
        : targets_(targets), total_w_(_mm512_set1_pd(targets.total_w)),
          total_(_mm512_set1_pd(targets.total_wy)) {}

    void next(__m512i places) {
        w_ = add_lanes(in_order(targets_.w, places)) + before_w_;
        wy_ = add_lanes(in_order(targets_.wy, places)) + before_;
        const __m512i last = _mm512_set1_epi64(half - 1);
        before_w_ = _mm512_permutexvar_pd(last, w_);
        before_ = _mm512_permutexvar_pd(last, wy_);
    }
    void only(__mmask16 rows) {
        w_ = _mm512_set1_pd(sum(targets_.w, rows));
        wy_ = _mm512_set1_pd(sum(targets_.wy, rows));
    }
    void subsets(__m512i rows, std::ptrdiff_t m) {
        w_ = subset_sums(targets_.w, rows, m);
        wy_ = subset_sums(targets_.wy, rows, m);
    }
    __m512d score(double least, __mmask8* enough) const {
        const __m512d rest = total_w_ - w_, right = total_ - wy_, bound = _mm512_set1_pd(least);
        *enough = _mm512_mask_cmp_pd_mask(_mm512_cmp_pd_mask(w_, bound, _CMP_GE_OQ), rest, bound,
                                          _CMP_GE_OQ);
        return wy_ * wy_ / w_ + right * right / rest;
    }

  private:
    static FML_INLINE __m512d in_order(const double* x, __m512i places) {
        return _mm512_permutex2var_pd(_mm512_loadu_pd(x), places, _mm512_loadu_pd(x + half));
    }
    static FML_INLINE double sum(const double* x, __mmask16 rows) {
        return _mm512_reduce_add_pd(
            _mm512_maskz_loadu_pd(static_cast<__mmask8>(rows), x) +
            _mm512_maskz_loadu_pd(static_cast<__mmask8>(rows >> half), x + half));
    }
    const FewTargets& targets_;
    __m512d total_w_, total_, w_, wy_, before_w_ = _mm512_setzero_pd(), before_ = before_w_;
};

FML_INLINE ClassSums sums_of(const FewClasses& classes) { return ClassSums(classes); }
FML_INLINE TargetSums sums_of(const FewTargets& targets) { return TargetSums(targets); }

template <class Sums>
FML_INLINE double score_side(Sums& sums, __mmask16 left, std::ptrdiff_t m,
                             std::ptrdiff_t least_rows, double least) {
    const double none = -std::numeric_limits<double>::infinity();
    const int n_left = count_bits(left);
    if (n_left < least_rows || m - n_left < least_rows) return none;
    sums.only(left);
    __mmask8 enough;
    const __m512d proxy = sums.score(least, &enough);
    return enough ? _mm512_cvtsd_f64(proxy) : none;
}

template <class Code, class Sums>
FewSplit split_codes(const Code* column, bool two_values, const std::int32_t* rows,
                     std::ptrdiff_t m, Sums sums, std::ptrdiff_t least_rows, double least) {
    const double none = -std::numeric_limits<double>::infinity();
    const __mmask16 there = first<std::uint32_t>(m);
    const __m512i all = _mm512_set1_epi32(-1), lanes = Lanes<std::uint32_t>::numbers();
    __m512i code =
        _mm512_mask_i32gather_epi32(all, there, _mm512_loadu_si512(rows), column, sizeof(Code));
    if (sizeof(Code) < 4) code = _mm512_and_si512(code, _mm512_set1_epi32(Code(-1)));
    const __m512i first_code = _mm512_broadcastd_epi32(_mm512_castsi512_si128(code));
    if (!_mm512_mask_cmpneq_epi32_mask(there, code, first_code))
        return {FewSplit::constant, none, 0, 0, 0};
    if (_mm512_mask_test_epi32_mask(there, code, _mm512_set1_epi32(1)))
        return {FewSplit::close, none, 0, 0, 0};
    if (two_values) {
        const __mmask16 left = _mm512_mask_testn_epi32_mask(there, code, code);
        return {FewSplit::varied, score_side(sums, left, m, least_rows, least), left, 0, 2};
    }

    __m512i key = _mm512_mask_or_epi32(all, there, _mm512_slli_epi32(code, few_bits), lanes);
    key = sort_step<2, 1>(key);
    if (m > 2) key = sort_step<4, 1>(sort_step<4, 2>(key));
    if (m > 4) key = sort_step<8, 1>(sort_step<8, 2>(sort_step<8, 4>(key)));
    if (m > 8) key = sort_step<16, 1>(sort_step<16, 2>(sort_step<16, 4>(sort_step<16, 8>(key))));
    const __m512i places = _mm512_and_si512(key, _mm512_set1_epi32((1 << few_bits) - 1));
    alignas(64) std::uint32_t codes[few];
    const __m512i sorted = _mm512_srli_epi32(key, few_bits);
    _mm512_store_si512(codes, sorted);
    // Lane i is about the split behind the row that is now there.
    unsigned possible = _mm512_cmpneq_epi32_mask(sorted, _mm512_alignr_epi32(sorted, sorted, 1));
    possible &= (1u << (m - least_rows)) - (1u << (least_rows - 1));

    FewSplit split{FewSplit::varied, none, 0, 0, 0};
    __m512i half_places = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(places));
    for (int begin = 0;; begin += half) {
        sums.next(half_places);
        __mmask8 enough;
        __m512d proxy = sums.score(least, &enough);
        enough &= static_cast<__mmask8>(possible >> begin);
        proxy = _mm512_mask_mov_pd(_mm512_set1_pd(none), enough, proxy);
        const double best = _mm512_reduce_max_pd(proxy);
        if (best > split.proxy) {
            const unsigned equal = _mm512_cmp_pd_mask(proxy, _mm512_set1_pd(best), _CMP_EQ_OQ);
            const int at = begin + __builtin_ctz(equal);
            split.proxy = best;
            split.lower = codes[at];
            split.upper = codes[at + 1];
        }
        if (begin || m <= half + 1) break;
        half_places = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(places, 1));
    }
    split.left =
        _mm512_mask_cmple_epu32_mask(there, code, _mm512_set1_epi32(static_cast<int>(split.lower)));
    return split;
}

inline void take_bits_block(const std::uint64_t* words, const std::int32_t* rows, std::ptrdiff_t m,
                            FewBits& out) {
    const __mmask16 there = first<std::uint32_t>(m);
    const __m512i row = _mm512_loadu_si512(rows);
    const __m512i one = _mm512_set1_epi64(static_cast<long long>(words[rows[0]]));
    const __m512i low = _mm512_mask_i32gather_epi64(one, static_cast<__mmask8>(there),
                                                    _mm512_castsi512_si256(row), words, 8);
    _mm512_store_si512(out.of, low);
    __m512i varying = _mm512_xor_si512(low, one);
    if (m > half) {
        const __m512i high = _mm512_mask_i32gather_epi64(
            one, static_cast<__mmask8>(there >> half), _mm512_extracti64x4_epi64(row, 1), words, 8);
        _mm512_store_si512(out.of + half, high);
        varying = _mm512_or_si512(varying, _mm512_xor_si512(high, one));
    }
    out.varying = static_cast<std::uint64_t>(_mm512_reduce_or_epi64(varying));
}

template <class Rows>
FewBest best_bit_block(const FewBit* bits, int count, std::ptrdiff_t m, const Rows& rows,
                       std::ptrdiff_t least_rows, double least) {
    const double none = -std::numeric_limits<double>::infinity();
    const __mmask16 there = first<std::uint32_t>(m);
    std::uint64_t left[most_bits * sizeof(__mmask16) / sizeof(std::uint64_t)] = {};
    unsigned possible = 0;
    for (int k = 0; k < count; ++k) {
        const std::uint64_t* of = bits[k].word->of;
        const __m512i bit = _mm512_set1_epi64(static_cast<long long>(1ull << bits[k].number));
        unsigned low = _mm512_testn_epi64_mask(_mm512_load_si512(of), bit);
        if (m > half)
            low |= unsigned{_mm512_testn_epi64_mask(_mm512_load_si512(of + half), bit)} << half;
        low &= there;
        const int n_left = count_bits(static_cast<__mmask16>(low));
        possible |= unsigned{n_left >= least_rows && m - n_left >= least_rows} << k;
        left[k / 4] |= std::uint64_t{low} << 16 * (k % 4);
    }
    auto sums = sums_of(rows);
    sums.subsets(_mm512_cvtepu16_epi64(_mm_set_epi64x(static_cast<long long>(left[1]),
                                                      static_cast<long long>(left[0]))),
                 m);
    __mmask8 enough;
    __m512d proxy = sums.score(least, &enough);
    enough &= static_cast<__mmask8>(possible);
    proxy = _mm512_mask_mov_pd(_mm512_set1_pd(none), enough, proxy);
    const double best = _mm512_reduce_max_pd(proxy);
    const unsigned equal = _mm512_cmp_pd_mask(proxy, _mm512_set1_pd(best), _CMP_EQ_OQ);
    const int which = __builtin_ctz(equal);
    return {best, static_cast<std::uint32_t>(left[which / 4] >> 16 * (which % 4) & 0xffff), which};
}

inline bool take_few_block(const std::uint32_t* tags, int bits, std::ptrdiff_t m, FewClasses& out) {
    const __m512i tag = _mm512_maskz_loadu_epi32(first<std::uint32_t>(m), tags);
    const __m512i w = _mm512_srl_epi32(tag, _mm_cvtsi32_si128(bits));
    // Heavy ones could overflow together.
    const auto heaviest = static_cast<std::uint32_t>(_mm512_reduce_max_epu32(w));
    const int total = _mm512_reduce_add_epi32(w);
    if (heaviest > most_few_weight || total > static_cast<int>(most_few_weight)) return false;
    const __m512i shift =
        _mm512_slli_epi32(_mm512_and_si512(tag, _mm512_set1_epi32((1 << bits) - 1)), 3);
    const __m512i low = _mm512_sllv_epi64(_mm512_cvtepu32_epi64(_mm512_castsi512_si256(w)),
                                          _mm512_cvtepu32_epi64(_mm512_castsi512_si256(shift)));
    const __m512i high =
        _mm512_sllv_epi64(_mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(w, 1)),
                          _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(shift, 1)));
    _mm512_store_si512(out.of, low);
    _mm512_store_si512(out.of + half, high);
    out.total = static_cast<std::uint64_t>(_mm512_reduce_add_epi64(_mm512_add_epi64(low, high)));
    out.total_w = total;
    return true;
}

inline std::uint64_t sum_few_block(const FewClasses& classes, std::uint32_t rows) {
    return static_cast<std::uint64_t>(_mm512_reduce_add_epi64(_mm512_add_epi64(
        _mm512_maskz_load_epi64(static_cast<__mmask8>(rows), classes.of),
        _mm512_maskz_load_epi64(static_cast<__mmask8>(rows >> half), classes.of + half))));
}

inline std::ptrdiff_t move_few_block(std::uint32_t left, std::int32_t* rows, std::uint32_t* tags,
                                     std::ptrdiff_t m) {
    const __mmask16 there = first<std::uint32_t>(m);
    const auto low = static_cast<__mmask16>(left);
    const auto high = static_cast<__mmask16>(there & ~low);
    const int n_left = count_bits(low);
    const auto behind = static_cast<__mmask16>(there & ~((1u << n_left) - 1));
    const auto move = [&](void* x) {
        const __m512i v = _mm512_maskz_loadu_epi32(there, x);
        const __m512i moved = _mm512_mask_expand_epi32(_mm512_maskz_compress_epi32(low, v), behind,
                                                       _mm512_maskz_compress_epi32(high, v));
        _mm512_mask_storeu_epi32(x, there, moved);
    };
    move(rows);
    move(tags);
    return n_left;
}

#else
class ClassSums {
  public:
    explicit ClassSums(const FewClasses& classes) : classes_(classes) {}

    void add(std::uint32_t row) { sums_ += classes_.of[row]; }
    double score(double least) const {
        double w = 0, left = 0, right = 0;
        for (int shift = 0; shift < 64 && classes_.total >> shift; shift += 8) {
            const double l = static_cast<double>(sums_ >> shift & 255);
            const double r = static_cast<double>((classes_.total - sums_) >> shift & 255);
            w += l;
            left += l * l;
            right += r * r;
        }
        const double rest = classes_.total_w - w;
        if (w < least || rest < least) return -std::numeric_limits<double>::infinity();
        return -rest * (1.0 - right / (rest * rest)) - w * (1.0 - left / (w * w));
    }

  private:
    const FewClasses& classes_;
    std::uint64_t sums_ = 0;
};

class TargetSums {
  public:
    explicit TargetSums(const FewTargets& targets) : targets_(targets) {}

    void add(std::uint32_t row) {
        w_ += targets_.w[row];
        wy_ += targets_.wy[row];
    }
    double score(double least) const {
        const double rest = targets_.total_w - w_, right = targets_.total_wy - wy_;
        if (w_ < least || rest < least) return -std::numeric_limits<double>::infinity();
        return wy_ * wy_ / w_ + right * right / rest;
    }

  private:
    const FewTargets& targets_;
    double w_ = 0, wy_ = 0;
};

inline ClassSums sums_of(const FewClasses& classes) { return ClassSums(classes); }
inline TargetSums sums_of(const FewTargets& targets) { return TargetSums(targets); }

template <class Code, class Sums>
FewSplit split_codes(const Code* column, bool two_values, const std::int32_t* rows,
                     std::ptrdiff_t m, Sums sums, std::ptrdiff_t least_rows, double least) {
    FewSplit split{FewSplit::constant, -std::numeric_limits<double>::infinity(), 0, 0, 0};
    std::uint32_t order[few], codes[few], changes[few];
    for (std::uint32_t i = 0; i < few; ++i) order[i] = i;
    const std::ptrdiff_t count = sort_few(column, rows, m, two_values, order, codes, changes);
    if (!count) return split;
    split.kind = FewSplit::varied;
    for (std::ptrdiff_t i = 0; i < m; ++i)
        if (codes[i] & 1) split.kind = FewSplit::close;
    if (split.kind == FewSplit::close) return split;
    std::ptrdiff_t at = 0, cut = 0;
    for (std::ptrdiff_t k = 0; k < count; ++k) {
        const std::ptrdiff_t p = changes[k];
        for (; at < p; ++at) sums.add(order[at]);
        if (p < least_rows || p > m - least_rows) continue;
        const double proxy = sums.score(least);
        if (proxy > split.proxy) {
            split.proxy = proxy;
            cut = p;
        }
    }
    if (!cut) return split;
    split.lower = codes[cut - 1];
    split.upper = codes[cut];
    for (std::ptrdiff_t i = 0; i < cut; ++i) split.left |= 1u << order[i];
    return split;
}

inline void take_bits_block(const std::uint64_t* words, const std::int32_t* rows, std::ptrdiff_t m,
                            FewBits& out) {
    out.varying = 0;
    for (std::ptrdiff_t i = 0; i < m; ++i) {
        out.of[i] = words[rows[i]];
        out.varying |= out.of[i] ^ out.of[0];
    }
}

template <class Rows>
FewBest best_bit_block(const FewBit* bits, int count, std::ptrdiff_t m, const Rows& rows,
                       std::ptrdiff_t least_rows, double least) {
    FewBest best{-std::numeric_limits<double>::infinity(), 0, 0};
    for (int k = 0; k < count; ++k) {
        auto sums = sums_of(rows);
        std::uint32_t left = 0;
        std::ptrdiff_t n_left = 0;
        for (std::ptrdiff_t i = 0; i < m; ++i) {
            if (bits[k].word->of[i] >> bits[k].number & 1) continue;
            left |= 1u << i;
            ++n_left;
            sums.add(static_cast<std::uint32_t>(i));
        }
        if (n_left < least_rows || m - n_left < least_rows) continue;
        const double proxy = sums.score(least);
        if (proxy > best.proxy) best = {proxy, left, k};
    }
    return best;
}

inline bool take_few_block(const std::uint32_t* tags, int bits, std::ptrdiff_t m, FewClasses& out) {
    out.total = 0;
    std::uint64_t total = 0;
    for (std::ptrdiff_t i = 0; i < few; ++i) {
        const std::uint64_t w = i < m ? tags[i] >> bits : 0;
        const std::uint32_t shift = i < m ? 8 * (tags[i] & ((1u << bits) - 1)) : 0;
        out.of[i] = w << shift;
        out.total += out.of[i];
        total += w;
    }
    out.total_w = static_cast<double>(total);
    return total <= most_few_weight;
}

inline std::uint64_t sum_few_block(const FewClasses& classes, std::uint32_t rows) {
    std::uint64_t sum = 0;
    for (std::ptrdiff_t i = 0; i < few; ++i) sum += rows >> i & 1 ? classes.of[i] : 0;
    return sum;
}

inline std::ptrdiff_t move_few_block(std::uint32_t left, std::int32_t* rows, std::uint32_t* tags,
                                     std::ptrdiff_t m) {
    std::int32_t right_rows[few];
    std::uint32_t right_tags[few];
    std::ptrdiff_t n_left = 0, n_right = 0;
    for (std::ptrdiff_t i = 0; i < m; ++i) {
        right_rows[n_right] = rows[i];
        right_tags[n_right] = tags[i];
        rows[n_left] = rows[i];
        tags[n_left] = tags[i];
        n_left += left >> i & 1;
        n_right += ~left >> i & 1;
    }
    std::copy_n(right_rows, n_right, rows + n_left);
    std::copy_n(right_tags, n_right, tags + n_left);
    return n_left;
}
#endif

template <class Rows>
FewSplit split_few_block(const Column& column, const std::int32_t* rows, std::ptrdiff_t m,
                         const Rows& values, std::ptrdiff_t least_rows, double least) {
    const bool two_values = column.n_values == 2;
    return column.with_codes([&](const auto* codes) {
        return split_codes(codes, two_values, rows, m, sums_of(values), least_rows, least);
    });
}
