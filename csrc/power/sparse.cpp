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

namespace {

// Fewer columns than a vector has lanes: V and less with zeros to whole vectors, rows of Y by way of
// such rows.
template <class T> struct Padded {
    ptrdiff_t k, width, d;
    Scratch<T> V, less;

    Padded(const T* given, const T* offset, ptrdiff_t d_, ptrdiff_t k_, ptrdiff_t width_)
        : k(k_), width(width_), d(d_), V(d_ * width_), less(width_) {
        if (!V || !less) return;
        std::fill_n(less.get(), width, T(0));
        if (offset) std::copy_n(offset, k, less.get());
        copy(given, d, k, width, V.get());
    }
    static void copy(const T* from, ptrdiff_t n, ptrdiff_t from_width, ptrdiff_t to_width, T* to) {
        const ptrdiff_t both = std::min(from_width, to_width);
        for (ptrdiff_t i = 0; i < n; ++i, from += from_width, to += to_width) {
            std::copy_n(from, both, to);
            std::fill(to + both, to + to_width, T(0));
        }
    }
};

template <class T>
Status narrow_times(const Sparse<T>& X, const T* V, ptrdiff_t k, ptrdiff_t lanes, const T* less,
                    bool add, T* Y, int n_threads) noexcept {
    const Grid grid(X.n, free_blocks);
    const Padded<T> padded(V, less, X.d, k, lanes);
    Scratch<T> scratch(n_threads * grid.rows * lanes);
    if (!padded.V || !padded.less || !scratch) return Status::no_memory;
    const auto run = FML_PICK(sparse_times<T>);
    return parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int worker) {
        const ptrdiff_t begin = grid.begin(b), rows = grid.end(b) - begin;
        T* const out = scratch.get() + worker * grid.rows * lanes;
        Sparse<T> part = X;  // its rows alone, so that they begin where the scratch does
        part.indptr += begin;
        part.n = rows;
        if (add) Padded<T>::copy(Y + begin * k, rows, k, lanes, out);
        run(part, 0, rows, padded.V.get(), padded.less.get(), add, lanes, out);
        Padded<T>::copy(out, rows, lanes, k, Y + begin * k);
    });
}

}  // namespace

template <class T>
Status times(const Sparse<T>& X, const T* V, ptrdiff_t k, const T* less, bool add, T* Y,
             int n_threads) noexcept {
    n_threads =
        threads_for(static_cast<double>(X.indptr[X.n] + X.n) * (k + passed_over), n_threads);
    ptrdiff_t lanes = 0;
    FML_PICK(vector_lanes<T>)(&lanes);
    if (k > 1 && k < lanes) return narrow_times(X, V, k, lanes, less, add, Y, n_threads);
    const Grid grid(X.n, free_blocks);
    const auto wide = FML_PICK(sparse_times<T>);
    const auto single = FML_PICK(sparse_dots<T>);
    return parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int) {
        if (k == 1)
            single(X, grid.begin(b), grid.end(b), V, less, add, Y);
        else
            wide(X, grid.begin(b), grid.end(b), V, less, add, k, Y);
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

#define FML_INSTANTIATE(T)                                                           \
    template Status times(const Sparse<T>&, const T*, ptrdiff_t, const T*, bool, T*, \
                          int) noexcept;                                             \
    template Status gram(const Sparse<T>&, const T*, T, T*, int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
