#include "power/power.h"

// std headers come before any target region
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/blocks.h"
#include "common/isa.h"
#include "common/scratch.h"

#define FML_KERNEL "power/sparse.inl.h"
#include "common/foreach_isa.h"

namespace fastml {

constexpr ptrdiff_t pad_rows = 1 << 10;  // at a time

template <class T>
Status times(const Sparse<T>& X, const T* V, ptrdiff_t k, const T* less, T* Y,
             int n_threads) noexcept {
    const double work = static_cast<double>(X.indptr[X.n] + X.n) * (k + passed_over);
    n_threads = threads_for(work, n_threads);
    const Grid grid(X.n, free_blocks);
    if (k == 1) {
        const auto run = FML_PICK(sparse_dots<T>);
        return parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int) {
            run(X, grid.begin(b), grid.end(b), V, less ? *less : T(0), Y + grid.begin(b));
        });
    }
    ptrdiff_t lanes = 0;
    FML_PICK(vector_lanes<T>)(&lanes);
    const ptrdiff_t width = ceil_div(k, lanes) * lanes;
    Scratch<T> padded(X.d * width), offset(width);
    if (!padded || !offset) return Status::no_memory;
    std::fill_n(offset.get(), width, T(0));
    if (less) std::copy_n(less, k, offset.get());
    const Status status = parallel(ceil_div(X.d, pad_rows), n_threads, [&](ptrdiff_t b, int) {
        const ptrdiff_t end = std::min(X.d, (b + 1) * pad_rows);
        for (ptrdiff_t j = b * pad_rows; j < end; ++j) {
            std::copy_n(V + j * k, k, padded.get() + j * width);
            std::fill_n(padded.get() + j * width + k, width - k, T(0));
        }
    });
    if (status != Status::ok) return status;
    const auto run = FML_PICK(sparse_times<T>);
    return parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int) {
        run(X, grid.begin(b), grid.end(b), padded.get(), offset.get(), k, width,
            Y + grid.begin(b) * k);
    });
}

template <class T>
Status gram(const Sparse<T>& X, const T* v, T less, T* z, int n_threads) noexcept {
    const ptrdiff_t stored = X.indptr[X.n], size = aligned(X.d);
    // So few that zeros and sums of the parts are a small part of the pass.
    const ptrdiff_t parts = std::clamp<ptrdiff_t>(stored / (8 * X.d), 1, 16);
    n_threads = threads_for(passed_over * static_cast<double>(stored + X.n), n_threads);
    Scratch<T> sums(parts * size);
    if (!sums) return Status::no_memory;
    const auto run = FML_PICK(sparse_gram<T>);
    const Status status = parallel(parts, n_threads, [&](ptrdiff_t p, int) {
        // As many stored values a part as can be: rows may be anything but alike.
        const auto row = [&](ptrdiff_t part) {
            const ptrdiff_t first = stored * part / parts;
            return std::lower_bound(X.indptr, X.indptr + X.n, first) - X.indptr;
        };
        T* const sum = sums.get() + p * size;
        std::fill_n(sum, X.d, T(0));
        run(X, p ? row(p) : 0, p + 1 < parts ? row(p + 1) : X.n, v, less, sum);
    });
    if (status != Status::ok) return status;
    for (ptrdiff_t j = 0; j < X.d; ++j) {
        double total = 0;
        for (ptrdiff_t p = 0; p < parts; ++p) total += sums[p * size + j];
        z[j] = static_cast<T>(total);
    }
    return Status::ok;
}

#define FML_INSTANTIATE(T)                                                                   \
    template Status times(const Sparse<T>&, const T*, ptrdiff_t, const T*, T*, int) noexcept; \
    template Status gram(const Sparse<T>&, const T*, T, T*, int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
