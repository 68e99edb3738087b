#pragma once
#include <cstddef>
#include <cstdint>

#include "common/pool.h"

namespace fastml {

// Products of a matrix X (n, d) with a narrow block of vectors, for iterations that do little else.
// V (d, k), U (n, k), Y (n, k) and Z (d, k) are in C order; n, d, k >= 1; outputs overlap nothing.
// Sums are in T over blocks of rows or columns that n, d and k alone determine, and in double across
// them: the same bits for any n_threads. NaN and infinity propagate.

// Entry (i, j) at data[i * row + j * column]; one of the two strides is 1, as in C or Fortran order.
// `mean` (d values, or null for none) is subtracted from every row, in T, as the entries are read.
template <class T> struct Dense {
    const T* data;
    std::ptrdiff_t n, d, row, column;
    const T* mean;
};

// Y = X V.
template <class T>
Status times(const Dense<T>& X, const T* V, std::ptrdiff_t k, T* Y, int n_threads) noexcept;

// Z = X' U.
template <class T>
Status transposed(const Dense<T>& X, const T* U, std::ptrdiff_t k, T* Z, int n_threads) noexcept;

// Z = X' (X V), reading X once, unless X has so few rows that sums of its blocks would take more
// room than an eighth of it.
template <class T>
Status gram(const Dense<T>& X, const T* V, std::ptrdiff_t k, T* Z, int n_threads) noexcept;

// CSR with indices in [0, d) in any order, duplicates added.
template <class T> struct Sparse {
    const T* data;
    const std::int32_t* indices;
    const std::int32_t* indptr;
    std::ptrdiff_t n, d;
};

// Y = X V - 1 less', `less` (k values, or null for none); with `add` it is added to Y.
template <class T>
Status times(const Sparse<T>& X, const T* V, std::ptrdiff_t k, const T* less, bool add, T* Y,
             int n_threads) noexcept;

// z = X' (X v - less) for one vector, reading X once.
template <class T>
Status gram(const Sparse<T>& X, const T* v, T less, T* z, int n_threads) noexcept;

// R upper triangular with R' R = G, symmetric (k, k), and its inverse, both with zeros below.
// Returns false, R and inverse being of no use, where a pivot is not above 0 (or is NaN).
bool factorise(const double* G, std::ptrdiff_t k, double* R, double* inverse) noexcept;

}  // namespace fastml
