#pragma once
// What the drivers of queries share with their bodies.
#include <cmath>
#include <limits>

#include "kdtree/kdtree.h"

namespace fastml {

// What index holds for points that are not there.
template <class Int> constexpr Int absent = std::numeric_limits<Int>::max();

template <class T> struct Candidate {
    T distance;
    typename KDTree<T>::Int row;
};
template <class T> bool operator<(const Candidate<T>& a, const Candidate<T>& b) {
    return a.distance < b.distance || (a.distance == b.distance && a.row < b.row);
}

// Between distances and the sums of terms that are compared.
inline double reduced(double distance, Metric metric, double p) {
    switch (metric) {
        case Metric::euclidean:
            return distance * distance;
        case Metric::minkowski:
            return std::pow(distance, p);
        default:
            return distance;
    }
}
inline double root(double sum, Metric metric, double p) {
    switch (metric) {
        case Metric::euclidean:
            return std::sqrt(sum);
        case Metric::minkowski:
            return std::pow(sum, 1 / p);
        default:
            return sum;
    }
}

// Queries of a task, of n_q: few when each may have to look at many points.
template <class T> std::ptrdiff_t queries_at_once(const KDTree<T>& tree, std::ptrdiff_t n_q) {
    constexpr double work = 1 << 27, tasks = 16, most = 256;
    const double cost = static_cast<double>(tree.n) * static_cast<double>(tree.d);
    const double wanted = std::fmin(work / cost, static_cast<double>(n_q) / tasks);
    return static_cast<std::ptrdiff_t>(std::fmin(std::fmax(wanted, 1), most));
}

// Keys with a row in their low row_bits, sorted by what is above: ascending, and by row where that is
// equal if rows ascend. spare: n values.
constexpr int row_bits = 42, key_bits = 64 - row_bits;
constexpr std::ptrdiff_t row_of(std::uint64_t key) {
    return static_cast<std::ptrdiff_t>(key & ((std::uint64_t{1} << row_bits) - 1));
}
Status sort_keys(std::uint64_t* keys, std::uint64_t* spare, std::ptrdiff_t n,
                 int n_threads) noexcept;

// Rows of Q in an order in which successive ones are close, and equal ones next to each other
// unless others are very close, as sorted keys. order and spare: n_q values each.
template <class T>
Status sort_queries(const KDTree<T>& tree, const T* Q, std::ptrdiff_t n_q, std::uint64_t* order,
                    std::uint64_t* spare, int n_threads) noexcept;

}  // namespace fastml
