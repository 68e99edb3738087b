#include "rows/least.h"

// std headers come before any target region
#include <cmath>
#include <limits>

#include "common/isa.h"

#define FML_KERNEL "rows/least.inl.h"
#include "common/foreach_isa.h"

namespace fastml {

template <class T>
T least(const T* x, ptrdiff_t n, ptrdiff_t d, ptrdiff_t rows_apart,
        ptrdiff_t columns_apart) noexcept {
    const auto of = FML_PICK(least_of<T>);
    T found = std::numeric_limits<T>::max();
    ptrdiff_t others = 0;
    if (columns_apart == 1 && rows_apart == d) d *= n, n = 1;
    for (ptrdiff_t i = 0; i < n; ++i)
        found = std::fmin(found, of(x + i * rows_apart, d, columns_apart, others));
    return others ? std::numeric_limits<T>::quiet_NaN() : found;
}

template float least(const float*, ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t) noexcept;
template double least(const double*, ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t) noexcept;

}  // namespace fastml
