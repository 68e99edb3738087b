// std headers come before any target region
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/isa.h"
#include "eigen/stages.h"

#define FML_KERNEL "eigen/turn.inl.h"
#include "common/foreach_isa.h"
#include "common/tiling.h"

namespace fastml {

template <class T>
Status turn_back(T* A, const T* tau, ptrdiff_t n, const T* V, ptrdiff_t stride,
                 const ptrdiff_t* from, ptrdiff_t k, T* out, int n_threads) noexcept {
    const ptrdiff_t ld = row_stride(n), blocks = ceil_div(n - 1, turn_width);
    const ptrdiff_t padded = ceil_div(n, turn_width) * turn_width;
    constexpr ptrdiff_t square = turn_width * turn_width;
    n_threads = threads_for(2.0 * n * n * k, n_threads);
    Scratch<T> factors(blocks * square), columns(n_threads * square);
    Scratch<T> strips(n_threads * strip_rows * padded);
    Scratch<T> products(n_threads * 2 * strip_rows * turn_width);
    if (!factors || !columns || !strips || !products) return Status::no_memory;
    const auto factor = FML_PICK(block_factor<T>);
    const auto pack = FML_PICK(pack_turned<T>);
    const auto unpack = FML_PICK(unpack_turned<T>);
    const auto turn = FML_PICK(turn_panels<T>);
    const auto reflectors = [&](ptrdiff_t b) {
        return std::min(turn_width, n - 1 - b * turn_width);
    };
    const Status status = parallel(blocks, n_threads, [&](ptrdiff_t b, int worker) {
        const ptrdiff_t first = b * turn_width;
        T* rows = A + first * ld;
        for (ptrdiff_t p = 0; p < reflectors(b); ++p)
            std::fill_n(rows + p * ld + first, p + 1, T(0));
        factor(rows, ld, reflectors(b), tau + first, first, padded, columns.get() + worker * square,
               factors.get() + b * square);
    });
    if (status != Status::ok) return status;
    const ptrdiff_t cols = chosen_shape<T>().cols;
    return parallel(ceil_div(k, strip_rows), n_threads, [&](ptrdiff_t s, int worker) {
        const ptrdiff_t begin = s * strip_rows, rows = std::min(strip_rows, k - begin);
        const ptrdiff_t panels = ceil_div(rows, cols);
        T* strip = strips.get() + worker * strip_rows * padded;
        for (ptrdiff_t p = 0; p < panels; ++p) {
            const T* lines[strip_rows];
            const ptrdiff_t here = std::min(cols, rows - p * cols);
            for (ptrdiff_t r = 0; r < here; ++r) lines[r] = V + from[begin + p * cols + r] * stride;
            T* panel = strip + p * cols * padded;
            pack(lines, here, n, panel);
            std::fill_n(panel + n * cols, (padded - n) * cols, T(0));
        }
        for (ptrdiff_t b = blocks - 1; b >= 0; --b)
            turn(strip, panels, padded, b * turn_width, A + b * turn_width * (ld + 1), ld,
                 reflectors(b), factors.get() + b * square,
                 products.get() + worker * 2 * strip_rows * turn_width);
        for (ptrdiff_t p = 0; p < panels; ++p)
            unpack(strip + p * cols * padded, std::min(cols, rows - p * cols), n,
                   out + (begin + p * cols) * n);
    });
}

template Status turn_back(float*, const float*, ptrdiff_t, const float*, ptrdiff_t,
                          const ptrdiff_t*, ptrdiff_t, float*, int) noexcept;
template Status turn_back(double*, const double*, ptrdiff_t, const double*, ptrdiff_t,
                          const ptrdiff_t*, ptrdiff_t, double*, int) noexcept;

}  // namespace fastml
