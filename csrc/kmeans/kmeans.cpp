#include "kmeans/kmeans.h"

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
#include "kmeans/labels.h"

#define FML_KERNEL "kmeans/kmeans.inl.h"
#include "common/foreach_isa.h"
#include "common/tiling.h"

namespace fastml {
namespace {

template <class T>
Status assign_dense(const Rows<T>& X, const T* w, const T* centers, ptrdiff_t k,
                    std::int32_t* labels, ptrdiff_t* changed, double* sums, double* weights,
                    int n_threads) noexcept {
    Scratch<std::int32_t> work(X.n);
    if (!work) return Status::no_memory;
    const Status status = label_rows(X, nullptr, X.n, centers, k, Bounds{}, labels, work.get(),
                                     nullptr, changed, n_threads);
    if (status != Status::ok || !sums) return status;
    return sum_by_label(X, w, labels, k, sums, weights, n_threads);
}

template <class T>
Status assign_sparse(const Rows<T>& X, const T* w, const T* centers, ptrdiff_t k,
                     std::int32_t* labels, ptrdiff_t* changed, double* sums, double* weights,
                     int n_threads) noexcept {
    n_threads = threads_for(static_cast<double>(X.indptr[X.n]) * k, n_threads);
    const Columns<T> columns(centers, k, X.d);
    const Grid grid(X.n, free_blocks);
    Scratch<T> bias(k), dots(n_threads * columns.stride);
    Scratch<double> norms(k);
    Scratch<ptrdiff_t> moved(grid.blocks);
    if (!columns.at || !bias || !dots || !norms || !moved) return Status::no_memory;
    exact_norms(centers, k, X.d, norms.get());
    for (ptrdiff_t j = 0; j < k; ++j) bias[j] = static_cast<T>(-0.5 * norms[j]);
    const auto run = FML_PICK(assign_sparse_block<T>);
    const Status status = parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int worker) {
        moved[b] = run(X, grid.begin(b), grid.end(b), columns.at.get(), bias.get(), k,
                       columns.stride, labels, dots.get() + worker * columns.stride);
    });
    if (status != Status::ok) return status;
    *changed = 0;
    for (ptrdiff_t b = 0; b < grid.blocks; ++b) *changed += moved[b];
    return sums ? sum_by_label(X, w, labels, k, sums, weights, n_threads) : Status::ok;
}

}  // namespace

template <class T>
Status assign(const Rows<T>& X, const T* w, const T* centers, ptrdiff_t k, std::int32_t* labels,
              ptrdiff_t* changed, double* sums, double* weights, int n_threads) noexcept {
    const auto run = X.indptr ? assign_sparse<T> : assign_dense<T>;
    return run(X, w, centers, k, labels, changed, sums, weights, n_threads);
}

// A few sums: each block of rows has its own.
template <class T>
static Status sum_in_blocks(const Rows<T>& X, const T* w, const std::int32_t* labels, ptrdiff_t k,
                            double* sums, double* weights, int n_threads) {
    const ptrdiff_t part = k * (X.d + 1);
    const Grid grid(X.n, summed_blocks);
    Scratch<double> parts(grid.blocks * part), total(part);
    if (!parts || !total) return Status::no_memory;
    const auto add = FML_PICK(sum_block<T>);
    n_threads = threads_for(passed_over * X.n * X.d, n_threads);
    const Status status = parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int) {
        double* mine = parts.get() + b * part;
        std::memset(mine, 0, part * sizeof(double));
        add(X, w, labels, grid.begin(b), grid.end(b), mine, mine + k * X.d);
    });
    if (status != Status::ok) return status;
    add_parts(parts.get(), grid.blocks, part, total.get());
    std::memcpy(sums, total.get(), k * X.d * sizeof(double));
    std::memcpy(weights, total.get() + k * X.d, k * sizeof(double));
    return status;
}

// Many sums: a stable counting sort by label, then each cluster on its own, so that there are no
// partial sums to merge, and rows are added in ascending order whatever the number of threads.
template <class T>
Status sum_by_label(const Rows<T>& X, const T* w, const std::int32_t* labels, ptrdiff_t k,
                    double* sums, double* weights, int n_threads) noexcept {
    if (!X.indptr && k * X.d <= fused_sums)
        return sum_in_blocks(X, w, labels, k, sums, weights, n_threads);
    Scratch<ptrdiff_t> start(k + 1);
    Scratch<std::int32_t> order(X.n);
    if (!start || !order) return Status::no_memory;
    std::memset(start.get(), 0, (k + 1) * sizeof(ptrdiff_t));
    std::memset(weights, 0, k * sizeof(double));
    for (ptrdiff_t i = 0; i < X.n; ++i) {
        ++start[labels[i]];
        weights[labels[i]] += w ? w[i] : 1;
    }
    for (ptrdiff_t j = 0, sum = 0; j <= k; ++j) {
        const ptrdiff_t count = j < k ? start[j] : 0;
        start[j] = sum;
        sum += count;
    }
    for (ptrdiff_t i = 0; i < X.n; ++i) order[start[labels[i]]++] = static_cast<std::int32_t>(i);
    // Now start[j] is where cluster j ends.
    const auto rows_of = [&](ptrdiff_t j) { return j ? start[j - 1] : 0; };

    n_threads = threads_for(passed_over * X.n * X.d, n_threads);
    if (X.indptr) {
        const auto sum_sparse = FML_PICK(sum_listed_sparse<T>);
        return parallel(k, n_threads, [&](ptrdiff_t j, int) {
            sum_sparse(X, w, order.get() + rows_of(j), start[j] - rows_of(j), sums + j * X.d);
        });
    }
    const auto sum_dense = FML_PICK(sum_listed<T>);
    constexpr ptrdiff_t strip = 256;  // columns of a task: short enough for Ctrl-C
    const ptrdiff_t strips = ceil_div(X.d, strip);
    return parallel(k * strips, n_threads, [&](ptrdiff_t t, int) {
        const ptrdiff_t j = t / strips, p0 = t % strips * strip;
        const ptrdiff_t p1 = p0 + strip < X.d ? p0 + strip : X.d;
        sum_dense(X, w, order.get() + rows_of(j), start[j] - rows_of(j), p0, p1, sums + j * X.d);
    });
}

template <class T>
Status inertia(const Rows<T>& X, const T* w, const T* centers, const std::int32_t* labels,
               ptrdiff_t k, T* sqdist, double* inertia, int n_threads) noexcept {
    const Grid grid(X.n, summed_blocks);
    Scratch<double> norms(X.indptr ? k : 0), parts(grid.blocks);
    if (!norms || !parts) return Status::no_memory;
    if (X.indptr) exact_norms(centers, k, X.d, norms.get());
    const auto dense = FML_PICK(inertia_block<T>);
    const auto sparse = FML_PICK(inertia_sparse_block<T>);
    n_threads = threads_for(passed_over * X.n * X.d, n_threads);
    const Status status = parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int) {
        parts[b] = X.indptr ? sparse(X, w, centers, norms.get(), labels, grid.begin(b), grid.end(b),
                                     sqdist)
                            : dense(X, w, centers, labels, grid.begin(b), grid.end(b), sqdist);
    });
    if (status == Status::ok) add_parts(parts.get(), grid.blocks, 1, inertia);
    return status;
}

template <class T>
Status distances(const Rows<T>& X, const T* centers, ptrdiff_t k, T* out, int n_threads) noexcept {
    n_threads = threads_for(static_cast<double>(X.n) * k * X.d, n_threads);
    if (X.indptr) {
        const Columns<T> columns(centers, k, X.d);
        Scratch<double> norms(k);
        Scratch<T> row(n_threads * columns.stride);
        if (!columns.at || !norms || !row) return Status::no_memory;
        exact_norms(centers, k, X.d, norms.get());
        const Grid grid(X.n, free_blocks);
        const auto run = FML_PICK(distances_sparse_block<T>);
        return parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int worker) {
            run(X, grid.begin(b), grid.end(b), centers, columns.at.get(), norms.get(), k,
                columns.stride, out, row.get() + worker * columns.stride);
        });
    }
    const TileShape s = chosen_shape<T>();
    const ptrdiff_t panels = ceil_div(k, s.cols);
    const ptrdiff_t rows = 2 * block_unit;  // A panels of so many rows stay in L2
    const ptrdiff_t a_panels = ceil_div(rows, s.rows);
    const ptrdiff_t per_thread =
        aligned(a_panels * s.rows * (X.d + 1) + spill_size(s, X.d, a_panels));
    Scratch<T> packed(panels * s.cols * X.d), norms(panels * s.cols);
    Scratch<T> scratch(n_threads * per_thread);
    if (!packed || !norms || !scratch) return Status::no_memory;
    const auto pack = FML_PICK(pack_cols_panel<T>);
    for (ptrdiff_t j = 0; j < panels; ++j) pack(centers, k, X.d, j, packed.get(), norms.get());
    const auto run = FML_PICK(distances_dense_block<T>);
    return parallel(ceil_div(X.n, rows), n_threads, [&](ptrdiff_t b, int worker) {
        const ptrdiff_t end = (b + 1) * rows < X.n ? (b + 1) * rows : X.n;
        run(X, b * rows, end, centers, packed.get(), norms.get(), k, out,
            scratch.get() + worker * per_thread, a_panels);
    });
}

template <class T>
Status column_moments(const Rows<T>& X, double* mean, double* variance, int n_threads) noexcept {
    const Grid grid(X.n, summed_blocks);
    // Summed about the first row (dense) rather than zero: far from the origin, squares cancel.
    const T* pivot = X.indptr ? nullptr : X.data;
    Scratch<double> parts(grid.blocks * 2 * X.d), total(2 * X.d);
    if (!parts || !total) return Status::no_memory;
    const auto run = X.indptr ? FML_PICK(moments_sparse_block<T>) : FML_PICK(moments_block<T>);
    n_threads = threads_for(passed_over * X.n * X.d, n_threads);
    const Status status = parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int) {
        double* mine = parts.get() + b * 2 * X.d;
        std::memset(mine, 0, 2 * X.d * sizeof(double));
        run(X, pivot, grid.begin(b), grid.end(b), mine, mine + X.d);
    });
    if (status != Status::ok) return status;
    add_parts(parts.get(), grid.blocks, 2 * X.d, total.get());
    for (ptrdiff_t p = 0; p < X.d; ++p) {
        const double offset = total[p] / X.n;
        const double spread = total[X.d + p] / X.n - offset * offset;
        mean[p] = offset + (pivot ? static_cast<double>(pivot[p]) : 0.0);
        variance[p] = spread > 0 ? spread : 0;
    }
    return status;
}

#define FML_INSTANTIATE(T)                                                                      \
    template Status assign(const Rows<T>&, const T*, const T*, ptrdiff_t, std::int32_t*,        \
                           ptrdiff_t*, double*, double*, int) noexcept;                         \
    template Status sum_by_label(const Rows<T>&, const T*, const std::int32_t*, ptrdiff_t,      \
                                 double*, double*, int) noexcept;                               \
    template Status inertia(const Rows<T>&, const T*, const T*, const std::int32_t*, ptrdiff_t, \
                            T*, double*, int) noexcept;                                         \
    template Status distances(const Rows<T>&, const T*, ptrdiff_t, T*, int) noexcept;           \
    template Status column_moments(const Rows<T>&, double*, double*, int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
