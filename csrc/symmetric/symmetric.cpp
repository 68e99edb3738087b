#include "symmetric/symmetric.h"

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

#define FML_KERNEL "symmetric/symmetric.inl.h"
#include "common/foreach_isa.h"

namespace fastml {

// Each block of rows has sums of its own: for few rows, few blocks. Multiples of 8 rows.
constexpr ptrdiff_t most_blocks = 16, least_rows = 256;

template <class T>
Status symmetric_times(const T* K, std::ptrdiff_t n, const T* V, T* out, int n_threads) noexcept {
    const ptrdiff_t size = n * symmetric_width<T>;
    const ptrdiff_t blocks = std::min(most_blocks, ceil_div(n, least_rows));
    n_threads = threads_for(static_cast<double>(n) * size, n_threads);
    Scratch<T> parts(blocks * size);
    if (!parts) return Status::no_memory;
    const auto run = FML_PICK(symmetric_block<T>);
    // Rows up to b of B hold b² of B² parts of the triangle.
    const auto first = [&](ptrdiff_t b) {
        const double share = std::sqrt(static_cast<double>(b) / blocks);
        return b == blocks ? n : static_cast<ptrdiff_t>(share * n) / 8 * 8;
    };
    const Status status = parallel(blocks, n_threads, [&](ptrdiff_t b, int) {
        T* sums = parts.get() + b * size;
        std::fill_n(sums, first(b + 1) * symmetric_width<T>, T(0));
        run(K, n, first(b), first(b + 1), V, sums);
    });
    if (status != Status::ok) return status;
    constexpr ptrdiff_t strip = 256;  // rows
    return parallel(ceil_div(n, strip), n_threads, [&](ptrdiff_t s, int) {
        const ptrdiff_t end = std::min(n, (s + 1) * strip);
        for (ptrdiff_t i = s * strip; i < end; ++i) {
            double sum[symmetric_width<T>] = {};
            for (ptrdiff_t b = blocks - 1; b >= 0 && first(b + 1) > i; --b)
                for (ptrdiff_t c = 0; c < symmetric_width<T>; ++c)
                    sum[c] += parts[b * size + i * symmetric_width<T> + c];
            for (ptrdiff_t c = 0; c < symmetric_width<T>; ++c)
                out[i * symmetric_width<T> + c] = static_cast<T>(sum[c]);
        }
    });
}

template <class T>
Status project_out(const T* V, std::ptrdiff_t count, std::ptrdiff_t n, T* W, double* C,
                   int n_threads) noexcept {
    constexpr ptrdiff_t width = symmetric_width<T>, square = width * width, strip = 512;  // rows
    const ptrdiff_t strips = ceil_div(n, strip);
    n_threads = threads_for(2.0 * count * n * square, n_threads);
    Scratch<double> parts(strips * count * square);
    if (!parts) return Status::no_memory;
    const auto dot = FML_PICK(strands_dot_block<T>);
    const auto less = FML_PICK(strands_less_block<T>);
    const auto over_strips = [&](const auto& body) {
        return parallel(strips, n_threads, [&](ptrdiff_t s, int) {
            const ptrdiff_t i = s * strip, rows = std::min(strip, n - i);
            for (ptrdiff_t b = 0; b < count; ++b)
                body(V + (b * n + i) * width, W + i * width, rows, s, b);
        });
    };
    const Status status =
        over_strips([&](const T* B, const T* w, ptrdiff_t rows, ptrdiff_t s, ptrdiff_t b) {
            dot(B, w, rows, parts.get() + (s * count + b) * square);
        });
    if (status != Status::ok) return status;
    add_parts(parts.get(), strips, count * square, C);
    return over_strips([&](const T* B, T* w, ptrdiff_t rows, ptrdiff_t, ptrdiff_t b) {
        less(B, C + b * square, rows, w);
    });
}

#define FML_INSTANTIATE(T)                                                                 \
    template Status symmetric_times(const T*, std::ptrdiff_t, const T*, T*, int) noexcept; \
    template Status project_out(const T*, std::ptrdiff_t, std::ptrdiff_t, T*, double*,     \
                                int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
