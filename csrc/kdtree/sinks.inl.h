// Each sink takes the points of one leaf after the other. `limit` and `admits` tell what it may
// still want, and `first` takes the leaf that comes first.

// The points of a leaf, by distance, then row, which is the order they have in it. Every one counts
// those before it: that takes no more instructions than a network, and none waits for another.
template <class T>
FML_INLINE void sort_leaf(const Sixteen<T>& distances, const typename KDTree<T>::Int* rows,
                          T* distance, typename KDTree<T>::Int* row) {
    FML_UNROLL
    for (int l = 0; l < fan; ++l) {
        const T x = distances.at(l);
        const unsigned lanes_before = (1u << l) - 1;
        const int rank =
            count_bits((~distances.above(x) & lanes_before) | (distances.under(x) & ~lanes_before));
        distance[rank] = x;
        row[rank] = rows[l];
    }
}

#if FML_X86_REGIONS && FML_VECTOR_BYTES == 64
#define FML_VECTOR_LISTS 1
// Which (distance, row) in v, w come after those in x, r, by bits.
template <class T>
FML_INLINE unsigned after(const typename Simd<T>::Vec& v, const typename Simd<T>::Index& w,
                          const typename Simd<T>::Vec& x, const typename Simd<T>::Index& r) {
    if constexpr (sizeof(T) == 4)
        return _mm512_cmp_ps_mask((__m512)x, (__m512)v, _CMP_LT_OQ) |
               _mm512_mask_cmplt_epi32_mask(_mm512_cmp_ps_mask((__m512)x, (__m512)v, _CMP_EQ_OQ),
                                            (__m512i)r, (__m512i)w);
    else
        return _mm512_cmp_pd_mask((__m512d)x, (__m512d)v, _CMP_LT_OQ) |
               _mm512_mask_cmplt_epi64_mask(_mm512_cmp_pd_mask((__m512d)x, (__m512d)v, _CMP_EQ_OQ),
                                            (__m512i)r, (__m512i)w);
}
// v with `at` in the lowest lane of `lanes` and what was there, and above, one lane further.
template <class V, class S> FML_INLINE V make_room(const V& v, S before, S at, unsigned lanes) {
    const V first = broadcast<V>(before), here = broadcast<V>(at);
    if constexpr (sizeof(S) == 4) {
        const __m512i moved = _mm512_alignr_epi32((__m512i)v, (__m512i)first, 15);
        return (V)_mm512_mask_mov_epi32(_mm512_mask_mov_epi32((__m512i)v, lanes, (__m512i)here),
                                        lanes << 1, moved);
    } else {
        const __m512i moved = _mm512_alignr_epi64((__m512i)v, (__m512i)first, 7);
        return (V)_mm512_mask_mov_epi64(_mm512_mask_mov_epi64((__m512i)v, lanes, (__m512i)here),
                                        lanes << 1, moved);
    }
}
#else
#define FML_VECTOR_LISTS 0
#endif

// The k nearest so far, sorted by distance, then row. Lists are whole vectors long: what is
// beyond the k-th is of no account.
template <class T> struct Best {
    using Int = typename KDTree<T>::Int;
    T* distance;
    Int* row;
    std::ptrdiff_t k;
    std::ptrdiff_t scanned;

    FML_INLINE void start(const KDTree<T>&, T* distances, Int* rows, std::ptrdiff_t size) {
        distance = distances;
        row = rows;
        k = size;
        scanned = 0;
        for (std::ptrdiff_t i = 0; i < (k + fan - 1) / fan * fan; ++i) {
            distance[i] = std::numeric_limits<T>::infinity();
            row[i] = absent<Int>;
        }
    }
    FML_INLINE T limit() const { return distance[k - 1]; }
    FML_INLINE bool comes_before(T x, Int r, std::ptrdiff_t i) const {
        return x < distance[i] || (x == distance[i] && r < row[i]);
    }
    // Whether a point at this distance, or more, in this row, or a later one, could be among them.
    FML_INLINE bool admits(T x, Int first_row) const { return comes_before(x, first_row, k - 1); }

    FML_INLINE void first(const Sixteen<T>& distances, const Int* rows) {
        scanned += fan;
        sort_leaf(distances, rows, distance, row);
    }
    FML_INLINE void leaf(const Sixteen<T>& distances, const Int* rows) {
        unsigned bits = ~distances.above(limit()) & 0xffff;
        scanned += fan;
        for (; bits; bits &= bits - 1) {
            const int l = lowest_bit(bits);
            insert(distances.at(l), rows[l]);
        }
    }

    FML_INLINE void insert(T x, Int r) {
        if (!admits(x, r)) return;
#if FML_VECTOR_LISTS
        using Vec = typename Simd<T>::Vec;
        using Index = typename Simd<T>::Index;
        constexpr std::ptrdiff_t lanes = Simd<T>::lanes;
        std::ptrdiff_t i = (k - 1) / lanes * lanes;
        for (; i > 0 && comes_before(x, r, i - 1); i -= lanes) {
            const Vec v = load<Vec>(distance + i);
            const Index w = load<Index>(row + i);
            store(distance + i, make_room(v, distance[i - 1], distance[i - 1], (1u << lanes) - 1));
            store(row + i, make_room(w, row[i - 1], row[i - 1], (1u << lanes) - 1));
        }
        const Vec v = load<Vec>(distance + i);
        const Index w = load<Index>(row + i);
        const unsigned lanes_after = after<T>(v, w, broadcast<Vec>(x), broadcast<Index>(r));
        store(distance + i, make_room(v, x, x, lanes_after));
        store(row + i, make_room(w, r, r, lanes_after));
#else
        std::ptrdiff_t i = k - 1;
        for (; i > 0 && comes_before(x, r, i - 1); --i) {
            distance[i] = distance[i - 1];
            row[i] = row[i - 1];
        }
        distance[i] = x;
        row[i] = r;
#endif
    }
};

// The nearest alone.
template <class T> struct Nearest {
    using Int = typename KDTree<T>::Int;
    T distance = std::numeric_limits<T>::infinity();
    Int row = absent<Int>;
    std::ptrdiff_t scanned = 0;
    T beyond_zero = 0;

    FML_INLINE T limit() const { return distance > 0 ? distance : beyond_zero; }
    FML_INLINE bool admits(T x, Int first_row) const {
        return x < distance || (x == distance && first_row < row);
    }
    FML_INLINE void first(const Sixteen<T>& distances, const Int* rows) { leaf(distances, rows); }
    FML_INLINE void leaf(const Sixteen<T>& distances, const Int* rows) {
        const unsigned bits = ~distances.above(distance) & 0xffff;
        scanned += fan;
        if (!bits) return;
        const int l = least(distances, bits);
        if (admits(distances.at(l), rows[l])) {
            distance = distances.at(l);
            row = rows[l];
        }
    }
};

// The k nearest rows, where points stand for several.
template <class T> struct Repeated : Best<T> {
    using Int = typename KDTree<T>::Int;
    using Best<T>::admits, Best<T>::insert;
    const KDTree<T>* tree;

    FML_INLINE void start(const KDTree<T>& of, T* distances, Int* rows, std::ptrdiff_t size) {
        Best<T>::start(of, distances, rows, size);
        tree = &of;
    }
    FML_INLINE void first(const Sixteen<T>& distances, const Int* rows) { leaf(distances, rows); }
    // The nearest first: most often its rows are enough.
    FML_INLINE void leaf(const Sixteen<T>& distances, const Int* rows) {
        this->scanned += fan;
        unsigned left = 0xffff;
        while (const unsigned nearer = left & distances.under(kth())) {
            const int l = least(distances, nearer);
            take(distances.at(l), rows + l);
            left &= ~(1u << l);
        }
        unsigned tied = left & ~distances.above(kth());
        for (; tied; tied &= tied - 1)
            take(distances.at(lowest_bit(tied)), rows + lowest_bit(tied));
    }
    FML_INLINE void take(T x, const Int* row) {
        if (!admits(x, *row)) return;
        insert(x, *row);
        const std::ptrdiff_t at = row - tree->index;
        const Int* const end = tree->copies_end(at);
        for (const Int* c = tree->copies_begin(at); c != end && admits(x, *c); ++c) insert(x, *c);
    }
    FML_INLINE T kth() const { return this->distance[this->k - 1]; }
    FML_INLINE T limit() const { return kth() > 0 ? kth() : tree->beyond_zero; }
};

// The nearest in a pool with room for as many again, thinned out when it is full.
template <class T> struct Pool {
    using Int = typename KDTree<T>::Int;
    const KDTree<T>& tree;
    Candidate<T>* at;
    std::ptrdiff_t k, size = 0, scanned = 0;
    Candidate<T> worst{std::numeric_limits<T>::infinity(), absent<Int>};

    Pool(const KDTree<T>& of, const Lists<T>& lists) : tree(of), at(lists.pool), k(lists.k) {}
    FML_INLINE T limit() const { return worst.distance; }
    FML_INLINE bool admits(T x, Int row) const { return Candidate<T>{x, row} < worst; }
    FML_INLINE void leaf(const Sixteen<T>& distances, const Int* rows) {
        unsigned bits = ~distances.above(limit()) & 0xffff;
        scanned += fan;
        for (; bits; bits &= bits - 1) {
            const int l = lowest_bit(bits);
            const T x = distances.at(l);
            if (!admits(x, rows[l])) continue;
            at[size++] = {x, rows[l]};
            const std::ptrdiff_t slot = rows + l - tree.index;
            const Int* const end = tree.copies_end(slot);
            for (const Int* c = tree.copies_begin(slot); c != end && admits(x, *c); ++c) {
                at[size++] = {x, *c};
                thin();
            }
        }
        thin();
    }
    FML_INLINE void thin() {
        if (size <= 2 * k) return;
        thin_out(at, k, size);
        size = k;
        worst = at[k - 1];
    }
    void finish(T* distance, Int* row) {
        thin_out(at, k, size);
        sort_candidates(at, k);
        for (std::ptrdiff_t i = 0; i < k; ++i) {
            distance[i] = at[i].distance;
            row[i] = at[i].row;
        }
    }
};
