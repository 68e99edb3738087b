// Sorting the small nodes of a tree, and scoring splits: the same operations as criterion.cpp, many
// splits at a time. This family is compiled without contraction to fused multiply-adds, which
// round differently.
#include "common/simd.inl.h"
#include "trees/screen.inl.h"

// Up to here a node is sorted by counting, for each key, how many are smaller.
constexpr ptrdiff_t small_node = FML_VECTOR_BYTES * 2;

// sorted (m) = the distinct keys (m) in ascending order, m <= small_node. keys has room for a
// whole number of vectors.
inline void rank_sort_block(const std::int32_t* keys, ptrdiff_t m, std::int32_t* sorted) {
    typedef Simd<float>::Index Ints;
    constexpr int lanes = Simd<float>::lanes;
    for (ptrdiff_t i = 0; i < m; i += lanes) {
        Ints mine, rank = {};
        std::memcpy(&mine, keys + i, sizeof mine);
        for (ptrdiff_t j = 0; j < m; ++j) rank -= mine > keys[j];
        const int here = m - i < lanes ? static_cast<int>(m - i) : lanes;
        for (int l = 0; l < here; ++l) sorted[rank[l]] = mine[l];
    }
}

// Splits as Criterion::proxy() sees them. `left` and `right` of Squares: the sums of targets;
// of Gini: the sums of the squared class weights.
struct Squares {
    template <class V> static FML_INLINE V proxy(const V& w, const V& rest, const V& l,
                                                 const V& r) {
        return l * l / w + r * r / rest;
    }
};
struct Gini {
    template <class V> static FML_INLINE V proxy(const V& w, const V& rest, const V& l,
                                                 const V& r) {
        return -rest * (1.0 - r / (rest * rest)) - w * (1.0 - l / (w * w));
    }
};

// Of two classes whose weights are whole numbers: `left` is the second class's weight, `right`
// what there is of it.
struct Binary {
    template <class V> static FML_INLINE V proxy(const V& w, const V& rest, const V& l,
                                                 const V& r) {
        const V other_l = w - l, other_r = rest - r;
        return Gini::proxy<V>(w, rest, other_l * other_l + l * l, other_r * other_r + r * r);
    }
};

// Proxies (count) of splits with weights w (count) and total - w; those with less than `least` on a
// side get -infinity. right(s, l) tells the right sum. Returns the largest; NaN is passed over. All
// arrays have room for a whole number of vectors.
template <class Impurity, class Right>
double score_all(const double* w, const double* left, const Right& right, ptrdiff_t count,
                 double total, double least, double* proxies) {
    typedef Simd<double>::Vec V;
    constexpr int lanes = Simd<double>::lanes;
    const double none = -std::numeric_limits<double>::infinity();
    double best = none;
    ptrdiff_t s = 0;
    // Loading a vector of what has been stored one by one takes as long as scoring a few of them.
    if (count > lanes / 2) {
        typename Simd<double>::Index numbers;
        for (int l = 0; l < lanes; ++l) numbers[l] = l;
        V best_lanes = V{} + none;
        for (; s < count; s += lanes) {
            V wl, l;
            std::memcpy(&wl, w + s, sizeof wl);
            std::memcpy(&l, left + s, sizeof l);
            const V wr = total - wl;
            V proxy = Impurity::template proxy<V>(wl, wr, l, right.template at<V>(s, l));
            proxy = wl < least ? V{} + none : proxy;
            proxy = wr < least ? V{} + none : proxy;
            proxy = numbers < count - s ? proxy : V{} + none;
            std::memcpy(proxies + s, &proxy, sizeof proxy);
            best_lanes = proxy > best_lanes ? proxy : best_lanes;
        }
        for (int l = 0; l < lanes; ++l) best = best_lanes[l] > best ? best_lanes[l] : best;
    }
    for (; s < count; ++s) {
        const double rest = total - w[s];
        double proxy = Impurity::template proxy<double>(w[s], rest, left[s],
                                                        right.template at<double>(s, left[s]));
        if (w[s] < least || rest < least) proxy = none;
        proxies[s] = proxy;
        best = proxy > best ? proxy : best;
    }
    return best;
}

struct Given {
    const double* sums;
    template <class V> FML_INLINE V at(ptrdiff_t s, const V&) const {
        V v;
        std::memcpy(&v, sums + s, sizeof v);
        return v;
    }
};
struct Rest {
    double total;
    template <class V> FML_INLINE V at(ptrdiff_t, const V& left) const { return total - left; }
};

template <class Impurity>
double score_block(const double* w, const double* left, const double* right, ptrdiff_t count,
                   double total, double least, double* proxies) {
    return score_all<Impurity>(w, left, Given{right}, count, total, least, proxies);
}

inline double score_binary_block(const double* w, const double* left, ptrdiff_t count, double total,
                                 double total_left, double least, double* proxies) {
    return score_all<Binary>(w, left, Rest{total_left}, count, total, least, proxies);
}

#include "trees/rows.inl.h"
#include "trees/scan.inl.h"
