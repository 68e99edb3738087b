#include "sketch/sketch.h"

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

#define FML_KERNEL "sketch/sketch.inl.h"
#include "common/foreach_isa.h"
#include "common/tiling.h"

namespace fastml {

constexpr ptrdiff_t block = 2 * block_unit;  // rows of X that stay in L2 beside a panel of W

template <class T>
Status cosine_features(const T* X, const T* W, const T* offset, T scale, std::ptrdiff_t n,
                       std::ptrdiff_t m, std::ptrdiff_t d, T* out, int n_threads) noexcept {
    const TileShape s = chosen_shape<T>();
    const ptrdiff_t panels = ceil_div(m, s.cols);
    const ptrdiff_t per_thread = aligned(block * d + spill_size(s, d, block / s.rows));
    n_threads = threads_for(static_cast<double>(n) * m * (d + 8), n_threads);
    Scratch<T> packed(panels * s.cols * d), offsets(panels * s.cols),
        scratch(n_threads * per_thread);
    if (!packed || !offsets || !scratch) return Status::no_memory;
    std::copy_n(offset, m, offsets.get());
    std::fill(offsets.get() + m, offsets.get() + panels * s.cols, T(0));
    const auto pack = FML_PICK(pack_b<T>);
    const auto run = FML_PICK(features_block<T>);
    const Status status =
        parallel(panels, n_threads, [&](ptrdiff_t j, int) { pack(W, m, d, j, packed.get()); });
    if (status != Status::ok) return status;
    return parallel(ceil_div(n, block), n_threads, [&](ptrdiff_t b, int worker) {
        run(X + b * block * d, std::min(block, n - b * block), packed.get(), offsets.get(), scale,
            m, d, out + b * block * m, scratch.get() + worker * per_thread);
    });
}

template <class T>
Status cosines(const T* offset, T scale, std::ptrdiff_t n, std::ptrdiff_t m, T* out,
               int n_threads) noexcept {
    const auto run = FML_PICK(cosines_block<T>);
    n_threads = threads_for(passed_over * n * m, n_threads);
    return parallel(ceil_div(n, block), n_threads, [&](ptrdiff_t b, int) {
        run(offset, scale, std::min(block, n - b * block), m, out + b * block * m);
    });
}

template <class T>
Status chi2_features(const T* X, std::ptrdiff_t n, std::ptrdiff_t d, const T* factors,
                     std::ptrdiff_t steps, T interval, T* out, int n_threads) noexcept {
    constexpr ptrdiff_t strip = 1 << 12, most_lanes = 16;  // of any instruction set
    const ptrdiff_t strips = ceil_div(d, strip), rows = std::max<ptrdiff_t>(1, strip / d);
    const ptrdiff_t features = 2 * steps - 1, per_thread = aligned(features * most_lanes);
    n_threads = threads_for(passed_over * n * d * features, n_threads);
    Scratch<T> scratch(n_threads * per_thread);
    if (!scratch) return Status::no_memory;
    const auto run = FML_PICK(chi2_block<T>);
    return parallel(ceil_div(n, rows) * strips, n_threads, [&](ptrdiff_t b, int worker) {
        const ptrdiff_t first = b / strips * rows, p = b % strips * strip;
        for (ptrdiff_t i = first; i < std::min(n, first + rows); ++i)
            run(X + i * d + p, std::min(strip, d - p), factors, steps, interval,
                out + i * features * d + p, d, scratch.get() + worker * per_thread);
    });
}

#define FML_INSTANTIATE(T)                                                                  \
    template Status cosine_features(const T*, const T*, const T*, T, std::ptrdiff_t,        \
                                    std::ptrdiff_t, std::ptrdiff_t, T*, int) noexcept;      \
    template Status cosines(const T*, T, std::ptrdiff_t, std::ptrdiff_t, T*, int) noexcept; \
    template Status chi2_features(const T*, std::ptrdiff_t, std::ptrdiff_t, const T*,       \
                                  std::ptrdiff_t, T, T*, int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
