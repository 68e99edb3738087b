#include "projection/projection.h"

// std headers come before any target region
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/blocks.h"
#include "common/isa.h"
#include "common/scratch.h"

#define FML_KERNEL "projection/projection.inl.h"
#include "common/foreach_isa.h"

namespace fastml {

// A panel of rows stays in L2 while entries of S pick its columns.
constexpr ptrdiff_t panel_bytes = 1 << 19;

template <class T>
Status project(const Rows<T>& X, const Rows<T>& S, bool transposed, T* out,
               int n_threads) noexcept {
    ptrdiff_t lanes;
    FML_PICK(lanes_of<T>)(&lanes);
    const ptrdiff_t fit = panel_bytes / (X.d * lanes * static_cast<ptrdiff_t>(sizeof(T)));
    const auto run = fit >= 4   ? FML_PICK(project_block<T, 4>)
                     : fit >= 2 ? FML_PICK(project_block<T, 2>)
                                : FML_PICK(project_block<T, 1>);
    const ptrdiff_t width = lanes * (fit >= 4 ? 4 : fit >= 2 ? 2 : 1);
    n_threads = threads_for(passed_over * X.n * (X.d + S.indptr[S.n]) / 4, n_threads);
    const ptrdiff_t per_thread = aligned(width * X.d);
    Scratch<T> panels(n_threads * per_thread);
    if (!panels) return Status::no_memory;
    return parallel(ceil_div(X.n, width), n_threads, [&](ptrdiff_t b, int worker) {
        run(X, b * width, std::min(width, X.n - b * width), S, transposed,
            panels.get() + worker * per_thread, out);
    });
}

template <class T>
Status project_sparse(const Rows<T>& X, const Rows<T>& Y, T* out, int n_threads) noexcept {
    constexpr ptrdiff_t rows_of_task = 32;
    const ptrdiff_t m = Y.d;
    const double each = static_cast<double>(Y.indptr[Y.n]) / Y.n;
    n_threads = threads_for(X.indptr[X.n] * each + static_cast<double>(X.n) * m, n_threads);
    return parallel(ceil_div(X.n, rows_of_task), n_threads, [&](ptrdiff_t b, int) {
        const ptrdiff_t end = std::min(X.n, (b + 1) * rows_of_task);
        for (ptrdiff_t i = b * rows_of_task; i < end; ++i) {
            T* row = out + i * m;
            std::fill_n(row, m, T(0));
            for (ptrdiff_t q = X.indptr[i]; q < X.indptr[i + 1]; ++q) {
                const T x = X.data[q];
                const ptrdiff_t p = X.indices[q];
                for (ptrdiff_t r = Y.indptr[p]; r < Y.indptr[p + 1]; ++r)
                    row[Y.indices[r]] += x * Y.data[r];
            }
        }
    });
}

#define FML_INSTANTIATE(T)                                                           \
    template Status project(const Rows<T>&, const Rows<T>&, bool, T*, int) noexcept; \
    template Status project_sparse(const Rows<T>&, const Rows<T>&, T*, int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
