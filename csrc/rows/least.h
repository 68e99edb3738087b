#pragma once
#include <cstddef>

namespace fastml {

// The least of n x d values whose rows and columns lie so far apart, or NaN if one is not finite.
template <class T>
T least(const T* x, std::ptrdiff_t n, std::ptrdiff_t d, std::ptrdiff_t rows_apart,
        std::ptrdiff_t columns_apart) noexcept;

}  // namespace fastml
