// One pass of a partition. Elements that stay left are "low", the others "high".
//
// The loop that is emulated looks at elements from the left; a high one is exchanged with the last
// element not yet looked at, which is looked at next. So with M low ones in all, the k-th high one
// among the first M, from the left, makes room for the k-th low one among the others, from the
// right. Behind M every element moves down by one, and the places of low ones, from the right, and
// first of all the last place, take the high ones that came from the left, in order; the last of
// these is the element at M if that is high. Nothing is exchanged: two streams of elements that
// move are written and read again, and which lanes take part is known from comparisons alone.

#if FML_X86_REGIONS && FML_VECTOR_BYTES == 64
#define FML_LANES 1
template <class K> struct Lanes;

template <> struct Lanes<std::uint32_t> {
    typedef __m512i V;
    typedef __mmask16 Mask;
    static constexpr std::ptrdiff_t n = 16;
    static FML_INLINE V fill(std::uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
    static FML_INLINE V load(const void* p) { return _mm512_loadu_si512(p); }
    static FML_INLINE V load(const void* p, Mask m) { return _mm512_maskz_loadu_epi32(m, p); }
    static FML_INLINE void store(void* p, V v) { _mm512_storeu_si512(p, v); }
    static FML_INLINE void store(void* p, V v, Mask m) { _mm512_mask_storeu_epi32(p, m, v); }
    static FML_INLINE V reverse(V v) {
        return _mm512_permutexvar_epi32(
            _mm512_set_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), v);
    }
    static FML_INLINE Mask below(V a, V b) { return _mm512_cmplt_epu32_mask(a, b); }
    static FML_INLINE V squeeze(V v, Mask m) { return _mm512_maskz_compress_epi32(m, v); }
    static FML_INLINE V spread(V over, V v, Mask m) { return _mm512_mask_expand_epi32(over, m, v); }
    static FML_INLINE V numbers() {
        return _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    }
    static FML_INLINE V add(V a, V b) { return _mm512_add_epi32(a, b); }
    static FML_INLINE V both(V a, V b) { return _mm512_and_epi32(a, b); }
    static FML_INLINE V choose(Mask m, V no, V yes) { return _mm512_mask_blend_epi32(m, no, yes); }
    static FML_INLINE V pick(V lanes, V v) { return _mm512_permutexvar_epi32(lanes, v); }
    static FML_INLINE void store_rows(std::int32_t* out, V v, const std::int32_t* table, Mask m) {
        if (table) v = _mm512_mask_i32gather_epi32(v, m, v, table, 4);
        store(out, v, m);
    }
};

template <> struct Lanes<std::uint64_t> {
    typedef __m512i V;
    typedef __mmask8 Mask;
    static constexpr std::ptrdiff_t n = 8;
    static FML_INLINE V fill(std::uint64_t x) {
        return _mm512_set1_epi64(static_cast<long long>(x));
    }
    static FML_INLINE V load(const void* p) { return _mm512_loadu_si512(p); }
    static FML_INLINE V load(const void* p, Mask m) { return _mm512_maskz_loadu_epi64(m, p); }
    static FML_INLINE void store(void* p, V v) { _mm512_storeu_si512(p, v); }
    static FML_INLINE void store(void* p, V v, Mask m) { _mm512_mask_storeu_epi64(p, m, v); }
    static FML_INLINE V reverse(V v) {
        return _mm512_permutexvar_epi64(_mm512_set_epi64(0, 1, 2, 3, 4, 5, 6, 7), v);
    }
    static FML_INLINE Mask below(V a, V b) { return _mm512_cmplt_epu64_mask(a, b); }
    static FML_INLINE V squeeze(V v, Mask m) { return _mm512_maskz_compress_epi64(m, v); }
    static FML_INLINE V spread(V over, V v, Mask m) { return _mm512_mask_expand_epi64(over, m, v); }
    static FML_INLINE V numbers() { return _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0); }
    static FML_INLINE V add(V a, V b) { return _mm512_add_epi64(a, b); }
    static FML_INLINE V both(V a, V b) { return _mm512_and_epi64(a, b); }
    static FML_INLINE V choose(Mask m, V no, V yes) { return _mm512_mask_blend_epi64(m, no, yes); }
    static FML_INLINE V pick(V lanes, V v) { return _mm512_permutexvar_epi64(lanes, v); }
    static FML_INLINE void store_rows(std::int32_t* out, V v, const std::int32_t*, Mask m) {
        _mm256_mask_storeu_epi32(out, m, _mm512_cvtepi64_epi32(v));  // always the row itself
    }
};

template <class K> FML_INLINE typename Lanes<K>::Mask first(std::ptrdiff_t count) {
    return static_cast<typename Lanes<K>::Mask>((1u << count) - 1);
}
// The last `count` lanes: where a reversed vector has what were its first ones.
template <class K> FML_INLINE typename Lanes<K>::Mask last(std::ptrdiff_t count) {
    return static_cast<typename Lanes<K>::Mask>(~((1u << (Lanes<K>::n - count)) - 1));
}
#endif

// Low are keys up to `bound`.
template <class K> struct UpTo {
    K bound;
    bool operator()(std::ptrdiff_t, K key) const { return key <= bound; }
#ifdef FML_LANES
    typename Lanes<K>::V wide = Lanes<K>::fill(bound);
    FML_INLINE typename Lanes<K>::Mask up(std::ptrdiff_t, typename Lanes<K>::V v) const {
        return static_cast<typename Lanes<K>::Mask>(~Lanes<K>::below(wide, v));
    }
    // Of a reversed vector, whose first element is the last of `count` from the i-th on.
    FML_INLINE typename Lanes<K>::Mask down(std::ptrdiff_t, typename Lanes<K>::V v,
                                            std::ptrdiff_t count = Lanes<K>::n) const {
        return up(0, v) & last<K>(count);
    }
#endif
};

// Low are the elements whose mark is set.
struct Marked {
    const std::uint8_t* marks;
    bool operator()(std::ptrdiff_t i, std::uint32_t) const { return marks[i] != 0; }
#ifdef FML_LANES
    FML_INLINE __mmask16 up(std::ptrdiff_t i, __m512i) const {
        const __m128i v = _mm_loadu_si128((const __m128i*)(marks + i));
        return _mm_test_epi8_mask(v, v);
    }
    FML_INLINE __mmask16 down(std::ptrdiff_t i, __m512i, std::ptrdiff_t count = 16) const {
        const __m128i backwards =
            _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        const __mmask16 there = first<std::uint32_t>(count);
        const __m128i v = _mm_shuffle_epi8(_mm_maskz_loadu_epi8(there, marks + i), backwards);
        return _mm_test_epi8_mask(v, v);
    }
#endif
};

// The low elements of a[M..n), from the last to the first. Writes nothing beyond low[n - M).
template <class K, class Low>
std::ptrdiff_t gather_low(const K* a, std::ptrdiff_t M, std::ptrdiff_t n, const Low& is_low,
                          K* low) {
    std::ptrdiff_t count = 0, x = n;
#ifdef FML_LANES
    using L = Lanes<K>;
    for (; x - L::n >= M; x -= L::n) {
        const auto v = L::reverse(L::load(a + x - L::n));
        const auto m = is_low.down(x - L::n, v);
        L::store(low + count, L::squeeze(v, m));
        count += count_bits(m);
    }
    if (const std::ptrdiff_t rest = x - M) {
        const auto v = L::reverse(L::load(a + M, first<K>(rest)));
        const auto m = is_low.down(M, v, rest);
        const std::ptrdiff_t found = count_bits(m);
        L::store(low + count, L::squeeze(v, m), first<K>(found));
        count += found;
    }
#else
    while (x-- > M) {
        low[count] = a[x];
        count += is_low(x, a[x]);
    }
#endif
    return count;
}

// to[M..n) = what a[M..n) becomes. high: the high ones of a[0..M) in order, `count` of them, with
// room for one more.
template <class K, class Low>
void settle_high(const K* a, std::ptrdiff_t M, std::ptrdiff_t n, const Low& is_low, K* high,
                 std::ptrdiff_t count, K* to) {
    if (!is_low(M, a[M])) high[count] = a[M];
    to[n - 1] = *high++;
    std::ptrdiff_t x = n;
#ifdef FML_LANES
    using L = Lanes<K>;
    for (; x - L::n > M; x -= L::n) {
        const auto v = L::reverse(L::load(a + x - L::n));
        const auto m = is_low.down(x - L::n, v);
        L::store(to + x - L::n - 1, L::reverse(L::spread(v, L::load(high), m)));
        high += count_bits(m);
    }
    if (const std::ptrdiff_t rest = x - M - 1) {
        const auto v = L::reverse(L::load(a + M + 1, first<K>(rest)));
        const auto m = is_low.down(M + 1, v, rest);
        L::store(to + M, L::reverse(L::spread(v, L::load(high), m)), first<K>(rest));
    }
#else
    for (--x; x > M; --x) {
        const bool low = is_low(x, a[x]);
        to[x - 1] = low ? *high : a[x];
        high += low;
    }
#endif
}

// a[0..M), with its high elements replaced by `low` in order and appended to `high`, which may be
// written a vector beyond its end. Returns their number.
template <class K, class Low>
std::ptrdiff_t settle_low(K* a, std::ptrdiff_t M, const Low& is_low, const K* low, K* high) {
    std::ptrdiff_t count = 0, i = 0;
#ifdef FML_LANES
    using L = Lanes<K>;
    for (; i + L::n <= M; i += L::n) {
        const auto v = L::load(a + i);
        const auto m = static_cast<typename L::Mask>(~is_low.up(i, v));
        L::store(high + count, L::squeeze(v, m));
        L::store(a + i, L::spread(v, L::load(low + count), m));
        count += count_bits(m);
    }
#endif
    for (; i < M; ++i) {
        const K v = a[i];
        const bool out = !is_low(i, v);
        high[count] = v;
        a[i] = out ? low[count] : v;
        count += out;
    }
    return count;
}

#ifdef FML_LANES
// The same for m elements of one vector, not all of it low; what is behind them stays.
FML_INLINE __m512i settled(__m512i v, std::ptrdiff_t m, unsigned low) {
    using L = Lanes<std::uint32_t>;
    typedef L::Mask Mask;
    const int M = count_bits(low);
    const unsigned front = (1u << M) - 1;
    const auto lanes = L::numbers();
    const auto moved_right = static_cast<Mask>(~low & front);
    const auto moved_left = static_cast<Mask>(low & ~front);
    // The first, from the front, of those that go right, and at the end the one at M.
    const auto high = L::squeeze(v, static_cast<Mask>(moved_right | (~low & (front + 1))));
    const auto ascending = L::squeeze(v, moved_left);
    const auto descending =
        L::pick(_mm512_sub_epi32(_mm512_set1_epi32(count_bits(moved_left) - 1), lanes), ascending);
    auto out = L::spread(v, descending, moved_right);
    // Behind M all move down, and of those that are low the last one takes the second high one.
    const auto taken = static_cast<Mask>((low & ~(2 * front + 1)) >> 1);
    const auto backwards =
        L::pick(_mm512_sub_epi32(_mm512_set1_epi32(count_bits(taken)), lanes), high);
    const auto shifted = L::pick(_mm512_add_epi32(lanes, _mm512_set1_epi32(1)), v);
    const unsigned end = 1u << (m - 1);
    out =
        L::choose(static_cast<Mask>((end - 1) & ~front), out, L::spread(shifted, backwards, taken));
    return _mm512_mask_broadcastd_epi32(out, static_cast<Mask>(end), _mm512_castsi512_si128(high));
}
// Of a[0..m); returns how many are low. What is behind m is read, and written as it was: a masked
// store cannot be forwarded to the load that follows.
inline std::ptrdiff_t settle_few(std::uint32_t* a, std::ptrdiff_t m, unsigned low) {
    using L = Lanes<std::uint32_t>;
    L::store(a, settled(L::load(a), m, low));
    return count_bits(low);
}
#endif
