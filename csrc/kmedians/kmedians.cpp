#include "kmedians/kmedians.h"

// std headers come before any target region
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/blocks.h"
#include "common/columns.h"
#include "common/isa.h"
#include "common/scratch.h"

#define FML_KERNEL "kmedians/kmedians.inl.h"
#include "common/foreach_isa.h"
#include "common/tiling.h"

namespace fastml {
namespace {

// Rows (n, d) as A panels.
template <class T> struct Panels {
    ptrdiff_t number;
    Scratch<T> at;
    Panels(const T* rows, ptrdiff_t n, ptrdiff_t d)
        : number(ceil_div(n, chosen_shape<T>().rows)), at(number * chosen_shape<T>().rows * d) {
        if (!at) return;
        const auto pack = FML_PICK(pack_rows_panel<T>);
        for (ptrdiff_t i = 0; i < number; ++i) pack(rows, n, d, i, at.get());
    }
    // A B panel and what multiply_panel spills.
    ptrdiff_t scratch(ptrdiff_t d) const {
        const TileShape s = chosen_shape<T>();
        return aligned(s.cols * d + spill_size(s, d, number));
    }
};

template <class T> double magnitude(const T* row, ptrdiff_t d) {
    double sum = 0;
    for (ptrdiff_t p = 0; p < d; ++p) sum += std::fabs(static_cast<double>(row[p]));
    return sum;
}

// Rows as columns, in double, and the sums of their magnitudes.
struct DoubleColumns {
    Scratch<double> rows;
    Columns<double> columns;
    Scratch<double> size;
    template <class T>
    DoubleColumns(const T* given, ptrdiff_t k, ptrdiff_t d)
        : rows(k * d), columns(copied(given, k * d, rows.get()), rows ? k : 0, d),
          size(columns.stride) {
        if (!*this) return;
        for (ptrdiff_t j = 0; j < columns.stride; ++j)
            size[j] = j < k ? magnitude(given + j * d, d) : 0;
    }
    explicit operator bool() const { return rows && columns.at && size; }

  private:
    template <class T> static const double* copied(const T* from, ptrdiff_t n, double* to) {
        return to ? std::copy_n(from, n, to) - n : to;
    }
};

// So many blocks that none keeps Ctrl-C waiting: some 10 ms each at most.
ptrdiff_t blocks_for(double work) {
    return std::max(free_blocks, static_cast<ptrdiff_t>(std::fmin(work / 3e8, 1e9)));
}

template <class T> double stored(const Rows<T>& X) {
    return X.indptr ? X.indptr[X.n] : static_cast<double>(X.n) * X.d;
}

}  // namespace

template <class T>
Status assign(const Rows<T>& X, const T* centers, ptrdiff_t k, std::int32_t* labels,
              ptrdiff_t* changed, int n_threads) noexcept {
    const double work = stored(X) * k;
    n_threads = threads_for(work, n_threads);
    const Grid grid(X.n, blocks_for(work));
    Scratch<ptrdiff_t> moved(grid.blocks);
    if (!moved) return Status::no_memory;
    Status status;
    if (X.indptr) {
        const DoubleColumns c(centers, k, X.d);
        const ptrdiff_t stride = c.columns.stride;
        Scratch<double> row(n_threads * stride);
        if (!c || !row) return Status::no_memory;
        const auto run = FML_PICK(assign_sparse_block<T>);
        status = parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int worker) {
            moved[b] = run(X, grid.begin(b), grid.end(b), c.columns.at.get(), c.size.get(), k,
                           stride, labels, row.get() + worker * stride);
        });
    } else {
        const Panels<T> panels(centers, k, X.d);
        const ptrdiff_t per_thread = panels.scratch(X.d);
        Scratch<T> scratch(n_threads * per_thread);
        if (!panels.at || !scratch) return Status::no_memory;
        const auto run = FML_PICK(assign_block<T>);
        status = parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int worker) {
            moved[b] = run(X, grid.begin(b), grid.end(b), panels.at.get(), k, labels,
                           scratch.get() + worker * per_thread);
        });
    }
    *changed = 0;
    for (ptrdiff_t b = 0; status == Status::ok && b < grid.blocks; ++b) *changed += moved[b];
    return status;
}

template <class T>
Status deviation(const Rows<T>& X, const T* w, const T* centers, const std::int32_t* labels,
                 ptrdiff_t k, T* distance, double* total, int n_threads) noexcept {
    const Grid grid(X.n, summed_blocks);
    n_threads = threads_for(passed_over * stored(X), n_threads);
    Scratch<double> parts(grid.blocks), size(X.indptr ? k : 0);
    if (!parts || !size) return Status::no_memory;
    for (ptrdiff_t j = 0; X.indptr && j < k; ++j) size[j] = magnitude(centers + j * X.d, X.d);
    const auto dense = FML_PICK(deviation_block<T>);
    const auto sparse = FML_PICK(deviation_sparse_block<T>);
    const Status status = parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int) {
        parts[b] = X.indptr ? sparse(X, w, centers, size.get(), labels, grid.begin(b), grid.end(b),
                                     distance)
                            : dense(X, w, centers, labels, grid.begin(b), grid.end(b), distance);
    });
    if (status == Status::ok) add_parts(parts.get(), grid.blocks, 1, total);
    return status;
}

ptrdiff_t rows_of_block(ptrdiff_t n) noexcept { return Grid(n, summed_blocks).rows; }

template <class T>
Status potentials(const Rows<T>& X, const T* w, T* closest, const T* candidates,
                  ptrdiff_t n_candidates, bool accept, double* potential, int n_threads) noexcept {
    const Grid grid(X.n, summed_blocks);
    n_threads = threads_for(stored(X) * (passed_over + n_candidates), n_threads);
    if (X.indptr) {
        const DoubleColumns c(candidates, n_candidates, X.d);
        const ptrdiff_t stride = c.columns.stride;
        Scratch<double> row(n_threads * stride);
        if (!c || !row) return Status::no_memory;
        const auto run = FML_PICK(potentials_sparse_block<T>);
        return parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int worker) {
            run(X, grid.begin(b), grid.end(b), w, closest, c.columns.at.get(), c.size.get(), stride,
                n_candidates, accept, potential + b * n_candidates, row.get() + worker * stride);
        });
    }
    const Panels<T> panels(candidates, n_candidates, X.d);
    const ptrdiff_t per_thread = panels.scratch(X.d);
    Scratch<T> scratch(n_threads * per_thread);
    if (!panels.at || !scratch) return Status::no_memory;
    const auto run = FML_PICK(potentials_block<T>);
    return parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int worker) {
        run(X, grid.begin(b), grid.end(b), w, closest, panels.at.get(), n_candidates, accept,
            potential + b * n_candidates, scratch.get() + worker * per_thread);
    });
}

#define FML_INSTANTIATE(T)                                                                        \
    template Status assign(const Rows<T>&, const T*, ptrdiff_t, std::int32_t*, ptrdiff_t*,        \
                           int) noexcept;                                                         \
    template Status deviation(const Rows<T>&, const T*, const T*, const std::int32_t*, ptrdiff_t, \
                              T*, double*, int) noexcept;                                         \
    template Status potentials(const Rows<T>&, const T*, T*, const T*, ptrdiff_t, bool, double*,  \
                               int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
