#pragma once
// How a measure is gathered: its plan, from the shape of the data.
#include <numeric>

#include "common/blocks.h"
#include "pairwise/job.h"
#include "pairwise/pairwise.h"

namespace fastml {

// With so few columns differences cost no more than what dots would need around them.
constexpr ptrdiff_t few_columns = 16;

// With so few, neither do sums of least values: differences take fewer operations, all told.
constexpr ptrdiff_t fewest_columns = 3;

// With so few rows of X, those of Y are not worth packing.
constexpr ptrdiff_t few_rows = 3;

// Of n rows of X, of d numbers of so many bytes.
inline Plan plan_for(const Measure& measure, ptrdiff_t n, ptrdiff_t d, std::size_t size,
                     bool sparse) {
    using G = Gather;
    using N = Norm;
    using C = Combine;
    const auto distance = [&](Map map, double diagonal) -> Plan {
        if (sparse) return {G::product, N::squared, C::sqdist, map, false, true, diagonal};
        if (d <= few_columns || n <= few_rows || measure.by_differences)
            return {G::squared_diff, N::none, C::none, map, false, true, diagonal};
        return {G::product, N::squared, C::sqdist, map, true, true, diagonal};
    };
    const auto taxi = [&](Map map, double diagonal) -> Plan {
        if (sparse) return {G::shared, N::absolute, C::unshared, map, false, true, diagonal};
        if (map == Map::exp && size == sizeof(double) && n > few_rows && d > fewest_columns)
            return {G::minimum, N::sum, C::unshared, map, false, true, diagonal};
        return {G::abs_diff, N::none, C::none, map, false, true, diagonal};
    };
    const auto direct = [](Gather gather, Map map) -> Plan {
        return {gather, N::none, C::none, map, false, false, 0};
    };
    const auto apart = [](Gather gather, C combine, Map map, double diagonal) -> Plan {
        return {gather, N::none, combine, map, false, true, diagonal};
    };
    const G least = sparse ? G::shared : G::minimum;
    switch (measure.metric) {
        case Metric::linear:
            return direct(G::product, Map::none);
        case Metric::polynomial:
            return direct(G::product, Map::polynomial);
        case Metric::sigmoid:
            return direct(G::product, Map::tanh);
        case Metric::cosine:
            return {G::product, N::inverse, C::scale, Map::none, false, false, 0};
        case Metric::rbf:
            return distance(Map::exp, 1);
        case Metric::laplacian:
            return taxi(Map::exp, 1);
        case Metric::chi2:
            return apart(G::chi2, C::none, Map::exp, 1);
        case Metric::additive_chi2:
            return apart(G::chi2, C::none, Map::times, 0);
        case Metric::intersection:
            return direct(least, Map::none);
        case Metric::normalized_intersection:
            return {least, N::inverse_root, C::scale, Map::none, false, false, 0};
        case Metric::euclidean:
            return distance(Map::sqrt, 0);
        case Metric::sqeuclidean:
            return distance(Map::none, 0);
        case Metric::manhattan:
            return taxi(Map::none, 0);
        case Metric::chebyshev:
            return apart(G::max_diff, C::none, Map::none, 0);
        case Metric::minkowski:
            return apart(G::power_diff, C::none, Map::root, 0);
        case Metric::cosine_distance:
            return {G::product, N::inverse, C::scale, Map::cosine_distance, false, true, 0};
        case Metric::haversine:
            return apart(G::haversine, C::none, Map::arc, 0);
        case Metric::nan_euclidean:
            return {G::nan_squared, N::none, C::present, Map::sqrt, false, false, 0};
        case Metric::nan_sqeuclidean:
            return {G::nan_squared, N::none, C::present, Map::none, false, false, 0};
        case Metric::braycurtis:
            return apart(G::braycurtis, C::ratio, Map::none, 0);
        case Metric::relative:
            return {G::abs_diff, N::absolute, C::share, Map::none, false, true, 0};
        case Metric::canberra:
            return apart(G::canberra, C::none, Map::none, 0);
        case Metric::hamming:
            return apart(G::unequal, C::none, Map::times, 0);
    }
    return direct(G::product, Map::none);
}

template <class T>
Job<T> job_for(const Rows<T>& X, const Rows<T>& Y, const Measure& measure, Sink sink) {
    Job<T> job{};
    job.X = X;
    job.Y = Y;
    job.plan = plan_for(measure, X.n, X.d, sizeof(T), X.indptr);
    const double* w = measure.weights;
    job.gamma = measure.metric == Metric::additive_chi2 ? -1
                : measure.metric == Metric::hamming
                    ? 1 / (w ? std::accumulate(w, w + X.d, 0.0) : X.d)
                    : measure.gamma;
    job.weights = w;
    job.coef0 = measure.coef0;
    job.degree = measure.degree;
    job.sink = sink;
    return job;
}

}  // namespace fastml
