#pragma once
// A logarithm that vectorises, and how far to trust it: splits whose score has logarithms are all
// scored nearly, and those that may be the best exactly, with the library's.
#include <cstdint>
#include <cstring>
#include <limits>

#if defined(__GNUC__)
#define FML_SCREEN_INLINE inline __attribute__((always_inline))
#else
#define FML_SCREEN_INLINE inline
#endif

namespace fastml {

// log2(x) for normal x, off by less than 3e-12: x = 2^k m with m in [0.7, 1.42), and
// ln m = 2 atanh(s) = 2 (s + s^3/3 + ...) where s = (m - 1) / (m + 1) is below 0.1716. What is left
// out from s^15 on is below 1e-12; rounding adds a few units in the last place of k.
FML_SCREEN_INLINE double log2_near(double x) {
    std::uint64_t bits, whole;
    std::memcpy(&bits, &x, sizeof x);
    whole = bits + 0x0009'5f61'9980'c433u;  // m may be up to sqrt(2): as if from 1 to 2
    const std::uint64_t m_bits = bits - (whole & 0xfff0'0000'0000'0000u) + 0x3ff0'0000'0000'0000u;
    const std::uint64_t k_bits = whole >> 52 | 0x4330'0000'0000'0000u;  // 2^52 + 1023 + k
    double m, k;
    std::memcpy(&m, &m_bits, sizeof m);
    std::memcpy(&k, &k_bits, sizeof k);
    const double s = (m - 1) / (m + 1), q = s * s;
    const double series =
        1 +
        q * (1. / 3 + q * (1. / 5 + q * (1. / 7 + q * (1. / 9 + q * (1. / 11 + q * (1. / 13))))));
    return (k - 4503599627371519.) + 2.885390081777927 * s * series;
}

// Of a sum of terms v log2(x), |log2(x)| < 1100, how far the near one is from the exact one at most,
// in units of the sum of |v|: that of log2_near, a dozen roundings of both, and some to spare.
constexpr double near_error = 1e-11;
// Poisson deviance has no split with a sum of targets up to here on a side.
constexpr double no_target = 10 * std::numeric_limits<double>::epsilon();

}  // namespace fastml
