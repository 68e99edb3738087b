#pragma once
#include <cstddef>
#include <cstdint>

#include "common/pool.h"

// Neighbours from distances that are there already.
namespace fastml {

// values and columns (rows, k) = the k smallest entries of each row of `table` (rows, n), by
// (value, column), NaN last. With skipped >= 0 entry (i, skipped + i) is dropped from the k + 1
// smallest, the first of them if it is not there. k <= n, less 1 if one is skipped.
template <class T>
Status smallest(const T* table, std::ptrdiff_t rows, std::ptrdiff_t n, std::ptrdiff_t skipped,
                std::ptrdiff_t k, T* values, std::int64_t* columns, int n_threads) noexcept;

}  // namespace fastml
