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

// Queries of a task: few when each may have to look at many points.
template <class T> std::ptrdiff_t queries_at_once(const KDTree<T>& tree) {
    constexpr double most = 1 << 27;
    const double cost = static_cast<double>(tree.n) * static_cast<double>(tree.d);
    return static_cast<std::ptrdiff_t>(std::fmin(std::fmax(most / cost, 1), 64));
}

// Rows of Q in an order in which successive ones are close, as keys whose low row_bits are the row.
// order and spare: n_q values each; the order ends up in `order`.
constexpr int row_bits = 42;
template <class T>
Status sort_queries(const KDTree<T>& tree, const T* Q, std::ptrdiff_t n_q, std::uint64_t* order,
                    std::uint64_t* spare, int n_threads) noexcept;

}  // namespace fastml
