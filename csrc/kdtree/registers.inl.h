// Sorted lists of (distance, row) that stay in registers, for a few neighbours.
#if FML_VECTOR_LISTS

// v one lane further, with the last of `before` in front.
template <class V> FML_INLINE V moved_on(const V& v, const V& before) {
    if constexpr (sizeof(v[0]) == 4)
        return (V)_mm512_alignr_epi32((__m512i)v, (__m512i)before, 15);
    else
        return (V)_mm512_alignr_epi64((__m512i)v, (__m512i)before, 7);
}
// v, but `here` in the lanes after it, and `moved` in those after the first of them.
template <class V>
FML_INLINE V inserted(const V& v, const V& here, const V& moved, unsigned after, unsigned further) {
    const __m512i w = (__m512i)v, x = (__m512i)here, y = (__m512i)moved;
    if constexpr (sizeof(v[0]) == 4)
        return (V)_mm512_mask_mov_epi32(_mm512_mask_mov_epi32(w, after, x), further, y);
    else
        return (V)_mm512_mask_mov_epi64(_mm512_mask_mov_epi64(w, after, x), further, y);
}
template <class T> FML_INLINE bool any_equal(const typename Simd<T>::Vec& v,
                                             const typename Simd<T>::Vec& x) {
    if constexpr (sizeof(T) == 4)
        return _mm512_cmp_ps_mask((__m512)v, (__m512)x, _CMP_EQ_OQ);
    else
        return _mm512_cmp_pd_mask((__m512d)v, (__m512d)x, _CMP_EQ_OQ);
}
// Which of 16 rows come before r, by bits.
FML_INLINE unsigned rows_before(const std::int32_t* rows, std::int32_t r) {
    return _mm512_cmplt_epi32_mask(_mm512_loadu_si512(rows), _mm512_set1_epi32(r));
}
FML_INLINE unsigned rows_before(const std::int64_t* rows, std::int64_t r) {
    const __m512i v = _mm512_set1_epi64(r);
    return _mm512_cmplt_epi64_mask(_mm512_loadu_si512(rows), v) |
           _mm512_cmplt_epi64_mask(_mm512_loadu_si512(rows + 8), v) << 8;
}

// The first register of such a list, and the others.
template <class T, int N> struct Registers {
    using Vec = typename Simd<T>::Vec;
    using Index = typename Simd<T>::Index;
    using Int = typename KDTree<T>::Int;
    static constexpr int lanes = Simd<T>::lanes;
    Vec distance;
    Index row;
    Registers<T, N - 1> others;

    FML_INLINE void clear() {
        distance = broadcast<Vec>(std::numeric_limits<T>::infinity());
        row = broadcast<Index>(absent<Int>);
        others.clear();
    }
    FML_INLINE void get(const T* distances, const Int* rows) {
        distance = load<Vec>(distances);
        row = load<Index>(rows);
        others.get(distances + lanes, rows + lanes);
    }
    FML_INLINE void put(T* distances, Int* rows) const {
        store(distances, distance);
        store(rows, row);
        others.put(distances + lanes, rows + lanes);
    }
    FML_INLINE bool has(const Vec& x) const { return any_equal<T>(distance, x) | others.has(x); }

    // Puts (x, r) in its place; `before_` is the register in front. Distances need no more than the
    // least and the greatest, so that the next to be inserted hardly waits. Rows do; where no
    // distance is the same, the order of rows is left out of it.
    template <bool ties>
    FML_INLINE void insert(const Vec& x, const Index& r, const Vec& before,
                           const Index& before_row) {
        const Vec moved = moved_on(distance, before);
        const Index moved_row = moved_on(row, before_row);
        others.template insert<ties>(x, r, distance, row);
        if constexpr (ties)
            row = inserted(row, r, moved_row, after<T>(distance, row, x, r),
                           after<T>(moved, moved_row, x, r));
        else
            row = inserted(row, r, moved_row, below<T>(x, distance), below<T>(x, moved));
        distance = minimum<T>(distance, maximum<T>(moved, x));
    }
};
template <class T> struct Registers<T, 0> {
    using Vec = typename Simd<T>::Vec;
    using Index = typename Simd<T>::Index;
    using Int = typename KDTree<T>::Int;
    FML_INLINE void clear() {}
    FML_INLINE void get(const T*, const Int*) {}
    FML_INLINE void put(T*, Int*) const {}
    FML_INLINE bool has(const Vec&) const { return false; }
    template <bool> FML_INLINE void insert(const Vec&, const Index&, const Vec&, const Index&) {}
};

// The k <= size nearest so far.
template <class T, int size> struct Few {
    using Int = typename KDTree<T>::Int;
    using Vec = typename Simd<T>::Vec;
    using Index = typename Simd<T>::Index;
    Registers<T, size / Simd<T>::lanes> list;
    T kth;
    Int kth_row;
    std::ptrdiff_t k, scanned;

    FML_INLINE void start(std::ptrdiff_t wanted) {
        list.clear();
        kth = std::numeric_limits<T>::infinity();
        kth_row = absent<Int>;
        k = wanted;
        scanned = 0;
    }
    FML_INLINE void take(const T* distances, const Int* rows) {
        list.get(distances, rows);
        kth = distances[k - 1];
        kth_row = rows[k - 1];
    }
    FML_INLINE T limit() const { return kth; }
    FML_INLINE bool admits(T x, Int first_row) const {
        return x < kth || (x == kth && first_row < kth_row);
    }
    FML_INLINE void first(const Sixteen<T>& distances, const Int* rows) {
        T to[size];
        Int to_rows[size];
        if (size > fan) list.put(to, to_rows);
        sort_leaf(distances, rows, to, to_rows);
        scanned += fan;
        take(to, to_rows);
    }
    FML_INLINE void leaf(const Sixteen<T>& distances, const Int* rows) {
        scanned += fan;
        unsigned bits = distances.under(kth);
        if (const unsigned tied = ~(bits | distances.above(kth)) & 0xffff)
            bits |= tied & rows_before(rows, kth_row);
        if (!bits) return;
        const Vec least = broadcast<Vec>(-std::numeric_limits<T>::infinity());
        const Index none = broadcast<Index>(Int(0));
        auto mine = list;  // a copy has no address, and stays in registers
        for (; bits; bits &= bits - 1) {
            const int l = lowest_bit(bits);
            const Vec x = broadcast<Vec>(distances.at(l));
            const Index r = broadcast<Index>(rows[l]);
            if (mine.has(x))
                mine.template insert<true>(x, r, least, none);
            else
                mine.template insert<false>(x, r, least, none);
        }
        T to[size];
        Int to_rows[size];
        mine.put(to, to_rows);
        list = mine;
        kth = to[k - 1];
        kth_row = to_rows[k - 1];
    }
};
#endif
