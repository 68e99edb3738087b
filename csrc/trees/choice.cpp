#include "trees/choice.h"

#include "common/scratch.h"

namespace fastml {

using std::ptrdiff_t;

// A bisection waits for memory at each of its steps. Here a table tells, for n parts of [0, 1), where
// each begins in the cdf; of all the steps from there on, however uneven the cdf is, u takes one on
// average.
Status invert_cdf(const double* cdf, ptrdiff_t n, const double* u, ptrdiff_t m,
                  std::int64_t* out) noexcept {
    const Scratch<std::int64_t> begin(n + 1);
    if (!begin) return Status::no_memory;
    const auto size = static_cast<double>(n);
    ptrdiff_t i = 0;
    for (ptrdiff_t part = 0; part <= n; ++part) {
        while (i < n && cdf[i] * size <= static_cast<double>(part)) ++i;
        begin[part] = i;
    }
    for (ptrdiff_t k = 0; k < m; ++k) {
        i = begin[static_cast<ptrdiff_t>(u[k] * size)];
        // Products are rounded: it may have begun a little too far.
        while (i > 0 && cdf[i - 1] > u[k]) --i;
        while (i < n && cdf[i] <= u[k]) ++i;
        out[k] = i;
    }
    return Status::ok;
}

}  // namespace fastml
