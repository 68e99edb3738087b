#pragma once
#include <cstddef>
#include <cstdint>

#include "common/pool.h"

// K-means on the rows of X, dense or CSR. Valid input means: at least one row, one column and one
// center; finite values; CSR indices in [0, d), any order, duplicates added. Every distance is
// squared Euclidean. Results do not depend on n_threads: row blocks come from n alone, and partial
// sums are added in the order of the blocks.
//
// `shift` (d values, or null for none) is subtracted from rows on the fly: near the data's mean,
// |x|² − 2x·c + |c|² does not cancel. Centers are given already shifted.
namespace fastml {

template <class T> struct Rows {
    const T* data;             // dense: n x d, C order. CSR: the stored values
    const std::int32_t* indices;  // CSR only, else null
    const std::int32_t* indptr;
    std::ptrdiff_t n, d;
    const T* shift;  // dense only
};

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
// *inertia = their weighted sum over the rows whose label is `only` (-1: over all).
template <class T>
Status inertia(const Rows<T>& X, const T* w, const T* centers, const std::int32_t* labels,
               std::ptrdiff_t k, std::int32_t only, T* sqdist, double* inertia,
               int n_threads) noexcept;

// out (n, k) = Euclidean distances of rows to centers.
template <class T>
Status distances(const Rows<T>& X, const T* centers, std::ptrdiff_t k, T* out,
                 int n_threads) noexcept;

// One step of greedy k-means++. closest (n): squared distance of each row to its nearest center
// so far, or null before the first. candidates: n_candidates row numbers, norms: |x - shift|² of
// every row. best (n_candidates, n) = min(closest, squared distance to the candidate), and
// potential[c] = sum of w * best[c].
template <class T>
Status try_candidates(const Rows<T>& X, const T* w, const T* norms, const T* closest,
                      const std::ptrdiff_t* candidates, std::ptrdiff_t n_candidates, T* best,
                      double* potential, int n_threads) noexcept;

// norms[i] = |row i - shift|².
template <class T>
Status row_norms(const Rows<T>& X, T* norms, int n_threads) noexcept;

// mean and variance of every column, in double, in one pass (CSR: zeros count).
template <class T>
Status column_moments(const Rows<T>& X, double* mean, double* variance, int n_threads) noexcept;

// index[r] = the first i at which the running sum of w[j] * p[j], j <= i, reaches target[r];
// n - 1 if none does. Targets ascend. Summed one by one in T, as numpy.cumsum does: the same
// draw then picks the same row.
template <class T>
void search_cumulative(const T* p, const T* w, std::ptrdiff_t n, const double* target,
                       std::ptrdiff_t n_targets, std::ptrdiff_t* index) noexcept;

}  // namespace fastml
