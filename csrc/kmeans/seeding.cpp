#include "kmeans/seeding.h"

// std headers come before any target region
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/blocks.h"
#include "common/columns.h"
#include "common/isa.h"

#define FML_KERNEL "kmeans/seeding.inl.h"
#include "common/foreach_isa.h"
#include "common/tiling.h"

// Once more, for processors that multiply bytes.
#if FML_X86_REGIONS
FML_BEGIN("avx512f,avx512dq,avx512bw,avx512vl,avx512vnni,fma")
#define FML_VECTOR_BYTES 64
#define FML_TILE_ROWS 8
#define FML_BYTES
namespace fastml::bytes {
#include FML_KERNEL
}
#undef FML_VECTOR_BYTES
#undef FML_TILE_ROWS
#undef FML_BYTES
FML_END
#define FML_PICK_BYTES(...) (has_byte_products() ? &bytes::__VA_ARGS__ : FML_PICK(__VA_ARGS__))
#else
#define FML_PICK_BYTES(...) FML_PICK(__VA_ARGS__)
#endif

namespace fastml {
namespace {

bool has_byte_products() {
#if FML_X86_REGIONS
    static const bool has = isa() == Isa::avx512 && __builtin_cpu_supports("avx512vnni");
    return has;
#else
    return false;
#endif
}

// Nine of ten rows have no entry beyond it, going by a few thousand of them: an outlier spoils its
// own code and nobody else's.
template <class T> Status usual_extent(const Rows<T>& X, double* extent) {
    constexpr ptrdiff_t sampled = 4096;
    const ptrdiff_t stride = ceil_div(X.n, sampled), n = ceil_div(X.n, stride);
    Scratch<double> extents(n);
    if (!extents) return Status::no_memory;
    FML_PICK(sample_extent<T>)(X, stride, extents.get());
    double* const at = extents.get() + n * 9 / 10;
    std::nth_element(extents.get(), at, extents.get() + n);
    *extent = *at;
    return Status::ok;
}

}  // namespace

void sketch_shape(ptrdiff_t n, ptrdiff_t d, ptrdiff_t* panels, ptrdiff_t* padded,
                  ptrdiff_t* bytes) noexcept {
    ptrdiff_t width, bytes_a_row;
    FML_PICK_BYTES(code_shape)(d, &width, &bytes_a_row);
    *panels = ceil_div(n, width);
    *padded = *panels * width;
    *bytes = *padded * bytes_a_row;
}

template <class T>
Status make_sketch(const Rows<T>& X, Sketch& sketch, bool* usable, int n_threads) noexcept {
    constexpr double levels = 127, margin = 1.25;
    constexpr ptrdiff_t longest = 1 << 15;  // products of codes stay below 2^31
    double extent = 0;
    const Status found = usual_extent(X, &extent);
    if (found != Status::ok) return found;
    *usable = extent > 1e-100 && extent < 1e100 && X.d <= longest;
    if (!*usable) return Status::ok;
    sketch.per_step = levels / (extent * margin);
    ptrdiff_t padded, bytes;
    sketch_shape(X.n, X.d, &sketch.panels, &padded, &bytes);
    for (ptrdiff_t i = 0; i < padded; ++i) {
        sketch.reach[i] = i < X.n ? std::numeric_limits<float>::infinity() : 0.0f;
        if (i >= X.n) sketch.half_norm[i] = std::numeric_limits<float>::infinity();
    }
    const Grid grid(X.n, summed_blocks);
    n_threads = threads_for(passed_over * X.n * X.d, n_threads);
    const auto run = FML_PICK_BYTES(sketch_block<T>);
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
                      const ptrdiff_t* candidates, ptrdiff_t n_candidates, double* parts,
                      const Grid& grid, int n_threads) {
    const ptrdiff_t rows = chosen_shape<float>().rows;
    const ptrdiff_t padded = ceil_div(n_candidates, rows) * rows;
    Scratch<float> panels(padded * X.d), bias(padded);
    if (!panels || !bias) return Status::no_memory;
    FML_PICK_BYTES(pack_candidates)(sketch.codes, X.d, candidates, n_candidates, panels.get(),
                                    bias.get());
    float error = 0;
    for (ptrdiff_t c = 0; c < n_candidates; ++c)
        error = std::max(error, sketch.error[candidates[c]]);
    const auto run = FML_PICK_BYTES(gains_sketched_block<T>);
    return parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int) {
        run(X, grid.begin(b), grid.end(b), w, closest, sketch, candidates, n_candidates,
            panels.get(), bias.get(), error, parts + b * 2 * n_candidates);
    });
}

// Whether the largest gain is the largest for sure, or others so large are the same row's.
bool tells_largest(const double* gain, const double* doubt, const ptrdiff_t* candidates,
                   ptrdiff_t n_candidates) {
    const ptrdiff_t best = std::max_element(gain, gain + n_candidates) - gain;
    for (ptrdiff_t c = 0; c < n_candidates; ++c) {
        const bool less = gain[best] - gain[c] > doubt[best] + doubt[c];
        if (!less && candidates[c] != candidates[best]) return false;
    }
    return true;
}

template <class T>
Status gains_small(const Rows<T>& X, const T* w, T* closest, const T* panels, const T* dense,
                   ptrdiff_t n_candidates, bool accept, double* parts, const Grid& grid,
                   int n_threads) {
    const ptrdiff_t cols = chosen_shape<T>().cols;
    const ptrdiff_t per_thread = aligned(cols * (X.d + 2 + n_candidates));
    Scratch<T> scratch(n_threads * per_thread);
    if (!scratch) return Status::no_memory;
    const auto run = FML_PICK(gains_small_block<T>);
    return parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int worker) {
        run(X, grid.begin(b), grid.end(b), w, closest, panels, dense, n_candidates, accept,
            parts + b * n_candidates, scratch.get() + worker * per_thread);
    });
}

// Without a sketch; accept, with one candidate, updates closest.
template <class T>
Status gains_plain(const Rows<T>& X, const T* w, T* closest, const T* panels,
                   const ptrdiff_t* candidates, ptrdiff_t n_candidates, bool accept, double* parts,
                   const Grid& grid, int n_threads) {
    Scratch<T> dense(n_candidates * X.d);
    if (!dense) return Status::no_memory;
    gather(X, candidates, n_candidates, dense.get());
    if (X.indptr)
        return gains_sparse(X, w, closest, dense.get(), n_candidates, accept, parts, grid,
                            n_threads);
    return gains_small(X, w, closest, panels, dense.get(), n_candidates, accept, parts, grid,
                       n_threads);
}

template <class T> double entries(const Rows<T>& X) {
    return X.indptr ? X.indptr[X.n] : static_cast<double>(X.n) * X.d;
}

}  // namespace

template <class T> ptrdiff_t panels_size(ptrdiff_t n, ptrdiff_t d) noexcept {
    const ptrdiff_t cols = chosen_shape<T>().cols;
    return ceil_div(n, cols) * cols * d;
}

template <class T> Status make_panels(const Rows<T>& X, T* panels, int n_threads) noexcept {
    const Grid grid(X.n, summed_blocks);
    const auto run = FML_PICK(seed_panels<T>);
    return parallel(grid.blocks, threads_for(passed_over * entries(X), n_threads),
                    [&](ptrdiff_t b, int) {
                        run(X, grid.begin(b), grid.end(b), panels + grid.begin(b) * X.d);
                    });
}

template <class T>
Status gains(const Rows<T>& X, const T* w, const T* closest, const Sketch* sketch, const T* panels,
             const ptrdiff_t* candidates, ptrdiff_t n_candidates, double* gain,
             int n_threads) noexcept {
    const Grid grid(X.n, summed_blocks);
    Scratch<double> parts(grid.blocks * 2 * n_candidates), sums(2 * n_candidates);
    if (!parts || !sums) return Status::no_memory;
    n_threads = threads_for(entries(X) * n_candidates, n_threads);
    if (!sketch) {
        const Status status = gains_plain(X, w, const_cast<T*>(closest), panels, candidates,
                                          n_candidates, false, parts.get(), grid, n_threads);
        if (status == Status::ok) add_parts(parts.get(), grid.blocks, n_candidates, gain);
        return status;
    }
    Sketch used = *sketch;
    for (;; used.rows = nullptr) {
        const Status status = gains_sketched(X, w, closest, used, candidates, n_candidates,
                                             parts.get(), grid, n_threads);
        if (status != Status::ok) return status;
        add_parts(parts.get(), grid.blocks, 2 * n_candidates, sums.get());
        std::copy_n(sums.get(), n_candidates, gain);
        if (!used.rows || tells_largest(gain, sums.get() + n_candidates, candidates, n_candidates))
            return status;
    }
}

template <class T>
Status accept(const Rows<T>& X, const T* w, T* closest, const Sketch* sketch, const T* panels,
              ptrdiff_t center, ptrdiff_t candidate, double* parts, double* total,
              int n_threads) noexcept {
    const Grid grid(X.n, summed_blocks);
    const double work = sketch ? 4.0 * X.n : entries(X);  // of few rows the entries are read
    n_threads = threads_for(passed_over * work, n_threads);
    if (!sketch) {
        const Status status =
            gains_plain(X, w, closest, panels, &center, 1, true, parts, grid, n_threads);
        if (status != Status::ok) return status;
    }
    const auto run = FML_PICK(accept_block<T>);
    const auto add = FML_PICK(total_block<T>);
    const Status status = parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int) {
        if (sketch) run(X, grid.begin(b), grid.end(b), closest, *sketch, center, candidate);
        parts[b] = add(closest, w, grid.begin(b), grid.end(b));
    });
    if (status == Status::ok) add_parts(parts, grid.blocks, 1, total);
    return status;
}

// Searches from the block on in which the running sum must reach the target, rather than from the
// first row. Whether another order of summation might have found another row is known: then false.
static bool search_by_parts(const double* p, const double* w, ptrdiff_t n, const double* parts,
                            const double* target, ptrdiff_t n_targets, ptrdiff_t* index) {
    static_assert(summed_blocks == most_parts, "accept's blocks");
    const Grid grid(n, summed_blocks);
    double total = 0;
    for (ptrdiff_t b = 0; b < grid.blocks; ++b) total += parts[b];
    const double doubt =
        2 * std::numeric_limits<double>::epsilon() * static_cast<double>(n) * total;
    for (ptrdiff_t r = 0; r < n_targets; ++r) {
        double sum = 0;
        ptrdiff_t b = 0;
        for (; b + 1 < grid.blocks && sum + parts[b] < target[r]; ++b) sum += parts[b];
        ptrdiff_t i = grid.begin(b);
        double last = sum;
        for (; i < n && sum < target[r]; ++i) {
            last = sum;
            sum += w ? w[i] * p[i] : p[i];
        }
        if (!(sum - target[r] > doubt && target[r] - last > doubt)) return false;
        index[r] = i - 1;
    }
    return true;
}

template <class T>
void search_cumulative(const T* p, const T* w, ptrdiff_t n, const double* parts,
                       const double* target, ptrdiff_t n_targets, ptrdiff_t* index) noexcept {
    if constexpr (std::is_same_v<T, double>)
        if (search_by_parts(p, w, n, parts, target, n_targets, index)) return;
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

#define FML_INSTANTIATE(T)                                                                       \
    template Status make_sketch(const Rows<T>&, Sketch&, bool*, int) noexcept;                   \
    template ptrdiff_t panels_size<T>(ptrdiff_t, ptrdiff_t) noexcept;                            \
    template Status make_panels(const Rows<T>&, T*, int) noexcept;                               \
    template Status gains(const Rows<T>&, const T*, const T*, const Sketch*, const T*,           \
                          const ptrdiff_t*, ptrdiff_t, double*, int) noexcept;                   \
    template Status accept(const Rows<T>&, const T*, T*, const Sketch*, const T*, ptrdiff_t,     \
                           ptrdiff_t, double*, double*, int) noexcept;                           \
    template void search_cumulative(const T*, const T*, ptrdiff_t, const double*, const double*, \
                                    ptrdiff_t, ptrdiff_t*) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
