#include "cholesky/cholesky.h"

#include <algorithm>

#include "common/blocks.h"

namespace fastml {
namespace {

// Square blocks, read by rows and written by rows: what lies between stays in L1.
constexpr ptrdiff_t side = 32;

template <class T>
void mirror_block(T* A, ptrdiff_t n, ptrdiff_t i0, ptrdiff_t j0, const T* scale, T constant) {
    const ptrdiff_t i1 = std::min(n, i0 + side), j1 = std::min(n, j0 + side);
    T block[side][side];
    for (ptrdiff_t j = j0; j < j1; ++j)
        for (ptrdiff_t i = i0; i < std::min(i1, j); ++i) block[i - i0][j - j0] = A[j * n + i];
    for (ptrdiff_t i = i0; i < i1; ++i)
        for (ptrdiff_t j = std::max(j0, i + 1); j < j1; ++j)
            A[i * n + j] = scale[i] * scale[j] * (block[i - i0][j - j0] + constant);
}

}  // namespace

template <class T>
Status scaled_mirror(T* A, std::ptrdiff_t n, const T* diagonal, const T* scale, T constant, T shift,
                     int n_threads) noexcept {
    n_threads = threads_for(static_cast<double>(n) * n, n_threads);
    return parallel(ceil_div(n, side), n_threads, [&](ptrdiff_t b, int) {
        const ptrdiff_t i0 = b * side;
        for (ptrdiff_t j0 = i0; j0 < n; j0 += side) mirror_block(A, n, i0, j0, scale, constant);
        for (ptrdiff_t i = i0; i < std::min(n, i0 + side); ++i)
            A[i * n + i] = scale[i] * scale[i] * (diagonal[i] + constant) + shift;
    });
}

template Status scaled_mirror(float*, std::ptrdiff_t, const float*, const float*, float, float,
                              int) noexcept;
template Status scaled_mirror(double*, std::ptrdiff_t, const double*, const double*, double, double,
                              int) noexcept;

}  // namespace fastml
