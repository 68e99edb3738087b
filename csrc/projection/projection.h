#pragma once
#include <cstddef>

#include "common/pool.h"
#include "common/rows.h"

namespace fastml {

// The product of each row of X (n, d), dense in C order, and each row of S (m, d), in CSR with
// indices in any order: X S' in out (n, m), or, transposed, S X' in out (m, n), in C order.
// n, m, d >= 1. Products are added in T, in the order in which S stores entries, as SciPy adds
// them; the same bits for any n_threads.
template <class T>
Status project(const Rows<T>& X, const Rows<T>& S, bool transposed, T* out, int n_threads) noexcept;

// out (n, m) = X Y, dense in C order, X (n, d) and Y (d, m) in CSR, with indices in any order.
template <class T>
Status project_sparse(const Rows<T>& X, const Rows<T>& Y, T* out, int n_threads) noexcept;

}  // namespace fastml
