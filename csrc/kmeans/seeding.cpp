#include "kmeans/seeding.h"

// std headers come before any target region
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/blocks.h"
#include "common/columns.h"
#include "common/isa.h"

#define FML_KERNEL "kmeans/seeding.inl.h"
#include "common/foreach_isa.h"

namespace fastml {

std::ptrdiff_t sketch_width() noexcept {
    ptrdiff_t rows, cols, depth;
    FML_PICK(tile_shape<float>)(&rows, &cols, &depth);
    return cols;
}

template <class T>
Status make_sketch(const Rows<T>& X, Sketch& sketch, bool* usable, int n_threads) noexcept {
    // Codes range over what a few thousand rows range over, and some more. Rows beyond it lose more,
    // which is known row by row: an outlier spoils its own code and nobody else's.
    constexpr ptrdiff_t sampled = 4096;
    constexpr double levels = 127, margin = 1.25;
    FML_PICK(sample_extent<T>)(X, ceil_div(X.n, sampled), sketch.step);
    sketch.unit = 0;
    for (ptrdiff_t p = 0; p < X.d; ++p) sketch.unit = std::fmax(sketch.unit, sketch.step[p]);
    if (sketch.unit == 0) sketch.unit = 1;
    *usable = sketch.unit > 1e-100 && sketch.unit < 1e100;
    if (!*usable) return Status::ok;
    for (ptrdiff_t p = 0; p < X.d; ++p) {
        const double step = sketch.step[p] / (sketch.unit * levels) * margin;
        const bool varies = step > 1e-100;
        sketch.step[p] = varies ? step : 0;
        sketch.per_step[p] = varies ? 1 / step : 0;
    }
    sketch.slack = static_cast<double>(X.d + 16) * std::numeric_limits<float>::epsilon();
    for (ptrdiff_t i = 0; i < X.n; ++i) {
        sketch.floor[i] = -std::numeric_limits<float>::infinity();
        sketch.nearer[i] = 0;
    }
    const Grid grid(X.n, summed_blocks);
    n_threads = threads_for(passed_over * X.n * X.d, n_threads);
    const auto run = FML_PICK(sketch_block<T>);
    return parallel(grid.blocks, n_threads,
                    [&](ptrdiff_t b, int) { run(X, grid.begin(b), grid.end(b), sketch); });
}

namespace {

// Rows `index` as dense rows, less the shift.
template <class T>
void gather(const Rows<T>& X, const ptrdiff_t* index, ptrdiff_t n_index, T* out) {
    for (ptrdiff_t c = 0; c < n_index; ++c) {
        T* row = out + c * X.d;
        const ptrdiff_t i = index[c];
        if (X.indptr) {
            for (ptrdiff_t p = 0; p < X.d; ++p) row[p] = 0;
            for (ptrdiff_t q = X.indptr[i]; q < X.indptr[i + 1]; ++q)
                row[X.indices[q]] += X.data[q];
        } else {
            for (ptrdiff_t p = 0; p < X.d; ++p)
                row[p] = X.shift ? X.data[i * X.d + p] - X.shift[p] : X.data[i * X.d + p];
        }
    }
}

template <class T>
Status gains_sparse(const Rows<T>& X, const T* w, T* closest, const T* dense,
                    ptrdiff_t n_candidates, bool accept, double* parts, const Grid& grid,
                    int n_threads) {
    const Columns<T> columns(dense, n_candidates, X.d);
    Scratch<T> row(n_threads * columns.stride);
    Scratch<double> norms(n_candidates);
    if (!columns.at || !row || !norms) return Status::no_memory;
    exact_norms(dense, n_candidates, X.d, norms.get());
    const auto run = FML_PICK(gains_sparse_block<T>);
    return parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int worker) {
        run(X, grid.begin(b), grid.end(b), w, closest, dense, columns.at.get(), norms.get(),
            n_candidates, columns.stride, accept, parts + b * n_candidates,
            row.get() + worker * columns.stride);
    });
}

template <class T>
Status gains_sketched(const Rows<T>& X, const T* w, const T* closest, const Sketch& sketch,
                      const ptrdiff_t* candidates, const T* dense, ptrdiff_t n_candidates,
                      double* parts, const Grid& grid, int n_threads) {
    ptrdiff_t rows, cols, depth;
    FML_PICK(tile_shape<float>)(&rows, &cols, &depth);
    const ptrdiff_t padded = ceil_div(n_candidates, rows) * rows;
    Scratch<float> panels(padded * X.d), bias(padded);
    if (!panels || !bias) return Status::no_memory;
    for (ptrdiff_t c = 0; c < padded; ++c) {
        double norm = 0;
        for (ptrdiff_t p = 0; p < X.d; ++p) {
            const double x = c < n_candidates ? dense[c * X.d + p] / sketch.unit : 0.0;
            norm += x * x;
            panels[c / rows * rows * X.d + p * rows + c % rows] =
                static_cast<float>(x * sketch.step[p]);
        }
        bias[c] = c < n_candidates ? static_cast<float>(-0.5 * norm * (1 - sketch.slack))
                                   : -std::numeric_limits<float>::infinity();
    }
    const auto run = FML_PICK(gains_sketched_block<T>);
    return parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int) {
        run(X, grid.begin(b), grid.end(b), w, closest, sketch, candidates, n_candidates,
            panels.get(), bias.get(), parts + b * n_candidates);
    });
}

template <class T>
Status gains_small(const Rows<T>& X, const T* w, T* closest, const T* dense, ptrdiff_t n_candidates,
                   bool accept, double* parts, const Grid& grid, int n_threads) {
    ptrdiff_t rows, cols, depth;
    FML_PICK(tile_shape<T>)(&rows, &cols, &depth);
    const ptrdiff_t per_thread = aligned(cols * (X.d + 2 + n_candidates));
    Scratch<T> scratch(n_threads * per_thread);
    if (!scratch) return Status::no_memory;
    const auto run = FML_PICK(gains_small_block<T>);
    return parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int worker) {
        run(X, grid.begin(b), grid.end(b), w, closest, dense, n_candidates, accept,
            parts + b * n_candidates, scratch.get() + worker * per_thread);
    });
}

// Without a sketch; accept, with one candidate, updates closest.
template <class T>
Status gains_plain(const Rows<T>& X, const T* w, T* closest, const T* dense, ptrdiff_t n_candidates,
                   bool accept, double* parts, const Grid& grid, int n_threads) {
    const auto run = X.indptr ? gains_sparse<T> : gains_small<T>;
    return run(X, w, closest, dense, n_candidates, accept, parts, grid, n_threads);
}

template <class T> double entries(const Rows<T>& X) {
    return X.indptr ? X.indptr[X.n] : static_cast<double>(X.n) * X.d;
}

}  // namespace

template <class T>
Status gains(const Rows<T>& X, const T* w, const T* closest, const Sketch* sketch,
             const ptrdiff_t* candidates, ptrdiff_t n_candidates, double* gain,
             int n_threads) noexcept {
    const Grid grid(X.n, summed_blocks);
    Scratch<T> dense(n_candidates * X.d);
    Scratch<double> parts(grid.blocks * n_candidates);
    if (!dense || !parts) return Status::no_memory;
    gather(X, candidates, n_candidates, dense.get());
    n_threads = threads_for(entries(X) * n_candidates, n_threads);
    const Status status = sketch && n_candidates <= max_sketched
                              ? gains_sketched(X, w, closest, *sketch, candidates, dense.get(),
                                               n_candidates, parts.get(), grid, n_threads)
                              : gains_plain(X, w, const_cast<T*>(closest), dense.get(),
                                            n_candidates, false, parts.get(), grid, n_threads);
    if (status == Status::ok) add_parts(parts.get(), grid.blocks, n_candidates, gain);
    return status;
}

template <class T>
Status accept(const Rows<T>& X, T* closest, const Sketch* sketch, ptrdiff_t center,
              ptrdiff_t candidate, int n_threads) noexcept {
    const Grid grid(X.n, summed_blocks);
    n_threads = threads_for(passed_over * entries(X), n_threads);
    if (sketch) {
        const bool known = candidate >= 0 && candidate < max_sketched;
        const std::uint32_t bits = known ? std::uint32_t{1} << candidate : 0;
        const auto run = FML_PICK(accept_block<T>);
        return parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int) {
            run(X, grid.begin(b), grid.end(b), closest, *sketch, center, bits);
        });
    }
    Scratch<T> dense(X.d);
    Scratch<double> parts(grid.blocks);
    if (!dense || !parts) return Status::no_memory;
    gather(X, &center, 1, dense.get());
    return gains_plain<T>(X, nullptr, closest, dense.get(), 1, true, parts.get(), grid, n_threads);
}

template <class T>
Status weighted_total(const T* p, const T* w, ptrdiff_t n, double* total, int n_threads) noexcept {
    const Grid grid(n, summed_blocks);
    Scratch<double> parts(grid.blocks);
    if (!parts) return Status::no_memory;
    const auto run = FML_PICK(total_block<T>);
    const Status status =
        parallel(grid.blocks, threads_for(passed_over * n, n_threads),
                 [&](ptrdiff_t b, int) { parts[b] = run(p, w, grid.begin(b), grid.end(b)); });
    if (status == Status::ok) add_parts(parts.get(), grid.blocks, 1, total);
    return status;
}

template <class T>
void search_cumulative(const T* p, const T* w, ptrdiff_t n, const double* target,
                       ptrdiff_t n_targets, ptrdiff_t* index) noexcept {
    T sum = 0;
    ptrdiff_t i = 0;
    for (ptrdiff_t r = 0; r < n_targets; ++r) {
        for (; i < n; ++i) {
            const T next = sum + (w ? w[i] * p[i] : p[i]);
            if (next >= target[r]) break;  // row i stays unsummed for the next target
            sum = next;
        }
        index[r] = i < n ? i : n - 1;
    }
}

#define FML_INSTANTIATE(T)                                                                         \
    template Status make_sketch(const Rows<T>&, Sketch&, bool*, int) noexcept;                     \
    template Status gains(const Rows<T>&, const T*, const T*, const Sketch*, const ptrdiff_t*,     \
                          ptrdiff_t, double*, int) noexcept;                                       \
    template Status accept(const Rows<T>&, T*, const Sketch*, ptrdiff_t, ptrdiff_t, int) noexcept; \
    template Status weighted_total(const T*, const T*, ptrdiff_t, double*, int) noexcept;          \
    template void search_cumulative(const T*, const T*, ptrdiff_t, const double*, ptrdiff_t,       \
                                    ptrdiff_t*) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
