#pragma once
#include <cstddef>

#include "common/pool.h"
#include "common/rows.h"

namespace fastml {

// X (n, d): rows in one piece `stride` apart, or with by_columns columns.
template <class T> struct Sample {
    const T* data;
    std::ptrdiff_t n, d, stride;
    bool by_columns;
};

// out = (X - 1 shiftᵀ)ᵀ(X - 1 shiftᵀ), (d, d), and sums (d) those of the columns of X - 1 shiftᵀ; or
// with of_rows (X - 1 shiftᵀ)(X - 1 shiftᵀ)ᵀ, (n, n), and sums (n) those of its rows. shift (d) is
// near the mean of X, from which no square is then subtracted that is larger than what is left: it
// is with `centred`, which of columns takes the outer product of sums, by their number, from out.
//
// X is read once and never copied. It is computed in P, which is T or wider; sums of no more than
// 2048 / sizeof(P) products are then added in double. out is symmetric. NaN and infinity propagate
// to the diagonal. n, d >= 1.
template <class P, class T>
Status products(const Sample<T>& X, const P* shift, bool of_rows, bool centred, double* sums,
                double* out, int n_threads) noexcept;

// out (d, d) = XᵀX of the CSR matrix X, summed in double in the order of its rows.
template <class T>
Status sparse_products(const Rows<T>& X, double* out, int n_threads) noexcept;

}  // namespace fastml
