#pragma once
#include <cstddef>
#include <cstdint>

#include "common/pool.h"

// Distances of rows of bits, of which both, one or neither may be set. 0 / 0 is NaN as in SciPy,
// but 0 for jaccard and yule.
namespace fastml {

enum class Agreement : int { dice, jaccard, rogerstanimoto, russellrao, sokalsneath, yule };

// out (n, m) from X (n, words) and Y (m, words), n, m, words >= 1, of which `bits` bits of a row
// count; the others are 0. Counts are exact, and results are SciPy's to the last bit.
Status boolean_distances(const std::uint64_t* X, std::ptrdiff_t n, const std::uint64_t* Y,
                         std::ptrdiff_t m, std::ptrdiff_t words, std::ptrdiff_t bits,
                         Agreement agreement, double* out, int n_threads) noexcept;

}  // namespace fastml
