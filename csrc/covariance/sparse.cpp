#include <algorithm>

#include "common/blocks.h"
#include "covariance/covariance.h"

namespace fastml {

// Row j of XᵀX is a sum of rows of X, those that column j holds, weighted by its values: what is
// written stays in L1, and no two threads write the same.
template <class T>
Status sparse_products(const Stored<T>& X, double* out, int n_threads) noexcept {
    const double per_row = static_cast<double>(X.row_indptr[X.n]) / X.n;
    n_threads = threads_for(per_row * per_row * X.n, n_threads);
    constexpr ptrdiff_t columns = 16;
    return parallel(ceil_div(X.d, columns), n_threads, [&](ptrdiff_t b, int) {
        for (ptrdiff_t j = b * columns; j < std::min(X.d, (b + 1) * columns); ++j) {
            double* row = out + j * X.d;
            std::fill_n(row, X.d, 0.0);
            for (auto q = X.column_indptr[j]; q < X.column_indptr[j + 1]; ++q) {
                const std::int32_t i = X.column_indices[q];
                const double x = X.column_data[q];
                for (auto r = X.row_indptr[i]; r < X.row_indptr[i + 1]; ++r)
                    row[X.row_indices[r]] += x * X.row_data[r];
            }
        }
    });
}

template Status sparse_products(const Stored<float>&, double*, int) noexcept;
template Status sparse_products(const Stored<double>&, double*, int) noexcept;

}  // namespace fastml
