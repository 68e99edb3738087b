// std headers come before any target region
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/isa.h"
#include "eigen/stages.h"

#define FML_KERNEL "eigen/copy.inl.h"
#include "common/foreach_isa.h"

namespace fastml {
namespace {

// What makes entries of size `most` neither overflow nor underflow when they are squared: a power of
// two, which rounds nothing; 1 for most matrices.
template <class T> T factor_for(T most) {
    constexpr int far = std::numeric_limits<T>::max_exponent / 16;
    int exponent;
    std::frexp(most, &exponent);
    if (most == 0 || (exponent < far && exponent > -far)) return 1;
    return std::ldexp(T(1), -std::clamp(exponent, std::numeric_limits<T>::min_exponent,
                                        std::numeric_limits<T>::max_exponent - 2));
}

}  // namespace

template <class T>
Status copy_half(const T* A, ptrdiff_t n, T* matrix, T* parts, T* factor, int n_threads) noexcept {
    const ptrdiff_t stride = row_stride(n);
    const int threads = threads_for(static_cast<double>(n) * n, n_threads);
    const auto copy = FML_PICK(copy_row<T>);
    Status status = parallel(work_rows(n), threads, [&](ptrdiff_t i, int) {
        T* row = matrix + i * stride;
        if (i < n)
            parts[i] = copy(A, n, i, stride, row);
        else
            std::fill_n(row, stride, T(0));
    });
    T most = 0;
    for (ptrdiff_t i = 0; i < n; ++i)
        if (!(parts[i] <= most)) most = most == most ? parts[i] : most;
    *factor = most == most ? factor_for(most) : most;
    if (status != Status::ok || most != most || *factor == 1) return status;
    return parallel(n, threads, [&](ptrdiff_t i, int) {
        T* row = matrix + i * stride;
        for (ptrdiff_t j = i / diagonal_block<T> * diagonal_block<T>; j < n; ++j) row[j] *= *factor;
    });
}

template Status copy_half(const float*, ptrdiff_t, float*, float*, float*, int) noexcept;
template Status copy_half(const double*, ptrdiff_t, double*, double*, double*, int) noexcept;

}  // namespace fastml
