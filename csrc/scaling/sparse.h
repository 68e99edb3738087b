#pragma once
#include <cstddef>
#include <cstdint>

#include "scaling/scaling.h"

// What scaling.h does, for sparse matrices: what is not stored is zero. Indices may be in any
// order; entries that are stored twice count as two values.
namespace fastml {

// `lines` rows (CSR) or columns (CSC), across them indices in [0, across).
template <class I> struct Sparsity {
    const I *indices, *indptr;
    std::ptrdiff_t lines, across;
    bool by_columns;  // CSC
    std::ptrdiff_t n() const { return by_columns ? across : lines; }
    std::ptrdiff_t d() const { return by_columns ? lines : across; }
};

// As for dense matrices.
template <class T, class I>
Status moments(const T* data, const Sparsity<I>& X, const T* w, double* count, double* mean,
               double* square, bool* infinite, int n_threads) noexcept;

// The largest |x| of each column and how many NaN it has; those are left out.
template <class T, class I>
Status largest(const T* data, const Sparsity<I>& X, T* largest, double* missing,
               int n_threads) noexcept;

// out = data, each value times the scale of its column, limited to [floor, ceiling].
template <class T, class I>
Status scale_columns(const T* data, const Sparsity<I>& X, const double* scale, T floor, T ceiling,
                     T* out, bool* infinite, int n_threads) noexcept;

// out = data, each line divided by its norm, which is written to `norm`; lines of norm 0 stay.
// Norms are added up in double, value by value.
template <class T, class I>
Status normalize_lines(const T* data, const Sparsity<I>& X, Norm kind, T* norm, T* out,
                       bool* finite, int n_threads) noexcept;

// As for dense matrices; CSC only.
template <class T, class I>
Status order_statistics(const T* data, const Sparsity<I>& X, const double* q, std::ptrdiff_t n_q,
                        T* below, T* above, std::ptrdiff_t* count, int n_threads) noexcept;

}  // namespace fastml
