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

namespace fastml {
namespace {

// Where the two panels of a block of reflectors are, and which columns they are for.
struct Turn {
    ptrdiff_t first, begin, m, at;
    Turn(ptrdiff_t n, ptrdiff_t b)
        : first(b * turn_width), begin(first), m(ceil_div(n - begin, turn_width) * turn_width) {
        // Blocks before are longer by one width each.
        at = 0;
        for (ptrdiff_t c = 0; c < b; ++c)
            at += 2 * turn_width * ceil_div(n - c * turn_width, turn_width) * turn_width;
    }
};

}  // namespace

template <class T>
Status turn_back(T* A, const T* tau, ptrdiff_t n, const T* V, ptrdiff_t stride,
                 const ptrdiff_t* from, ptrdiff_t k, T* out, T* packed, int n_threads) noexcept {
    const ptrdiff_t ld = row_stride(n), blocks = ceil_div(n - 1, turn_width);
    n_threads = threads_for(2.0 * n * n * k, n_threads);
    // Of few rows threads have the same share only if strips are short; of many, long ones read
    // reflectors less often.
    const ptrdiff_t strip = k < 1024 ? strip_rows / 2 : strip_rows;
    constexpr ptrdiff_t square = turn_width * turn_width;
    Scratch<T> factors(n_threads * square), products(n_threads * strip_rows * turn_width);
    if (!factors || !products) return Status::no_memory;
    const auto factor = FML_PICK(block_factor<T>);
    const auto pack = FML_PICK(pack_reflectors<T>);
    const auto turn = FML_PICK(turn_strip<T>);
    const Status status = parallel(blocks, n_threads, [&](ptrdiff_t b, int worker) {
        const Turn at(n, b);
        T* rows = A + at.first * ld;
        const ptrdiff_t count = std::min(turn_width, n - 1 - at.first);
        for (ptrdiff_t p = 0; p < count; ++p) std::fill_n(rows + p * ld + at.begin, p + 1, T(0));
        T* own = factors.get() + worker * square;
        factor(rows, ld, count, tau + at.first, at.begin, at.begin + at.m, own);
        pack(rows, ld, count, own, at.begin, at.begin + at.m, packed + at.at,
             packed + at.at + turn_width * at.m);
    });
    if (status != Status::ok) return status;
    return parallel(ceil_div(k, strip), n_threads, [&](ptrdiff_t s, int worker) {
        const ptrdiff_t first = s * strip, rows = std::min(strip, k - first);
        for (ptrdiff_t r = first; r < first + rows; ++r)
            std::copy_n(V + from[r] * stride, n, out + r * n);
        for (ptrdiff_t b = blocks - 1; b >= 0; --b) {
            const Turn at(n, b);
            turn(out + first * n, rows, n, at.begin, at.m, packed + at.at,
                 packed + at.at + turn_width * at.m,
                 products.get() + worker * strip_rows * turn_width);
        }
    });
}

template Status turn_back(float*, const float*, ptrdiff_t, const float*, ptrdiff_t,
                          const ptrdiff_t*, ptrdiff_t, float*, float*, int) noexcept;
template Status turn_back(double*, const double*, ptrdiff_t, const double*, ptrdiff_t,
                          const ptrdiff_t*, ptrdiff_t, double*, double*, int) noexcept;

}  // namespace fastml
