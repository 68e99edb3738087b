#pragma once
#include <cstddef>

#include "common/pool.h"

namespace fastml {

// Columns that are multiplied at once: what fills a vector of the widest instruction set.
template <class T> constexpr std::ptrdiff_t symmetric_width = 64 / sizeof(T);

// out (n, symmetric_width<T>) = K V in C order, for symmetric K (n, n) in C order of which only what
// is on and below the diagonal is read, once, and V of the shape of out. Products are added in T
// within a block of rows, and in double between blocks; the same bits for any n_threads. n >= 1.
template <class T>
Status symmetric_times(const T* K, std::ptrdiff_t n, const T* V, T* out, int n_threads) noexcept;

// Of `count` blocks B (n, width) one behind the other in V, width = symmetric_width<T>: C = B' W in
// C (count, width, width), and W (n, width) less B C for all. The same bits for any n_threads.
template <class T>
Status project_out(const T* V, std::ptrdiff_t count, std::ptrdiff_t n, T* W, double* C,
                   int n_threads) noexcept;

}  // namespace fastml
