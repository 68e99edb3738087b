#pragma once
#include <cstddef>
#include <cstdint>

#include "common/pool.h"
#include "common/rows.h"

// K-means on the rows of X, dense or CSR. Valid input means: at least one row, one column and one
// center; finite values. Every distance is
// squared Euclidean. Results do not depend on n_threads: row blocks come from n alone, and partial
// sums are added in the order of the blocks. Centers are given less the rows' shift.
namespace fastml {

// labels[i] = the center nearest to row i, the lower index on ties. `labels` is read as well:
// *changed counts the rows whose label is new.
//
// With sums (k, d) and weights (k), both double, also the weighted sum of the (shifted) rows of
// each cluster and its weight: one Lloyd iteration short of the division. w: n weights, or null
// for ones.
template <class T>
Status assign(const Rows<T>& X, const T* w, const T* centers, std::ptrdiff_t k,
              std::int32_t* labels, std::ptrdiff_t* changed, double* sums, double* weights,
              int n_threads) noexcept;

// The sums and weights of given labels in [0, k).
template <class T>
Status sum_by_label(const Rows<T>& X, const T* w, const std::int32_t* labels, std::ptrdiff_t k,
                    double* sums, double* weights, int n_threads) noexcept;

// sqdist[i] = squared distance of row i to centers[labels[i]], by differences; null to skip.
// *inertia = their weighted sum.
template <class T>
Status inertia(const Rows<T>& X, const T* w, const T* centers, const std::int32_t* labels,
               std::ptrdiff_t k, T* sqdist, double* inertia, int n_threads) noexcept;

// out (n, k) = Euclidean distances of rows to centers.
template <class T>
Status distances(const Rows<T>& X, const T* centers, std::ptrdiff_t k, T* out,
                 int n_threads) noexcept;

// mean and variance of every column, in double, in one pass (CSR: zeros count).
template <class T>
Status column_moments(const Rows<T>& X, double* mean, double* variance, int n_threads) noexcept;

}  // namespace fastml
