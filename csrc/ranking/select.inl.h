// The best of a list without a branch on what is in it: such branches are what sorting costs.

// Floats as integers of the same order, and back.
template <class T> FML_INLINE typename Simd<T>::Int flip(typename Simd<T>::Int bits) {
    return bits < 0 ? bits ^ std::numeric_limits<typename Simd<T>::Int>::max() : bits;
}
template <class T> FML_INLINE typename Simd<T>::Int key_of(T x) {
    typename Simd<T>::Int bits;
    std::memcpy(&bits, &x, sizeof bits);
    return flip<T>(bits);
}
template <class T> FML_INLINE T of_key(typename Simd<T>::Int key) {
    const typename Simd<T>::Int bits = flip<T>(key);
    T x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

template <class T>
FML_INLINE std::ptrdiff_t count_above(const T* scores, std::ptrdiff_t n, T limit) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    const Vec l = broadcast<Vec>(limit);
    std::ptrdiff_t count = 0;
    for (std::ptrdiff_t e = 0; e < n; e += lanes)
        count += count_bits(below<T>(l, load<Vec>(scores + e)));
    return count;
}

// Leaves the k best, the first ones among equals; returns the k-th best score, which an item has to
// exceed from now on. Behind the list, to a whole list_unit, there is room.
template <class T> T shorten(Shortlist<T>& list) {
    using Int = typename Simd<T>::Int;
    T* scores = list.scores;
    std::ptrdiff_t n = list.count;
    for (; n % list_unit; ++n) scores[n] = -std::numeric_limits<T>::infinity();
    // The least score that fewer than k are above lies in (low, high].
    Int low = key_of(-std::numeric_limits<T>::infinity()) - 1;
    Int high = key_of(std::numeric_limits<T>::infinity());
    while (low + 1 < high) {
        const Int middle = (low & high) + ((low ^ high) >> 1);  // halfway, without overflow
        if (count_above(scores, n, of_key<T>(middle)) < list.k)
            high = middle;
        else
            low = middle;
    }
    const T limit = of_key<T>(high);
    std::ptrdiff_t equal = list.k - count_above(scores, n, limit), kept = 0;
    for (std::ptrdiff_t e = 0; e < list.count; ++e) {
        const T score = scores[e];
        const bool tie = (score == limit) & (equal > 0);
        scores[kept] = score;
        list.items[kept] = list.items[e];
        equal -= tie;
        kept += (score > limit) | tie;
    }
    list.count = kept;
    return limit;
}

// Writes a list of at most most_counted best first, the first ones first among equals: an entry's
// place is the number of those ahead of it.
template <class T> void write_in_order(Shortlist<T>& list, std::int32_t* items, T* scores) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    std::ptrdiff_t n = list.count;
    for (; n % list_unit; ++n) list.scores[n] = -std::numeric_limits<T>::infinity();
    for (std::ptrdiff_t e = 0; e < list.count; ++e) {
        const T score = list.scores[e];
        const Vec s = broadcast<Vec>(score);
        std::ptrdiff_t place = 0, q = 0;
        for (; q + lanes <= e; q += lanes)  // before it, equals count
            place += lanes - count_bits(below<T>(load<Vec>(list.scores + q), s));
        for (std::ptrdiff_t r = q; r < q + lanes; ++r)
            place += (list.scores[r] > score) | ((list.scores[r] == score) & (r < e));
        place += count_above(list.scores + q + lanes, n - q - lanes, score);
        items[place] = list.items[e];
        scores[place] = score;
    }
}
