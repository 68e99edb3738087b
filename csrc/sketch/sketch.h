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

// out (n, 2 steps - 1, d) from X (n, d), x >= 0: for each entry factors[0] x^(1/2), and for each j in
// [1, steps) factors[j] x^(1/2) cos(j interval log x) and the same with the sine; 0 of 0. Each is
// within a few units in the last place of what the library's functions give.
template <class T>
Status chi2_features(const T* X, std::ptrdiff_t n, std::ptrdiff_t d, const T* factors,
                     std::ptrdiff_t steps, T interval, T* out, int n_threads) noexcept;

}  // namespace fastml
