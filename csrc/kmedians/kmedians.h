#pragma once
#include <cstddef>
#include <cstdint>

#include "common/pool.h"
#include "common/rows.h"

// K-medians on the rows of X: distances are Manhattan's, centers the medians of their clusters.
// Valid input means: at least one row, column and center; finite values; no shift; in CSR no
// duplicate entries. Results do not depend on n_threads.
namespace fastml {

// labels[i] = the center nearest to row i, the lower index on ties. `labels` is read as well:
// *changed counts the rows whose label is new.
template <class T>
Status assign(const Rows<T>& X, const T* centers, std::ptrdiff_t k, std::int32_t* labels,
              std::ptrdiff_t* changed, int n_threads) noexcept;

// distance[i] = that of row i to centers[labels[i]]; null to skip. *total = their weighted sum, in
// double. w: n weights, or null for ones.
template <class T>
Status deviation(const Rows<T>& X, const T* w, const T* centers, const std::int32_t* labels,
                 std::ptrdiff_t k, T* distance, double* total, int n_threads) noexcept;

// centers (k, d) = the weighted median of every column of each cluster: the least value that half
// the weight does not exceed or, when exactly half does not, midway to the next value. A cluster
// without weight keeps its center. weights (k) = the weight of each cluster.
// X is dense: for CSR see sparse_medians.
template <class T>
Status medians(const Rows<T>& X, const T* w, const std::int32_t* labels, std::ptrdiff_t k,
               T* centers, double* weights, int n_threads) noexcept;

// The same for sparse X, given as its transpose: a row for every column of X.
template <class T>
Status sparse_medians(const Rows<T>& columns, const T* w, const std::int32_t* labels,
                      std::ptrdiff_t k, T* centers, double* weights, int n_threads) noexcept;

// The rows in a block of the sums below.
std::ptrdiff_t rows_of_block(std::ptrdiff_t n) noexcept;

// potential (blocks, n_candidates) = the weighted sum, over the rows of each block, of
// min(closest[i], distance to the candidate). Candidates are dense rows. With `accept`, of one
// candidate, closest becomes that minimum.
template <class T>
Status potentials(const Rows<T>& X, const T* w, T* closest, const T* candidates,
                  std::ptrdiff_t n_candidates, bool accept, double* potential,
                  int n_threads) noexcept;

}  // namespace fastml
