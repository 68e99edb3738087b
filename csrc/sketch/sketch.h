#pragma once
#include <cstddef>

#include "common/pool.h"

namespace fastml {

// out (n, m) = scale cos(X W' + offset), X (n, d), W (m, d), offset (m), all in C order;
// n, m, d >= 1. Errors are those of the sum in T, and about one unit in the last place of T at 1.
// NaN and infinity give NaN. The same bits for any n_threads.
template <class T>
Status cosine_features(const T* X, const T* W, const T* offset, T scale, std::ptrdiff_t n,
                       std::ptrdiff_t m, std::ptrdiff_t d, T* out, int n_threads) noexcept;

// The same where out holds X W' already.
template <class T>
Status cosines(const T* offset, T scale, std::ptrdiff_t n, std::ptrdiff_t m, T* out,
               int n_threads) noexcept;

}  // namespace fastml
