#pragma once
// The stages of an eigenproblem, and how its matrices lie.
#include <algorithm>

#include "common/blocks.h"
#include "common/pool.h"
#include "common/scratch.h"

namespace fastml {

// Blocks on the diagonal of a matrix that is known above it are there in full, aligned to a cache
// line: of so many rows and columns.
template <class T> constexpr ptrdiff_t diagonal_block = 64 / sizeof(T);
// Columns that Householder's method takes before it updates what is right of them.
template <class T> constexpr ptrdiff_t panel_columns = 4 * diagonal_block<T>;
// Reflectors that are applied at once.
constexpr ptrdiff_t turn_width = block_unit;
// Rows of results that are one task, and their factors stay in L2.
constexpr ptrdiff_t strip_rows = block_unit;

// Numbers below which eigenvalues are counted at once, and vectors that are turned at once where
// there are few.
template <class T> constexpr ptrdiff_t few_shifts = 128 / sizeof(T);
template <class T> constexpr ptrdiff_t few_columns = 64 / sizeof(T);
// Whether the k largest pairs of n are sooner found one by one than all values at once.
inline bool are_few(ptrdiff_t k, ptrdiff_t n) { return k > 0 && 12 * k <= n && k <= 96; }

// From one row of a work matrix to the next: room for whole tiles to the right of any panel, and not
// a power of two, or the rows' beginnings would share their places in the caches.
inline ptrdiff_t row_stride(ptrdiff_t n) {
    const ptrdiff_t stride = ceil_div(n + 64, 16) * 16;
    return stride % 256 ? stride : stride + 16;
}
// Rows of a work matrix: blocks on the diagonal are whole, and a few rows more are read.
inline ptrdiff_t work_rows(ptrdiff_t n) { return ceil_div(n, 16) * 16 + 16; }

// The half of A (n, n), C order, that is read, as the work matrix of `reduce`, times a power of two
// that keeps squares from overflow: `factor`. That is NaN, and nothing else is there, where an entry
// is NaN or infinite. parts: n values of scratch.
template <class T>
Status copy_half(const T* A, ptrdiff_t n, T* matrix, T* parts, T* factor, int n_threads) noexcept;

// T = Q' A Q with diagonal d (n) and off-diagonal e (n - 1), for A (work_rows, row_stride), zero
// outside of n x n, known on and above the diagonal and in the diagonal's blocks. Reflector j is
// I - tau[j] v v', where v begins with zeros up to j; it is left in row j of A to the right of the
// diagonal, its leading 1 as well. Q is the product of all.
template <class T>
Status reduce(T* A, ptrdiff_t n, T* d, T* e, T* tau, int n_threads) noexcept;

// A panel's `count` reflectors V and their partners W, rows of which the matrix lacks V'W + W'V, and
// weights: of V and W in the product with the newest reflector, and in the next row.
template <class T> struct Panel {
    const T *V, *W;
    std::ptrdiff_t ld, count;
    const T *of_v, *of_w, *next_v, *next_w;
};

// Eigenvalues d (n), in ascending order by `order`: the r-th is d[order[r]], and its vector row
// order[r] of Q (n, stride). d, e: of the tridiagonal matrix, and e is lost. `packed`:
// packed_size(n) values of scratch. Vectors of the `wanted` largest alone are right.
template <class T>
Status divide(T* d, T* e, ptrdiff_t n, ptrdiff_t wanted, T* Q, ptrdiff_t stride, ptrdiff_t* order,
              T* packed, int n_threads) noexcept;

inline ptrdiff_t packed_size(ptrdiff_t n) { return n * (n / 2 + 2 * block_unit); }

// The k largest eigenvalues of the same, in descending order, by bisection, and their vectors, the
// first rows of V (stride), by inverse iteration. `found`: whether they are as exact as those of
// `divide`, which solves what this does not.
template <class T>
Status leading(const T* d, const T* e, ptrdiff_t n, ptrdiff_t k, T* values, T* V, ptrdiff_t stride,
               bool* found) noexcept;

// As turn_back does with the first k rows of V, few of them, one reflector after the other.
template <class T, class U>
Status turn_few(const T* A, const T* tau, ptrdiff_t n, const T* V, ptrdiff_t stride, ptrdiff_t k,
                U* out, int n_threads) noexcept;

// out (k, n): row r is row from[r] of V (stride), times Q' of `reduce`, which left reflectors in A.
// A's lower triangle is cleared. Where `from` leaves rows in their places, out may be V.
template <class T>
Status turn_back(T* A, const T* tau, ptrdiff_t n, const T* V, ptrdiff_t stride,
                 const ptrdiff_t* from, ptrdiff_t k, T* out, int n_threads) noexcept;

}  // namespace fastml
