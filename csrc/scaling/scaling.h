#pragma once
#include <cstddef>

#include "common/pool.h"

// Statistics of columns and what is done with them, each in one pass over memory. n, d >= 1
// everywhere, and results depend on the values alone: not on the layout, nor on the number of
// threads.
namespace fastml {

// X (n, d), borrowed. Entry (i, j) is data[i * stride + j], or with `by_columns` (Fortran order)
// data[j * stride + i]. Matrices to write to (`out`, of stride `out_stride`) have X's layout, and
// may be X.
template <class T> struct Matrix {
    const T* data;
    std::ptrdiff_t n, d, stride;
    bool by_columns;
};

// For each column the total weight of its values, their weighted mean and the weighted sum of
// squared deviations from it; NaN are left out. `w` (n values) may be null for ones. A column
// without a value has count 0 and mean 0. *infinite tells whether X holds an infinity; if so the
// rest is undefined.
template <class T>
Status moments(const Matrix<T>& X, const T* w, double* count, double* mean, double* square,
               bool* infinite, int n_threads) noexcept;

// Least and largest value of each column; NaN are left out. A column without a value has (inf,
// -inf). *infinite as above.
template <class T>
Status extremes(const Matrix<T>& X, T* least, T* largest, bool* infinite, int n_threads) noexcept;

enum class Norm : int { l1, l2, largest };

// out = the rows of X divided by their norms, which are written to `norm` too; rows whose norm is
// below `tiny` stay as they are, and their norm is given as 1. *finite tells whether
// all norms are: they are not where X holds NaN or infinity.
template <class T>
Status normalize(const Matrix<T>& X, Norm kind, T tiny, T* norm, T* out, std::ptrdiff_t out_stride,
                 bool* finite, int n_threads) noexcept;

enum class Form : int { standardize, stretch };

// For each column j, out = (X - shift[j]) / scale[j] (standardize) or X * scale[j] + shift[j]
// (stretch), each operation in P and rounded to T, then limited to [floor, ceiling]. NaN stay.
// *infinite tells whether X held an infinity.
template <class T, class P> struct Affine {
    using Value = T;
    Form form;
    const P *shift, *scale;  // d values each
    T floor, ceiling;        // -inf and inf for no limits
};
template <class T, class P>
Status apply(const Matrix<T>& X, const Affine<T, P>& f, T* out, std::ptrdiff_t out_stride,
             bool* infinite, int n_threads) noexcept;

// Order statistics of each column, NaN left out: of the values in ascending order, with c the
// number of those of column j, below[k, j] has the index floor(q[k] * (c - 1)) and above[k, j] the
// next one (or the last). q ascending, in [0, 1]. A column without a value has count 0 and NaN.
template <class T>
Status order_statistics(const Matrix<T>& X, const double* q, std::ptrdiff_t n_q, T* below, T* above,
                        std::ptrdiff_t* count, bool* infinite, int n_threads) noexcept;

}  // namespace fastml
