#include <algorithm>

#include "common/blocks.h"
#include "common/scratch.h"
#include "covariance/covariance.h"

namespace fastml {

// Row j of XᵀX is a sum of rows of X, those that column j holds, weighted by its values: what is
// written stays in L1, and no two threads write the same. For that X is sorted by columns first.
template <class T>
Status sparse_products(const Rows<T>& X, double* out, int n_threads) noexcept {
    const ptrdiff_t stored = X.indptr[X.n];
    Scratch<ptrdiff_t> first(X.d + 2);
    Scratch<std::int32_t> row(stored);
    Scratch<T> value(stored);
    if (!first || !row || !value) return Status::no_memory;
    // Column j begins at first[j + 1] while it is filled, and at first[j] once it is full.
    std::fill_n(first.get(), X.d + 2, 0);
    for (ptrdiff_t q = 0; q < stored; ++q) ++first[X.indices[q] + 2];
    for (ptrdiff_t j = 1; j < X.d + 2; ++j) first[j] += first[j - 1];
    for (ptrdiff_t i = 0; i < X.n; ++i)
        for (auto q = X.indptr[i]; q < X.indptr[i + 1]; ++q) {
            const ptrdiff_t to = first[X.indices[q] + 1]++;
            row[to] = static_cast<std::int32_t>(i);
            value[to] = X.data[q];
        }
    constexpr ptrdiff_t columns = 16;
    const double per_row = static_cast<double>(stored) / X.n;
    n_threads = threads_for(per_row * stored, n_threads);
    return parallel(ceil_div(X.d, columns), n_threads, [&](ptrdiff_t b, int) {
        for (ptrdiff_t j = b * columns; j < std::min(X.d, (b + 1) * columns); ++j) {
            double* products = out + j * X.d;
            std::fill_n(products, X.d, 0.0);
            for (ptrdiff_t q = first[j]; q < first[j + 1]; ++q) {
                const double x = value[q];
                for (auto r = X.indptr[row[q]]; r < X.indptr[row[q] + 1]; ++r)
                    products[X.indices[r]] += x * X.data[r];
            }
        }
    });
}

template Status sparse_products(const Rows<float>&, double*, int) noexcept;
template Status sparse_products(const Rows<double>&, double*, int) noexcept;

}  // namespace fastml
