#include "pairwise/product.h"

#include <algorithm>

#include "common/blocks.h"
#include "common/scratch.h"

namespace fastml {
namespace {

constexpr ptrdiff_t rows_of_task = 32;

// Calls visit(i, seen, worker) for every row of X: seen[j] != i says that column j is yet to come.
template <class T, class Visit>
Status over_rows(const Rows<T>& X, const Rows<T>& Yt, int n_threads, const Visit& visit) {
    const ptrdiff_t m = Yt.d;
    const double each = static_cast<double>(Yt.indptr[Yt.n]) / Yt.n;
    n_threads = threads_for(passed_over * each * X.indptr[X.n], n_threads);
    Scratch<ptrdiff_t> seen(n_threads * m);
    if (!seen) return Status::no_memory;
    std::fill_n(seen.get(), n_threads * m, ptrdiff_t{-1});
    return parallel(ceil_div(X.n, rows_of_task), n_threads, [&](ptrdiff_t b, int worker) {
        const ptrdiff_t end = std::min(X.n, (b + 1) * rows_of_task);
        for (ptrdiff_t i = b * rows_of_task; i < end; ++i)
            visit(i, seen.get() + worker * m, worker);
    });
}

}  // namespace

template <class T>
Status product_sizes(const Rows<T>& X, const Rows<T>& Yt, std::int64_t* starts,
                     int n_threads) noexcept {
    starts[0] = 0;
    const Status status = over_rows(X, Yt, n_threads, [&](ptrdiff_t i, ptrdiff_t* seen, int) {
        std::int64_t count = 0;
        for (ptrdiff_t q = X.indptr[i]; q < X.indptr[i + 1]; ++q) {
            const ptrdiff_t p = X.indices[q];
            for (ptrdiff_t r = Yt.indptr[p]; r < Yt.indptr[p + 1]; ++r) {
                count += seen[Yt.indices[r]] != i;
                seen[Yt.indices[r]] = i;
            }
        }
        starts[i + 1] = count;
    });
    for (ptrdiff_t i = 0; i < X.n; ++i) starts[i + 1] += starts[i];
    return status;
}

template <class T>
Status product_entries(const Rows<T>& X, const Rows<T>& Yt, const std::int64_t* starts,
                       std::int32_t* indices, T* data, int n_threads) noexcept {
    Scratch<double> sums(n_threads * Yt.d);
    if (!sums) return Status::no_memory;
    return over_rows(X, Yt, n_threads, [&](ptrdiff_t i, ptrdiff_t* seen, int worker) {
        double* sum = sums.get() + worker * Yt.d;
        ptrdiff_t at = starts[i];
        for (ptrdiff_t q = X.indptr[i]; q < X.indptr[i + 1]; ++q) {
            const ptrdiff_t p = X.indices[q];
            const double x = X.data[q];
            for (ptrdiff_t r = Yt.indptr[p]; r < Yt.indptr[p + 1]; ++r) {
                const std::int32_t j = Yt.indices[r];
                if (seen[j] != i) {
                    seen[j] = i;
                    sum[j] = 0;
                    indices[at++] = j;
                }
                sum[j] += x * Yt.data[r];
            }
        }
        for (ptrdiff_t t = starts[i]; t < at; ++t) data[t] = static_cast<T>(sum[indices[t]]);
    });
}

#define FML_INSTANTIATE(T)                                                                      \
    template Status product_sizes(const Rows<T>&, const Rows<T>&, std::int64_t*, int) noexcept; \
    template Status product_entries(const Rows<T>&, const Rows<T>&, const std::int64_t*,        \
                                    std::int32_t*, T*, int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
