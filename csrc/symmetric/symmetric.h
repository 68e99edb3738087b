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

// The same for J K J, J = 1 - 11'/n; means (n): those of K's columns, so that of a mean large beside
// what is left but rounding is subtracted at once.
template <class T>
Status centred_times(const T* K, std::ptrdiff_t n, const T* means, const T* V, T* out,
                     int n_threads) noexcept;

// K (n, n), C order, less `columns` (n) and `rows` (n), the means of its columns and of its rows, plus
// `every`, the mean of all: J K J, in the memory of K and scikit-learn's order.
template <class T>
Status centre(T* K, std::ptrdiff_t n, const T* columns, const T* rows, T every,
              int n_threads) noexcept;

// What follows is of vectors in strands: blocks (n, width), width = symmetric_width<T>, one behind
// the other. Sums over rows are in T within a strip of rows, and in double between strips; the same
// bits for any n_threads.

// Of V's `count` strands B: C = B' W in C (count, width, width), and W (n, width) less B C for all.
template <class T>
Status project_out(const T* V, std::ptrdiff_t count, std::ptrdiff_t n, T* W, double* C,
                   int n_threads) noexcept;

// W (s, n, width), which has no part but rounding in the orthonormal V (count, n, width), becomes Q
// with W = Q R, orthonormal and orthogonal to V; R (s * width, s * width), upper triangular. By
// Cholesky's factors of W'W, twice. Or W stays as it is, and `independent` says that its columns
// are too near to dependent ones for that.
template <class T>
Status orthonormalise(const T* V, std::ptrdiff_t count, std::ptrdiff_t n, T* W, std::ptrdiff_t s,
                      double* R, bool* independent, int n_threads) noexcept;

// out (s, n, width) = the vectors in V's `count` strands times S (count * width, s * width).
template <class T>
Status combine(const T* V, std::ptrdiff_t count, std::ptrdiff_t n, const double* S,
               std::ptrdiff_t s, T* out, int n_threads) noexcept;

}  // namespace fastml
