#include "common/simd.inl.h"
#include "kdtree/search.inl.h"
#include "kdtree/sinks.inl.h"
#include "kdtree/registers.inl.h"

template <class T, class S, class Sink>
FML_INLINE void show(const S& search, const T* q, int m, Seed seed, std::ptrdiff_t leaf,
                     Lists<T>& lists, Sink* sinks) {
    const std::ptrdiff_t d = search.d;
    if (seed == Seed::none)
        for (int i = 0; i < m; ++i) search.run(q + i * d, -1, sinks[i]);
    else
        search.group(q, m, leaf, seed == Seed::known, lists.box, sinks);
    lists.scanned = 0;
    for (int i = 0; i < m; ++i) lists.scanned += sinks[i].scanned;
}

template <class Sink, class T, class S>
FML_INLINE void show_listed(const S& search, const T* q, int m, Seed seed, std::ptrdiff_t leaf,
                            Lists<T>& lists) {
    Sink sinks[fan];
    for (int i = 0; i < m; ++i)
        sinks[i].start(search.tree, lists.distance + i * lists.stride, lists.row + i * lists.stride,
                       lists.k);
    show(search, q, m, seed, leaf, lists, sinks);
}

#if FML_VECTOR_LISTS
template <class T, int size, class S>
FML_INLINE void show_few(const S& search, const T* q, int m, Seed seed, std::ptrdiff_t leaf,
                         Lists<T>& lists) {
    Few<T, size> sinks[fan];
    for (int i = 0; i < m; ++i) sinks[i].start(lists.k);
    show(search, q, m, seed, leaf, lists, sinks);
    for (int i = 0; i < m; ++i)
        sinks[i].list.put(lists.distance + i * lists.stride, lists.row + i * lists.stride);
}
#endif

template <class T, template <class> class M, int D>
void nearest_group(const KDTree<T>& tree, const T* q, int m, Seed seed, std::ptrdiff_t leaf,
                   Lists<T>& lists) {
    const Search<T, M, D> search(tree);
    if (seed == Seed::unknown) leaf = search.home(q + m / 2 * tree.d);
    if (lists.pool) {
        lists.scanned = 0;
        for (int i = 0; i < m; ++i) {
            Pool<T> pool(tree, lists);
            search.run(q + i * tree.d, -1, pool);
            pool.finish(lists.distance + i * lists.stride, lists.row + i * lists.stride);
            lists.scanned += pool.scanned;
        }
        return;
    }
    if (lists.k == 1) {
        Nearest<T> sinks[fan];
        for (int i = 0; i < m; ++i) sinks[i].beyond_zero = tree.beyond_zero;
        show(search, q, m, seed, leaf, lists, sinks);
        for (int i = 0; i < m; ++i) {
            lists.distance[i * lists.stride] = sinks[i].distance;
            lists.row[i * lists.stride] = sinks[i].row;
        }
        return;
    }
    if (tree.copies) return show_listed<Repeated<T>>(search, q, m, seed, leaf, lists);
#if FML_VECTOR_LISTS
    if (lists.k <= 16) return show_few<T, 16>(search, q, m, seed, leaf, lists);
    if constexpr (std::is_same_v<M<T>, Euclidean<T>>)
        if (lists.k <= 32) return show_few<T, 32>(search, q, m, seed, leaf, lists);
#endif
    show_listed<Best<T>>(search, q, m, seed, leaf, lists);
}

template <class T> NearestGroup<T> nearest_euclidean(std::ptrdiff_t d) {
    switch (d) {
        case 1:
            return nearest_group<T, Euclidean, 1>;
        case 2:
            return nearest_group<T, Euclidean, 2>;
        case 3:
            return nearest_group<T, Euclidean, 3>;
        case 4:
            return nearest_group<T, Euclidean, 4>;
        case 5:
            return nearest_group<T, Euclidean, 5>;
        case 6:
            return nearest_group<T, Euclidean, 6>;
        case 7:
            return nearest_group<T, Euclidean, 7>;
        case 8:
            return nearest_group<T, Euclidean, 8>;
        default:
            return nearest_group<T, Euclidean, 0>;
    }
}

template <class T> NearestGroup<T> choose_nearest(Metric metric, std::ptrdiff_t d) {
    switch (metric) {
        case Metric::manhattan:
            return nearest_group<T, Manhattan, 0>;
        case Metric::chebyshev:
            return nearest_group<T, Chebyshev, 0>;
        case Metric::minkowski:
            return nearest_group<T, Minkowski, 0>;
        default:
            return nearest_euclidean<T>(d);
    }
}

// Distances of the sums of terms.
template <class T, class Out>
void roots_block(const T* sums, std::ptrdiff_t n, Metric metric, double p, Out* distances) {
    if (metric == Metric::euclidean)
        for (std::ptrdiff_t i = 0; i < n; ++i)
            distances[i] = static_cast<Out>(std::sqrt(static_cast<double>(sums[i])));
    else
        for (std::ptrdiff_t i = 0; i < n; ++i)
            distances[i] = static_cast<Out>(root(sums[i], metric, p));
}
