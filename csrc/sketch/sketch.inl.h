#include "gemm/gemm.inl.h"

#include "common/math.inl.h"

// cos(x) = ±sin(r) with r = x - q pi/2, q odd, |r| <= pi/2. Pi/2 comes in three parts, so that q
// times the first two is exact up to `most`; the coefficients interpolate (sin(r) - r) / r³ in r².
template <class T> struct CosConstants;
template <> struct CosConstants<double> {
    static constexpr double first = 0x1.921fb54p+0, second = 0x1.10b4611800000p-30,
                            third = 0x1.313198a2e0370p-61, most = 4e6;
    static constexpr double sin_rest[] = {
        -0.16666666666666666,   0.008333333333333333,   -0.00019841269841269885,
        2.755731922399948e-06,  -2.505210838740579e-08, 1.6059043964749009e-10,
        -7.647164758601023e-13, 2.8111605280223155e-15, -8.080621831028478e-18};
};
template <> struct CosConstants<float> {
    static constexpr float first = 0x1.92p+0f, second = 0x1.fb4p-12f, third = 0x1.4442d2p-24f,
                           most = 8000;
    static constexpr float sin_rest[] = {-0.16666666f, 0.008333242f, -0.00019822721f,
                                         2.6346973e-06f};
};

// Plain, lane by lane: it vectorises.
template <class T> FML_INLINE T cosine(T x) {
    using C = CosConstants<T>;
    constexpr T magic = sizeof(T) == 8 ? T(0x1.8p52) : T(0x1.8p23);  // rounds to an integer
    const T half = (x * T(0.3183098861837907) - T(0.5) + magic) - magic;
    const T q = 2 * half + 1;
    const T r = ((x - q * C::first) - q * C::second) - q * C::third;
    const T z = r * r;
    constexpr int n = sizeof(C::sin_rest) / sizeof(T);
    T sum = C::sin_rest[n - 1];
    FML_UNROLL
    for (int k = n - 2; k >= 0; --k) sum = sum * z + C::sin_rest[k];
    const T sine = r + r * z * sum;
    // Negative where half is even, without a comparison, which would not vectorise.
    const T parity = half * T(0.5);
    return sine * (4 * std::fabs((parity + magic) - magic - parity) - 1);
}

template <class T> void cosines_of(T* x, std::ptrdiff_t n, T scale) {
    using Int = typename Simd<T>::Int;
    const T bound = CosConstants<T>::most;
    Int most, beyond = 0;  // negative if anything is
    std::memcpy(&most, &bound, sizeof most);
#pragma omp simd reduction(| : beyond)
    for (std::ptrdiff_t j = 0; j < n; ++j) {
        const T size = std::fabs(x[j]);
        Int bits;  // in the order of what they stand for, and NaN above all
        std::memcpy(&bits, &size, sizeof bits);
        beyond |= most - bits;
    }
    if (beyond < 0) {
        for (std::ptrdiff_t j = 0; j < n; ++j) x[j] = scale * std::cos(x[j]);
        return;
    }
#pragma omp simd
    for (std::ptrdiff_t j = 0; j < n; ++j) x[j] = scale * cosine(x[j]);
}

// Tiles that start from an offset for each column and are written as their cosines.
template <class T> struct CosTiles {
    WriteTiles<T> write;
    const T* offset;  // of the columns, padded
    T scale;

    FML_INLINE void begin(std::ptrdiff_t, Tile<T>& tile) const {
        using Vec = typename Simd<T>::Vec;
        FML_UNROLL
        for (int i = 0; i < tile_rows; ++i) {
            FML_UNROLL
            for (int v = 0; v < tile_vecs; ++v)
                tile.at[i][v] = load<Vec>(offset + v * Simd<T>::lanes);
        }
    }
    FML_INLINE void end(std::ptrdiff_t i0, Tile<T>& tile) const {
        T values[tile_rows * tile_cols<T>];
        std::memcpy(values, &tile, sizeof tile);
        cosines_of(values, tile_rows * tile_cols<T>, scale);
        std::memcpy(&tile, values, sizeof tile);
        write.end(i0, tile);
    }
};

// Rows [0, rows) of X against all panels of W. scratch: the rows as A panels, then the spill.
template <class T>
void features_block(const T* X, std::ptrdiff_t rows, const T* panels, const T* offset, T scale,
                    std::ptrdiff_t m, std::ptrdiff_t d, T* out, T* scratch) {
    const std::ptrdiff_t a_panels = ceil_div(rows, tile_rows);
    T* spill = scratch + a_panels * tile_rows * d;
    for (std::ptrdiff_t i = 0; i < a_panels; ++i) {
        const std::ptrdiff_t first = i * tile_rows;
        const std::ptrdiff_t here = rows - first < tile_rows ? rows - first : tile_rows;
        pack_panel<T, tile_rows>(X + first * d, d, here, d, nullptr, scratch + first * d);
    }
    for (std::ptrdiff_t j = 0; j < m; j += tile_cols<T>) {
        const std::ptrdiff_t cols = m - j < tile_cols<T> ? m - j : tile_cols<T>;
        CosTiles<T> tiles{{out + j, m, rows, cols}, offset + j, scale};
        multiply_panel(scratch, a_panels, panels + j * d, d, spill, tiles);
    }
}

template <class T>
void cosines_block(const T* offset, T scale, std::ptrdiff_t rows, std::ptrdiff_t m, T* out) {
    for (std::ptrdiff_t i = 0; i < rows; ++i, out += m) {
        for (std::ptrdiff_t j = 0; j < m; ++j) out[j] += offset[j];
        cosines_of(out, m, scale);
    }
}

template <class T>
FML_INLINE void chi2_of(const typename Simd<T>::Vec& x, const T* factors, std::ptrdiff_t steps,
                        T interval, T* out, std::ptrdiff_t ld) {
    using Vec = typename Simd<T>::Vec;
    const Vec zero = broadcast<Vec>(T(0));
    const auto some = x > zero;
    T roots[Simd<T>::lanes];
    store(roots, x);
    for (int l = 0; l < Simd<T>::lanes; ++l) roots[l] = std::sqrt(roots[l]);
    const Vec root = load<Vec>(roots);
    store(out, root * factors[0]);
    if (steps == 1) return;
    // An infinite angle would go to the library.
    const Vec angle = vlog<T>(select(some, x, broadcast<Vec>(T(1)))) * interval;
    for (std::ptrdiff_t j = 1; j < steps; ++j) {
        const Vec size = root * factors[j], turned = angle * static_cast<T>(j);
        store(out + (2 * j - 1) * ld,
              select(some, size * vsin<T>(turned + T(1.5707963267948966)), zero));
        store(out + 2 * j * ld, select(some, size * vsin<T>(turned), zero));
    }
}

// A strip of n entries of a row, whose features are ld apart.
template <class T>
void chi2_block(const T* X, std::ptrdiff_t n, const T* factors, std::ptrdiff_t steps, T interval,
                T* out, std::ptrdiff_t ld, T* scratch) {
    using Vec = typename Simd<T>::Vec;
    constexpr std::ptrdiff_t lanes = Simd<T>::lanes;
    std::ptrdiff_t p = 0;
    for (; p + lanes <= n; p += lanes)
        chi2_of<T>(load<Vec>(X + p), factors, steps, interval, out + p, ld);
    if (p == n) return;
    T rest[lanes] = {};
    for (std::ptrdiff_t l = 0; l < n - p; ++l) rest[l] = X[p + l];
    chi2_of<T>(load<Vec>(rest), factors, steps, interval, scratch, lanes);
    for (std::ptrdiff_t k = 0; k < 2 * steps - 1; ++k)
        for (std::ptrdiff_t l = 0; l < n - p; ++l) out[k * ld + p + l] = scratch[k * lanes + l];
}
