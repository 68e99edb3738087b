#pragma once
#include <cstddef>
#include <cstdint>

#include "common/pool.h"

namespace fastml {

// X (n, d): rows in one piece `stride` apart, or with by_columns columns.
template <class T> struct Sample {
    const T* data;
    std::ptrdiff_t n, d, stride;
    bool by_columns;
};

// out = (X - 1 shiftᵀ)ᵀ(X - 1 shiftᵀ), (d, d), and sums (d) those of the columns of X - 1 shiftᵀ; or
// with of_rows (X - 1 shiftᵀ)(X - 1 shiftᵀ)ᵀ, (n, n), and sums (n) those of its rows. shift (d) is
// near the mean of X, from which no square is then subtracted that is larger than what is left.
//
// X is read once and never copied. It is computed in P, which is T or wider; sums of no more than
// 2048 / sizeof(P) products are then added in double. out is symmetric. NaN and infinity propagate
// to the diagonal. n, d >= 1.
template <class P, class T>
Status products(const Sample<T>& X, const P* shift, bool of_rows, double* sums, double* out,
                int n_threads) noexcept;

// The columns [0, d) and the rows [0, n) of one matrix with nnz stored values: CSC and CSR, with
// indices in any order, duplicates added.
template <class T> struct Stored {
    const T *column_data, *row_data;
    const std::int32_t *column_indices, *column_indptr, *row_indices, *row_indptr;
    std::ptrdiff_t n, d;
};

// out (d, d) = XᵀX, summed in double in the order in which the columns of X hold their rows.
template <class T>
Status sparse_products(const Stored<T>& X, double* out, int n_threads) noexcept;

}  // namespace fastml
