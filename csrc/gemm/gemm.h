#pragma once
#include <cstddef>

#include "common/pool.h"

namespace fastml {

// out (m, n) = A·Bᵀ + 1 biasᵀ of A (m, d) and B (n, d), all in C order; bias (n) or null for zeros;
// m, n, d >= 1. Each entry is summed in the order of d by one thread: the same bits for any n_threads.
// NaN and infinity propagate.
template <class T>
Status gemm(const T* A, const T* B, std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t d,
            const T* bias, T* out, int n_threads) noexcept;

}  // namespace fastml
