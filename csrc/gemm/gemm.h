#pragma once
#include <cstddef>

#include "common/pool.h"

namespace fastml {

// out (m, n) = A (m, d) · B (n, d)ᵀ, all in C order; m, n, d >= 1. Each entry is summed in the
// order of d by one thread: the same bits for any n_threads. NaN and infinity propagate.
template <class T>
Status gemm(const T* A, const T* B, std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t d, T* out,
            int n_threads) noexcept;

}  // namespace fastml
