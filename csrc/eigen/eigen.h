#pragma once
#include <cstddef>

#include "common/pool.h"

namespace fastml {

// Rows that `work` of symmetric_eigen is long for n: see there.
std::ptrdiff_t eigen_work(std::ptrdiff_t n) noexcept;

// Eigenvalues of a symmetric A (n, n), in C order and of which what is on and above the diagonal is
// read, all of them in descending order, and vectors of the k largest as the rows of `vectors`
// (k, n), 0 <= k <= n, n >= 1. `work`: eigen_work(n) values of scratch.
//
// Householder's tridiagonal form, then divide and conquer (Gu and Eisenstat, SIAM J. Matrix Anal.
// Appl. 16, 1995), whose vectors are turned back. Errors are of LAPACK's order: eps |A| n in values
// and residuals, eps n in orthogonality. Entries may be of any size. Where one is NaN or infinite
// all results are NaN. The same bits for any n_threads.
template <class T>
Status symmetric_eigen(const T* A, std::ptrdiff_t n, std::ptrdiff_t k, T* values, T* vectors,
                       T* work, int n_threads) noexcept;

}  // namespace fastml
