// Bounds of scores with logarithms, many splits at a time; see screen.h. All arrays have room for a
// whole number of vectors, and hold anything from `count` on.
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
    constexpr ptrdiff_t lanes = FML_VECTOR_BYTES / sizeof(double);
    double surest[lanes];
    for (ptrdiff_t l = 0; l < lanes; ++l) surest[l] = -infinity;
    for (ptrdiff_t from = 0; from < count; from += lanes)
#pragma omp simd
        for (ptrdiff_t l = 0; l < lanes; ++l) {
            const ptrdiff_t s = from + l;
            const double rest = total - w[s], mean_l = left[s] / w[s], mean_r = right[s] / rest;
            const double proxy = left[s] * log2_near(mean_l) + right[s] * log2_near(mean_r);
            const double error = near_error * (left[s] + right[s]);
            const bool near = (mean_l >= smallest) & (mean_l <= largest) & (mean_r >= smallest) &
                              (mean_r <= largest);
            const bool allowed = (left[s] > no_target) & (right[s] > no_target) & (w[s] >= least) &
                                 (rest >= least) & (s < count);
            const double most = near ? proxy + error : infinity;
            const double fewest = near & allowed ? proxy - error : -infinity;
            proxies[s] = allowed ? most : -infinity;
            surest[l] = fewest > surest[l] ? fewest : surest[l];
        }
    double sure = -infinity;
    for (ptrdiff_t l = 0; l < lanes; ++l) sure = surest[l] > sure ? surest[l] : sure;
    double best = -infinity;
    for (ptrdiff_t s = 0; s < count; ++s) {
        const bool hopeless = proxies[s] < sure || proxies[s] == -infinity;
        proxies[s] = hopeless ? -infinity : poisson_proxy(w[s], total - w[s], left[s], right[s]);
        best = proxies[s] > best ? proxies[s] : best;
    }
    return best;
}

// proxies (count): what a split has at most, by bound(s, w, rest) give or take `slack`; -infinity with
// less weight than `least` on a side. Returns what one of them has at least.
template <class Bound>
double bound_all(const double* w, ptrdiff_t count, double total, double least, double slack,
                 const Bound& bound, double* proxies) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr ptrdiff_t lanes = FML_VECTOR_BYTES / sizeof(double);
    double most[lanes];
    for (ptrdiff_t l = 0; l < lanes; ++l) most[l] = -infinity;
    for (ptrdiff_t from = 0; from < count; from += lanes)
#pragma omp simd
        for (ptrdiff_t l = 0; l < lanes; ++l) {
            const ptrdiff_t s = from + l;
            const double rest = total - w[s], proxy = bound(s, w[s], rest) + slack;
            const bool allowed = (w[s] >= least) & (rest >= least) & (s < count);
            proxies[s] = allowed ? proxy : -infinity;
            most[l] = proxies[s] > most[l] ? proxies[s] : most[l];
        }
    double best = -infinity;
    for (ptrdiff_t l = 0; l < lanes; ++l) best = most[l] > best ? most[l] : best;
    return best - 2 * slack;
}

FML_INLINE double x_log2_x(double x) { return x * log2_near(x); }

// Entropy of two classes, as score_binary_block.
struct BinaryEntropy {
    const double* second;
    double total_second;
    FML_INLINE double operator()(ptrdiff_t s, double w, double rest) const {
        const double l = second[s], r = total_second - l;
        return x_log2_x(w - l) + x_log2_x(l) - x_log2_x(w) + x_log2_x(rest - r) + x_log2_x(r) -
               x_log2_x(rest);
    }
};
// Of many, where left and right have the classes' part.
struct ManyEntropy {
    const double *left, *right;
    FML_INLINE double operator()(ptrdiff_t s, double w, double rest) const {
        return left[s] + right[s] - x_log2_x(w) - x_log2_x(rest);
    }
};

inline double bound_binary_block(const double* w, const double* left, ptrdiff_t count, double total,
                                 double total_left, double least, double slack, double* proxies) {
    return bound_all(w, count, total, least, slack, BinaryEntropy{left, total_left}, proxies);
}
inline double bound_many_block(const double* w, const double* left, const double* right,
                               ptrdiff_t count, double total, double least, double slack,
                               double* proxies) {
    return bound_all(w, count, total, least, slack, ManyEntropy{left, right}, proxies);
}
