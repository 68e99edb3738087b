#pragma once
#include <cstddef>
#include <cstdint>

#include "common/pool.h"

// K-means in the feature space of a kernel. A center is the weighted mean of its members, so all
// that is known of it are sums of kernel values: sums[c * n + i] = Σ w_j K(j, i) over the members j
// of cluster c. Valid input means: n, k >= 1; labels in [0, k). Results do not depend on n_threads.
namespace fastml {

// Rows of the Gram matrix enter and leave clusters: for every r < m, row rows[r] of K (n columns,
// symmetric) times w[r] is added to the sums of to[r] and, unless `from` is null, taken from those
// of from[r]. K is (., n), of which only these rows are read.
template <class T>
Status move_rows(const T* K, std::ptrdiff_t n, const std::ptrdiff_t* rows, const std::int32_t* from,
                 const std::int32_t* to, const double* w, std::ptrdiff_t m, std::ptrdiff_t k,
                 double* sums, int n_threads) noexcept;

// labels[i] = the c of the least closeness[i] = norm[c] - 2 scale[c] sums[c * n + i], the lower one
// on ties: the squared distance of i to center c, short of K(i, i). norm is the square of the
// center's, or infinite for a cluster without members; scale is one over the cluster's weight.
// `labels` is read as well: *changed counts those that are new.
Status nearest_centers(const double* sums, std::ptrdiff_t n, std::ptrdiff_t k, const double* norm,
                       const double* scale, std::int32_t* labels, double* closeness,
                       std::ptrdiff_t* changed, int n_threads) noexcept;

}  // namespace fastml
