#include "common/simd.inl.h"
#include "kdtree/search.inl.h"

template <class T> struct Counter {
    using Int = typename KDTree<T>::Int;
    const KDTree<T>& tree;
    T reach;
    std::ptrdiff_t n;

    FML_INLINE T limit() const { return reach; }
    FML_INLINE bool admits(T, Int) const { return true; }
    FML_INLINE void leaf(const Sixteen<T>& distances, const Int* rows) {
        unsigned bits = ~distances.above(reach) & 0xffff;
        for (; bits; bits &= bits - 1) {
            const int l = lowest_bit(bits);
            const std::ptrdiff_t at = rows + l - tree.index;
            n += rows[l] != absent<Int>;
            if (tree.copies) n += tree.copies_end(at) - tree.copies_begin(at);
        }
    }
};

template <class T> struct Collector {
    using Int = typename KDTree<T>::Int;
    const KDTree<T>& tree;
    T reach;
    Candidate<T>* end;

    FML_INLINE T limit() const { return reach; }
    FML_INLINE bool admits(T, Int) const { return true; }
    FML_INLINE void leaf(const Sixteen<T>& distances, const Int* rows) {
        unsigned bits = ~distances.above(reach) & 0xffff;
        for (; bits; bits &= bits - 1) {
            const int l = lowest_bit(bits);
            const std::ptrdiff_t at = rows + l - tree.index;
            if (rows[l] != absent<Int>) *end++ = {distances.at(l), rows[l]};
            const Int* const last = tree.copies_end(at);
            for (const Int* c = tree.copies_begin(at); c != last; ++c)
                *end++ = {distances.at(l), *c};
        }
    }
};

template <class T, template <class> class M, int D>
std::ptrdiff_t within_one(const KDTree<T>& tree, const T* q, T reach, Candidate<T>* found) {
    const Search<T, M, D> search(tree);
    if (!found) {
        Counter<T> counter{tree, reach, 0};
        search.run(q, -1, counter);
        return counter.n;
    }
    Collector<T> collector{tree, reach, found};
    search.run(q, -1, collector);
    return collector.end - found;
}

template <class T> WithinOne<T> choose_within(Metric metric, std::ptrdiff_t d) {
    switch (metric) {
        case Metric::manhattan:
            return within_one<T, Manhattan, 0>;
        case Metric::chebyshev:
            return within_one<T, Chebyshev, 0>;
        case Metric::minkowski:
            return within_one<T, Minkowski, 0>;
        default:
            return d == 1   ? within_one<T, Euclidean, 1>
                   : d == 2 ? within_one<T, Euclidean, 2>
                   : d == 3 ? within_one<T, Euclidean, 3>
                            : within_one<T, Euclidean, 0>;
    }
}
