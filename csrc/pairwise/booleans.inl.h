#include "common/simd.inl.h"

FML_INLINE int count_bits(std::uint64_t x) {
#if defined(__GNUC__)
    return __builtin_popcountll(x);
#else
    x -= x >> 1 & 0x5555555555555555;
    x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f;
    return static_cast<int>((x * 0x0101010101010101) >> 56);
#endif
}

FML_INLINE void count_rows(const std::uint64_t* X, std::ptrdiff_t n, std::ptrdiff_t words,
                           double* counts) {
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        int sum = 0;
        for (std::ptrdiff_t w = 0; w < words; ++w) sum += count_bits(X[i * words + w]);
        counts[i] = sum;
    }
}

// How many bits are set in both; `known` words if that is not 0.
template <int known>
FML_INLINE void count_both(const std::uint64_t* x, const std::uint64_t* Y, std::ptrdiff_t m,
                           std::ptrdiff_t words, double* both) {
    if (known) words = known;
    for (std::ptrdiff_t j = 0; j < m; ++j, Y += words) {
        int sum = 0;
        for (std::ptrdiff_t w = 0; w < words; ++w) sum += count_bits(x[w] & Y[w]);
        both[j] = sum;
    }
}

// In terms of the bits: n in all, x and y set in either row, a in both.
struct Dice {
    static FML_INLINE double of(double, double x, double y, double a) {
        return (x + y - 2 * a) / (x + y);
    }
};
struct Jaccard {
    static FML_INLINE double of(double, double x, double y, double a) {
        const double unequal = x + y - 2 * a;
        return unequal == 0 ? 0 : unequal / (a + unequal);
    }
};
struct RogersTanimoto {
    static FML_INLINE double of(double n, double x, double y, double a) {
        const double unequal = x + y - 2 * a;
        return 2 * unequal / (n + unequal);
    }
};
struct RussellRao {
    static FML_INLINE double of(double n, double, double, double a) { return (n - a) / n; }
};
struct SokalSneath {
    static FML_INLINE double of(double, double x, double y, double a) {
        const double unequal = x + y - 2 * a;
        return 2 * unequal / (a + 2 * unequal);
    }
};
struct Yule {
    static FML_INLINE double of(double n, double x, double y, double a) {
        const double cross = (x - a) * (y - a);
        return cross == 0 ? 0 : 2 * cross / (a * (n - x - y + a) + cross);
    }
};

template <class F>
FML_INLINE void from_counts(double n, double x, const double* y, std::ptrdiff_t m, double* out) {
    for (std::ptrdiff_t j = 0; j < m; ++j) out[j] = F::of(n, x, y[j], out[j]);
}

FML_INLINE void distances_of(Agreement agreement, double n, double x, const double* y,
                             std::ptrdiff_t m, double* out) {
    switch (agreement) {
        case Agreement::dice:
            return from_counts<Dice>(n, x, y, m, out);
        case Agreement::jaccard:
            return from_counts<Jaccard>(n, x, y, m, out);
        case Agreement::rogerstanimoto:
            return from_counts<RogersTanimoto>(n, x, y, m, out);
        case Agreement::russellrao:
            return from_counts<RussellRao>(n, x, y, m, out);
        case Agreement::sokalsneath:
            return from_counts<SokalSneath>(n, x, y, m, out);
        case Agreement::yule:
            return from_counts<Yule>(n, x, y, m, out);
    }
}

// Some rows of X against as many columns at a time as stay in L1.
void boolean_block(const std::uint64_t* X, std::ptrdiff_t rows, const std::uint64_t* Y,
                   std::ptrdiff_t m, std::ptrdiff_t words, std::ptrdiff_t bits, Agreement agreement,
                   const double* set, double* out) {
    constexpr std::ptrdiff_t strip = 1024;
    for (std::ptrdiff_t j = 0; j < m; j += strip) {
        const std::ptrdiff_t cols = m - j < strip ? m - j : strip;
        for (std::ptrdiff_t i = 0; i < rows; ++i) {
            const std::uint64_t *x = X + i * words, *y = Y + j * words;
            double *row = out + i * m + j, here;
            count_rows(x, 1, words, &here);
            if (words == 1)
                count_both<1>(x, y, cols, words, row);
            else if (words == 2)
                count_both<2>(x, y, cols, words, row);
            else
                count_both<0>(x, y, cols, words, row);
            distances_of(agreement, static_cast<double>(bits), here, set + j, cols, row);
        }
    }
}

void count_block(const std::uint64_t* X, std::ptrdiff_t n, std::ptrdiff_t words, double* counts) {
    count_rows(X, n, words, counts);
}
