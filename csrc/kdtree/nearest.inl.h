#include "common/simd.inl.h"
#include "kdtree/search.inl.h"
#include "kdtree/sinks.inl.h"

template <class T, template <class> class M, int D>
void nearest_group(const KDTree<T>& tree, const T* q, int m, Seed seed, std::ptrdiff_t leaf,
                   Lists<T>& lists) {
    const Search<T, M, D> search(tree);
    if (seed == Seed::unknown) leaf = search.home(q + m / 2 * tree.d);
    if (seed == Seed::none) leaf = -1;
    lists.scanned = 0;
    if (lists.pool) {
        for (int i = 0; i < m; ++i) {
            Pool<T> pool(lists);
            search.run(q + i * tree.d, -1, pool);
            pool.finish(lists.distance + i * lists.stride, lists.row + i * lists.stride);
            lists.scanned += pool.scanned;
        }
    } else if (lists.k == 1) {
        Nearest<T> sinks[fan];
        search.group(q, m, leaf, lists.box, sinks);
        for (int i = 0; i < m; ++i) {
            lists.distance[i * lists.stride] = sinks[i].distance;
            lists.row[i * lists.stride] = sinks[i].row;
            lists.scanned += sinks[i].scanned;
        }
    } else {
        Best<T> sinks[fan];
        for (int i = 0; i < m; ++i)
            sinks[i].start(lists.distance + i * lists.stride, lists.row + i * lists.stride,
                           lists.k);
        search.group(q, m, leaf, lists.box, sinks);
        for (int i = 0; i < m; ++i) lists.scanned += sinks[i].scanned;
    }
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
