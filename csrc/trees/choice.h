#pragma once
// Choosing rows by their probabilities, as numpy.random.RandomState.choice does.
#include <cstddef>
#include <cstdint>

#include "common/pool.h"

namespace fastml {

// out (m) = how many of cdf (n), which ascends to 1, are at most each of u (m), in [0, 1).
Status invert_cdf(const double* cdf, std::ptrdiff_t n, const double* u, std::ptrdiff_t m,
                  std::int64_t* out) noexcept;

}  // namespace fastml
