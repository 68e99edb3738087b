#pragma once
#include <cstddef>
#include <cstdint>

#include "common/pool.h"

namespace fastml {

// n strings one behind the other: string i is text[begin[i]], ..., text[begin[i + 1] - 1].
struct Strings {
    const std::uint32_t* text;
    const std::int64_t* begin;
    std::ptrdiff_t n;
};

// The gap-weighted subsequence kernel of Lodhi et al. (2002): out (X.n, Y.n) = the sum, over all
// pairs of places where x and y have the same `length` characters in the same order, of decay to
// the power of the spans of both places. Takes length * |x| * |y| steps for a pair. Symmetric: X is
// Y, half is computed. length >= 1; X.n, Y.n >= 1; strings may be empty.
Status subsequences(const Strings& X, const Strings& Y, std::ptrdiff_t length, double decay,
                    bool symmetric, double* out, int n_threads) noexcept;

}  // namespace fastml
