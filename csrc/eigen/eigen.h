#pragma once
#include <cstddef>

#include "common/pool.h"

namespace fastml {

// Symmetric eigenproblems in two steps: Householder's tridiagonal form, then divide and conquer (Gu
// and Eisenstat, SIAM J. Matrix Anal. Appl. 16, 1995), whose vectors are turned back. Errors are of
// LAPACK's order: eps |A| n in values and residuals, eps n in orthogonality. Entries may be of any
// size. Where one is NaN or infinite all results are. The same bits for any n_threads.

// Values of `work`, which is where the first step leaves what the second needs.
std::ptrdiff_t eigen_work(std::ptrdiff_t n) noexcept;

// The tridiagonal form of a symmetric A (n, n), in C order and of which what is on and above the
// diagonal is read; n >= 1.
template <class T>
Status tridiagonal_form(const T* A, std::ptrdiff_t n, T* work, int n_threads) noexcept;

// How many eigenvalues are below `part` times the greatest; 0 if that is not positive.
template <class T> std::ptrdiff_t count_below(T part, std::ptrdiff_t n, const T* work) noexcept;

// All eigenvalues in descending order, and vectors of the k largest as the rows of `vectors` (k, n),
// 0 <= k <= n. As often as wanted. Vectors may be float where the rest is double: then they are turned
// back in single precision, which takes half of the time and rounds them no worse than float vectors.
template <class T, class U>
Status eigenpairs(std::ptrdiff_t n, std::ptrdiff_t k, T* values, U* vectors, T* work,
                  int n_threads) noexcept;

// The same without the other values (k): a few of many are found one by one (bisection, inverse
// iteration), the others by `eigenpairs`.
template <class T, class U>
Status leading_pairs(std::ptrdiff_t n, std::ptrdiff_t k, T* values, U* vectors, T* work,
                     int n_threads) noexcept;

// The same of A itself, as tridiagonal_form reads it, by Lanczos' method from two vectors at once,
// until residuals are tol times the largest value, or rounding where tol is 0. `found`: whether it has
// come to that in few products, and values that coincide leave no doubt about how often each is
// there; if not, nothing else is. 1 <= k <= n.
template <class T>
Status few_pairs(const T* A, std::ptrdiff_t n, std::ptrdiff_t k, T tol, T* values, T* vectors,
                 bool* found, int n_threads) noexcept;

}  // namespace fastml
