#include "eigen/eigen.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "common/scratch.h"
#include "eigen/stages.h"

namespace fastml {
namespace {

// What makes entries of size `most` neither overflow nor underflow when they are squared: a power of
// two, which rounds nothing; 1 for most matrices.
template <class T> T factor_for(T most) {
    constexpr int far = std::numeric_limits<T>::max_exponent / 4;
    int exponent;
    std::frexp(most, &exponent);
    if (most == 0 || (exponent < far && exponent > -far)) return 1;
    return std::ldexp(T(1), -std::clamp(exponent, std::numeric_limits<T>::min_exponent,
                                        std::numeric_limits<T>::max_exponent - 2));
}

// The greatest entry in size on and above the diagonal; NaN if there is one.
template <class T>
Status greatest(const T* A, ptrdiff_t n, T* parts, T* most, int n_threads) {
    const Status status = parallel(n, n_threads, [&](ptrdiff_t i, int) {
        T found = 0, wrong = 0;
#pragma omp simd reduction(max : found) reduction(+ : wrong)
        for (ptrdiff_t j = i; j < n; ++j) {
            found = std::max(found, std::abs(A[i * n + j]));
            wrong += A[i * n + j] * 0;  // NaN for NaN and infinity
        }
        parts[i] = wrong == 0 ? found : std::numeric_limits<T>::quiet_NaN();
    });
    *most = 0;
    for (ptrdiff_t i = 0; i < n; ++i)
        if (!(parts[i] <= *most)) *most = *most == *most ? parts[i] : *most;
    return status;
}

}  // namespace

std::ptrdiff_t eigen_work(std::ptrdiff_t n) noexcept {
    const ptrdiff_t stride = row_stride(n);
    return stride * stride + n * stride + std::max(packed_size(n), turned_size(n)) + 48;
}

template <class T>
Status symmetric_eigen(const T* A, ptrdiff_t n, ptrdiff_t k, T* values, T* vectors, T* work,
                       int n_threads) noexcept {
    const ptrdiff_t stride = row_stride(n);
    // On a cache line, wherever the caller's memory begins.
    T* matrix =
        reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(work) + 63) & ~std::uintptr_t{63});
    T *Q = matrix + stride * stride, *packed = Q + n * stride;
    Scratch<T> lines(3 * n);
    Scratch<ptrdiff_t> order(2 * n);
    if (!lines || !order) return Status::no_memory;
    T *d = lines.get(), *e = d + n, *tau = e + n, most;
    const int threads = threads_for(static_cast<double>(n) * n, n_threads);
    Status status = greatest(A, n, d, &most, threads);
    if (status != Status::ok) return status;
    if (most != most) {
        std::fill_n(values, n, most);
        std::fill_n(vectors, k * n, most);
        return Status::ok;
    }
    const T factor = factor_for(most);
    status = parallel(stride, threads, [&](ptrdiff_t i, int) {
        T* row = matrix + i * stride;
        std::fill_n(row, stride, T(0));
        if (i >= n) return;
        const ptrdiff_t block = i / diagonal_block<T> * diagonal_block<T>;
        for (ptrdiff_t j = block; j < i; ++j) row[j] = A[j * n + i] * factor;
        for (ptrdiff_t j = i; j < n; ++j) row[j] = A[i * n + j] * factor;
    });
    if (status == Status::ok) status = reduce(matrix, n, d, e, tau, n_threads);
    if (status == Status::ok)
        status = divide(d, e, n, k, Q, stride, order.get(), packed, n_threads);
    if (status != Status::ok) return status;
    for (ptrdiff_t r = 0; r < n; ++r) {
        order[n + r] = order[n - 1 - r];
        values[r] = d[order[n - 1 - r]] / factor;
    }
    return turn_back(matrix, tau, n, Q, stride, order.get() + n, k, vectors, packed, n_threads);
}

template Status symmetric_eigen(const float*, ptrdiff_t, ptrdiff_t, float*, float*, float*,
                                int) noexcept;
template Status symmetric_eigen(const double*, ptrdiff_t, ptrdiff_t, double*, double*, double*,
                                int) noexcept;

}  // namespace fastml
