#pragma once
#include <cstddef>

#include "common/pool.h"

namespace fastml {

// Writes, on and above the diagonal of A (n, n; C order), S (K + constant) S + shift: K is the
// symmetric matrix of what is below the diagonal of A, and of `diagonal` (n); S is diagonal and
// its entries are `scale` (n). What is below stays.
template <class T>
Status scaled_mirror(T* A, std::ptrdiff_t n, const T* diagonal, const T* scale, T constant, T shift,
                     int n_threads) noexcept;

}  // namespace fastml
