// Splits whose score has logarithms: all are scored nearly, with a logarithm that vectorises, and
// those that may be the best exactly, with the library's.

// log2(x) for normal x, off by less than 3e-12: x = 2^k m with m in [0.7, 1.42), and
// ln m = 2 atanh(s) = 2 (s + s^3/3 + ...) where s = (m - 1) / (m + 1) is below 0.1716. What is left
// out from s^15 on is below 1e-12; rounding adds a few units in the last place of k.
FML_INLINE double log2_near(double x) {
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

// Of a sum of two terms v log2(x), |log2(x)| < 1100, how far the near one is from the exact one at
// most, in units of |v|: that of log2_near, a dozen roundings of both, and some to spare.
constexpr double near_error = 1e-11;
// Poisson deviance has no split with a sum of targets up to here on a side.
constexpr double no_target = 10 * std::numeric_limits<double>::epsilon();

inline double poisson_proxy(double w, double rest, double left, double right) {
    return left * (std::log(left / w) / std::log(2.0)) +
           right * (std::log(right / rest) / std::log(2.0));
}

// As score_block; proxies of splits that are not the best are -infinity as well.
inline double score_poisson_block(const double* w, const double* left, const double* right,
                                  ptrdiff_t count, double total, double least, double* proxies) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr double smallest = std::numeric_limits<double>::min();
    constexpr double largest = std::numeric_limits<double>::max();
    // proxies: what a split has at most. One has `sure` at least.
    double sure = -infinity;
#pragma omp simd reduction(max : sure)
    for (ptrdiff_t s = 0; s < count; ++s) {
        const double l = left[s], r = right[s], rest = total - w[s];
        const double mean_l = l / w[s], mean_r = r / rest;
        const double proxy = l * log2_near(mean_l) + r * log2_near(mean_r);
        const double error = near_error * (l + r);
        const bool near =
            (mean_l >= smallest) & (mean_l <= largest) & (mean_r >= smallest) & (mean_r <= largest);
        const bool allowed = (l > no_target) & (r > no_target) & (w[s] >= least) & (rest >= least);
        const double most = near ? proxy + error : infinity;
        const double fewest = near & allowed ? proxy - error : -infinity;
        proxies[s] = allowed ? most : -infinity;
        sure = fewest > sure ? fewest : sure;
    }
    double best = -infinity;
    for (ptrdiff_t s = 0; s < count; ++s) {
        const bool hopeless = proxies[s] < sure || proxies[s] == -infinity;
        proxies[s] = hopeless ? -infinity : poisson_proxy(w[s], total - w[s], left[s], right[s]);
        best = proxies[s] > best ? proxies[s] : best;
    }
    return best;
}
