#pragma once
#include <cstddef>
#include <cstdint>

#include "common/pool.h"
#include "common/rows.h"

// C = X Y' for sparse X (n, d) and Y' (d, m), all in CSR, row by row (Gustavson, 1978). Entries
// are added in double, in the order of X's row; columns come in no order, and none twice.
namespace fastml {

// starts (n + 1): where the rows of C begin.
template <class T>
Status product_sizes(const Rows<T>& X, const Rows<T>& Yt, std::int64_t* starts,
                     int n_threads) noexcept;

// indices and data (starts[n] each) of C.
template <class T>
Status product_entries(const Rows<T>& X, const Rows<T>& Yt, const std::int64_t* starts,
                       std::int32_t* indices, T* data, int n_threads) noexcept;

}  // namespace fastml
