#include "kmeans/labels.h"

// std headers come before any target region
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/blocks.h"
#include "common/isa.h"

#define FML_KERNEL "kmeans/narrow.inl.h"
#include "common/foreach_isa.h"
#include "common/tiling.h"

// Once more, for processors that multiply bfloat16.
#if FML_X86_REGIONS
FML_BEGIN("avx512f,avx512dq,avx512bw,avx512vl,avx512bf16,fma")
#define FML_VECTOR_BYTES 64
#define FML_TILE_ROWS 8
#define FML_BFLOAT16
namespace fastml::bfloat16 {
#include FML_KERNEL
}
#undef FML_VECTOR_BYTES
#undef FML_TILE_ROWS
#undef FML_BFLOAT16
FML_END
#define FML_PICK_NARROW(...) (has_bfloat16() ? &bfloat16::__VA_ARGS__ : FML_PICK(__VA_ARGS__))
#else
#define FML_PICK_NARROW(...) FML_PICK(__VA_ARGS__)
#endif

namespace fastml {
namespace {

bool has_bfloat16() {
#if FML_X86_REGIONS
    static const bool has = isa() == Isa::avx512 && __builtin_cpu_supports("avx512bf16");
    return has;
#else
    return false;
#endif
}

// Of scores of d products each, with as much again to spare.
template <class T> T gamma(ptrdiff_t d) {
    return static_cast<T>(d + 16) * std::numeric_limits<T>::epsilon();
}

// Blocks of rows to label: so many that none keeps Ctrl-C waiting, but none of less work than pays
// for what it begins with.
ptrdiff_t blocks_for(double work) {
    constexpr double largest = 1e9, least = 4e6;  // multiply-adds a block: some 10 ms, some 20 us
    const double wanted = std::fmin(std::fmax(summed_blocks, work / least), free_blocks);
    return static_cast<ptrdiff_t>(std::fmax(wanted, std::fmin(work / largest, 1e9)));
}

// Centers in words, for as long as they are used.
struct NarrowCenters {
    TileShape s;
    ptrdiff_t depth, n_panels;
    std::int32_t index_bits = 0;  // ones for the bits of the largest index
    Scratch<float> panels, bias;
    Packed<float> packed{};

    NarrowCenters(ptrdiff_t k, ptrdiff_t d)
        : s(chosen_shape<float>()), depth(has_bfloat16() ? (d + 1) / 2 : d),
          n_panels(ceil_div(k, s.rows)), panels(n_panels * s.rows * depth),
          bias(n_panels * s.rows) {}
    explicit operator bool() const { return panels && bias; }
    ptrdiff_t scratch(ptrdiff_t d) const {
        return aligned(s.cols * (d + depth) + spill_size(s, depth, n_panels));
    }
    template <class T>
    Status pack(const T* centers, ptrdiff_t k, ptrdiff_t d, double reach, int n_threads) {
        Scratch<double> losses(n_panels);
        if (!losses) return Status::no_memory;
        const auto pack_panel = FML_PICK_NARROW(pack_narrow_panel<T>);
        const Status status =
            parallel(n_panels, threads_for(passed_over * k * d, n_threads), [&](ptrdiff_t i, int) {
                pack_panel(centers, k, d, i, panels.get(), bias.get(), &losses[i]);
            });
        if (status != Status::ok) return status;
        double lost = 0;
        for (ptrdiff_t i = 0; i < n_panels; ++i) lost = std::fmax(lost, losses[i]);
        while (index_bits < n_panels * s.rows - 1) index_bits = 2 * index_bits + 1;
        const float lost_to_index = has_bfloat16() ? std::ldexp(index_bits + 1.0f, -23) : 0.0f;
        const auto up = [](double x) { return static_cast<float>(x * (1 + 1e-6)); };
        packed = {panels.get(),
                  bias.get(),
                  n_panels,
                  {gamma<float>(d) + lost_to_index, up(reach), up(std::sqrt(lost))}};
        return Status::ok;
    }
};

// What rows are labelled with; one parallel loop a stage.
template <class T> struct Labelling {
    const Rows<T>& X;
    const T* centers;
    ptrdiff_t k;
    const Bounds& bounds;
    std::int32_t* labels;
    int n_threads;
    Margin<T> margin;

    // The rows of list that stay open go to `open`, which may be list.
    Status narrow(const NarrowCenters& packed, const std::int32_t* list, ptrdiff_t n,
                  KeptRows* kept, std::int32_t* open, ptrdiff_t* n_open, ptrdiff_t* changed) const {
        const Grid grid(n, blocks_for(static_cast<double>(n) * k * X.d));
        const ptrdiff_t per_thread = packed.scratch(X.d);
        Scratch<float> scratch(n_threads * per_thread);
        Scratch<ptrdiff_t> left(grid.blocks), moved(grid.blocks);
        if (!scratch || !left || !moved) return Status::no_memory;
        const auto run = bounds.upper ? FML_PICK_NARROW(label_narrow_block<T, true>)
                                      : FML_PICK_NARROW(label_narrow_block<T, false>);
        const Status status = parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int worker) {
            moved[b] = 0;
            left[b] = run(X, list, grid.begin(b), grid.end(b), packed.packed, packed.index_bits,
                          bounds, kept, labels, open + grid.begin(b), &moved[b],
                          scratch.get() + worker * per_thread);
        });
        if (status != Status::ok) return status;
        if (kept) kept->filled = true;
        *n_open = 0;
        for (ptrdiff_t b = 0; b < grid.blocks; ++b) {
            std::memmove(open + *n_open, open + grid.begin(b), left[b] * sizeof *open);
            *n_open += left[b];
            *changed += moved[b];
        }
        return Status::ok;
    }

    Status exact(const std::int32_t* list, ptrdiff_t n, ptrdiff_t* changed) const {
        if (n == 0) return Status::ok;
        const TileShape s = chosen_shape<T>();
        const ptrdiff_t panels = ceil_div(k, s.rows);
        const Grid grid(n, blocks_for(static_cast<double>(n) * k * X.d));
        const ptrdiff_t per_thread = aligned(s.cols * X.d + spill_size(s, X.d, panels));
        Scratch<T> packed(panels * s.rows * X.d), bias(panels * s.rows);
        Scratch<T> scratch(n_threads * per_thread);
        Scratch<ptrdiff_t> moved(grid.blocks);
        if (!packed || !bias || !scratch || !moved) return Status::no_memory;
        const auto pack = FML_PICK(pack_centers_panel<T>);
        Status status =
            parallel(panels, threads_for(passed_over * k * X.d, n_threads),
                     [&](ptrdiff_t i, int) { pack(centers, k, X.d, i, packed.get(), bias.get()); });
        if (status != Status::ok) return status;
        const Packed<T> against{packed.get(), bias.get(), panels, margin};
        const auto run = bounds.upper ? FML_PICK(label_rows_block<T, true>)
                                      : FML_PICK(label_rows_block<T, false>);
        status = parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int worker) {
            moved[b] = run(X, list, grid.begin(b), grid.end(b), against, bounds, labels,
                           scratch.get() + worker * per_thread);
        });
        for (ptrdiff_t b = 0; b < grid.blocks && status == Status::ok; ++b) *changed += moved[b];
        return status;
    }

    // Whether lower precision tells the labels of most rows of a sample.
    Status narrow_tells(const NarrowCenters& packed, const std::int32_t* list, ptrdiff_t n,
                        bool* tells, ptrdiff_t* changed) const {
        constexpr ptrdiff_t most = 480;
        const ptrdiff_t sampled = n / 16 < most ? ceil_div(n / 16, block_unit) * block_unit : most;
        std::int32_t sample[most];
        for (ptrdiff_t i = 0; i < sampled; ++i) {
            const ptrdiff_t r = i * (n / sampled);
            sample[i] = list ? list[r] : static_cast<std::int32_t>(r);
        }
        ptrdiff_t n_open = 0;
        const Status status = narrow(packed, sample, sampled, nullptr, sample, &n_open, changed);
        *tells = n_open < 2 * sampled / 5;
        return status;
    }
};

}  // namespace

template <class T> Margin<T> margin_of(const T* centers, ptrdiff_t k, ptrdiff_t d) noexcept {
    const double largest = FML_PICK(largest_square<T>)(centers, k, d);
    return {gamma<T>(d), static_cast<T>(std::sqrt(largest) * (1 + 1e-6)), T(0)};
}

ptrdiff_t kept_size(ptrdiff_t n, ptrdiff_t d, bool single, ptrdiff_t* stride) noexcept {
    constexpr ptrdiff_t most = 1 << 24;  // 64 MB: beyond, rows come from memory in either form
    *stride = ceil_div(n, block_unit) * block_unit;
    const ptrdiff_t size = *stride * ((has_bfloat16() ? (d + 1) / 2 : d) + 2);
    return (has_bfloat16() || !single) && size <= most ? size : 0;
}

template <class T>
Status label_rows(const Rows<T>& X, const std::int32_t* list, ptrdiff_t n, const T* centers,
                  ptrdiff_t k, const Bounds& bounds, std::int32_t* labels, std::int32_t* work,
                  KeptRows* kept, ptrdiff_t* changed, int n_threads) noexcept {
    const double work_size = static_cast<double>(n) * k * X.d;
    n_threads = threads_for(work_size, n_threads);
    const Labelling<T> labelling{
        X, centers, k, bounds, labels, n_threads, margin_of(centers, k, X.d)};
    *changed = 0;
    constexpr double least = 4.5e6;
    const bool worth = (has_bfloat16() || sizeof(T) > sizeof(float)) && n >= 768 &&
                       work_size >= least && X.d >= 12 && k >= 24 &&
                       in_range(labelling.margin.reach);
    if (!worth) return labelling.exact(list, n, changed);
    NarrowCenters packed(k, X.d);
    if (!packed) return Status::no_memory;
    Status status = packed.pack(centers, k, X.d, labelling.margin.reach, n_threads);
    if (status != Status::ok) return status;
    bool tells = true;
    status = labelling.narrow_tells(packed, list, n, &tells, changed);
    if (status != Status::ok) return status;
    if (!tells) return labelling.exact(list, n, changed);
    ptrdiff_t n_open = 0;
    if (list || (kept && !kept->words)) kept = nullptr;
    status = labelling.narrow(packed, list, n, kept, work, &n_open, changed);
    return status == Status::ok ? labelling.exact(work, n_open, changed) : status;
}

template <class T>
Status reach_rows(const Rows<T>& X, const T* centers, ptrdiff_t k, const KeptRows& kept,
                  float* near, int n_threads) noexcept {
    NarrowCenters packed(k, X.d);
    const Grid grid(X.n, blocks_for(static_cast<double>(X.n) * k * X.d));
    const ptrdiff_t per_thread = packed.scratch(X.d);
    Scratch<float> scratch(n_threads * per_thread);
    if (!packed || !scratch) return Status::no_memory;
    const Status status = packed.pack(centers, k, X.d, margin_of(centers, k, X.d).reach, n_threads);
    if (status != Status::ok) return status;
    const auto run = FML_PICK_NARROW(reach_narrow_block<T>);
    return parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int worker) {
        run(X, grid.begin(b), grid.end(b), packed.packed, kept.filled ? &kept : nullptr, near,
            scratch.get() + worker * per_thread);
    });
}

#define FML_INSTANTIATE(T)                                                                        \
    template Margin<T> margin_of(const T*, ptrdiff_t, ptrdiff_t) noexcept;                        \
    template Status label_rows(const Rows<T>&, const std::int32_t*, ptrdiff_t, const T*,          \
                               ptrdiff_t, const Bounds&, std::int32_t*, std::int32_t*, KeptRows*, \
                               ptrdiff_t*, int) noexcept;                                         \
    template Status reach_rows(const Rows<T>&, const T*, ptrdiff_t, const KeptRows&, float*,      \
                               int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
