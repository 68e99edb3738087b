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
    const ptrdiff_t padded = aligned(n);
    constexpr ptrdiff_t square = turn_width * turn_width;
    n_threads = threads_for(2.0 * n * n * k, n_threads);
    const ptrdiff_t cols = chosen_shape<T>().cols, panels = ceil_div(k, cols);
    // Strips of at most strip_rows, as even as panels can be: two threads wait for each other.
    const ptrdiff_t tasks = n_threads * ceil_div(panels, n_threads * (strip_rows / cols));
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
    return parallel(tasks, n_threads, [&](ptrdiff_t t, int worker) {
        const ptrdiff_t first = panels * t / tasks, end = panels * (t + 1) / tasks;
        T* strip = strips.get() + worker * strip_rows * padded;
        const auto panel = [&](ptrdiff_t p) { return strip + (p - first) * cols * padded; };
        for (ptrdiff_t p = first; p < end; ++p) {
            const T* lines[strip_rows];
            const ptrdiff_t here = std::min(cols, k - p * cols);
            for (ptrdiff_t r = 0; r < here; ++r) lines[r] = V + from[p * cols + r] * stride;
            pack(lines, here, n, panel(p));
            std::fill_n(panel(p) + n * cols, (padded - n) * cols, T(0));
        }
        for (ptrdiff_t b = blocks - 1; b >= 0; --b)
            turn(strip, end - first, padded, b * turn_width, A + b * turn_width * (ld + 1), ld,
                 reflectors(b), factors.get() + b * square,
                 products.get() + worker * 2 * strip_rows * turn_width);
        for (ptrdiff_t p = first; p < end; ++p)
            unpack(panel(p), std::min(cols, k - p * cols), n, out + p * cols * n);
    });
}

template Status turn_back(float*, const float*, ptrdiff_t, const float*, ptrdiff_t,
                          const ptrdiff_t*, ptrdiff_t, float*, int) noexcept;
template Status turn_back(double*, const double*, ptrdiff_t, const double*, ptrdiff_t,
                          const ptrdiff_t*, ptrdiff_t, double*, int) noexcept;

}  // namespace fastml
