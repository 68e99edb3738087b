#include "eigen/product.inl.h"

// The triangle F (width, width) of a block I - V' F V of `count` reflectors, rows of V with zeros
// before their leading ones, on columns [begin, end): row q of `factor` is column q of F.
template <class T>
void block_factor(const T* V, std::ptrdiff_t ld, std::ptrdiff_t count, const T* tau,
                  std::ptrdiff_t begin, std::ptrdiff_t end, T* factor) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes, rows = 4;
    constexpr std::ptrdiff_t width = turn_width;
    for (std::ptrdiff_t q = 0; q < count; ++q) {
        T dots[width + rows] = {}, *column = factor + q * width;
        for (std::ptrdiff_t p = 0; p < q; p += rows) {
            Vec sum[rows] = {};
            for (std::ptrdiff_t i = begin; i < end; i += lanes) {
                const Vec x = load<Vec>(V + q * ld + i);
                FML_UNROLL
                for (int r = 0; r < rows; ++r) sum[r] += load<Vec>(V + (p + r) * ld + i) * x;
            }
            for (int r = 0; r < rows; ++r) dots[p + r] = sum_of_lanes<T>(sum[r]);
        }
        for (std::ptrdiff_t p = 0; p < width; ++p) column[p] = 0;
        // F[:q, q] = -tau F[:q, :q] dots
        for (std::ptrdiff_t s = 0; s < q; ++s)
            for (std::ptrdiff_t p = 0; p <= s; ++p)
                column[p] -= tau[q] * factor[s * width + p] * dots[s];
        column[q] = tau[q];
    }
    for (std::ptrdiff_t e = count * width; e < width * width; ++e) factor[e] = 0;
}

// A block's two panels, for columns [begin, end), a multiple of tile_cols: `right`, V' in panels of
// its width, and `left`, F' V in panels of columns; both depth-major.
template <class T>
void pack_reflectors(const T* V, std::ptrdiff_t ld, std::ptrdiff_t count, const T* factor,
                     std::ptrdiff_t begin, std::ptrdiff_t end, T* right, T* left) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    constexpr std::ptrdiff_t width = turn_width;
    const std::ptrdiff_t m = end - begin;
    for (std::ptrdiff_t p = 0; p < width; p += tile_cols<T>) {
        const std::ptrdiff_t left_over = count - p,
                             here = left_over < tile_cols<T> ? left_over : tile_cols<T>;
        pack_panel<T, tile_cols<T>>(V + p * ld + begin, ld, here < 0 ? 0 : here, m, nullptr,
                                    right + p * m);
    }
    for (std::ptrdiff_t c = 0; c < m; c += tile_cols<T>) {
        T* out = left + c * width;
        for (std::ptrdiff_t q = 0; q < width; q += tile_rows) {
            Vec sum[tile_rows][tile_vecs] = {};
            const std::ptrdiff_t depth = q + tile_rows < count ? q + tile_rows : count;
            for (std::ptrdiff_t p = 0; p < depth; ++p) {
                Vec v[tile_vecs];
                FML_UNROLL
                for (int s = 0; s < tile_vecs; ++s)
                    v[s] = load<Vec>(V + p * ld + begin + c + s * lanes);
                FML_UNROLL
                for (int r = 0; r < tile_rows; ++r) {
                    const T f = factor[(q + r) * width + p];
                    FML_UNROLL
                    for (int s = 0; s < tile_vecs; ++s) sum[r][s] = sum[r][s] + v[s] * f;
                }
            }
            FML_UNROLL
            for (int r = 0; r < tile_rows; ++r) {
                FML_UNROLL
                for (int s = 0; s < tile_vecs; ++s)
                    store(out + (q + r) * tile_cols<T> + s * lanes, sum[r][s]);
            }
        }
    }
}

// R -= (R V') (F' V), for rows of length n, of which columns from `begin` on are concerned.
// products: rows x turn_width values.
template <class T>
void turn_strip(T* R, std::ptrdiff_t rows, std::ptrdiff_t n, std::ptrdiff_t begin, std::ptrdiff_t m,
                const T* right, const T* left, T* products) {
    constexpr std::ptrdiff_t width = turn_width;
    T* to[tile_rows];
    for (std::ptrdiff_t c = 0; c < n - begin; c += tile_depth<T>) {
        const std::ptrdiff_t depth = n - begin - c < tile_depth<T> ? n - begin - c : tile_depth<T>;
        for (std::ptrdiff_t p = 0; p < width; p += tile_cols<T>)
            for (std::ptrdiff_t i = 0; i < rows; i += tile_rows) {
                const T *a = R + i * n + begin + c, *b = right + p * m + c * tile_cols<T>;
                for (int r = 0; r < tile_rows; ++r)
                    to[r] = products + (i + r < rows ? i + r : rows - 1) * width + p;
                if (c == 0)
                    rows_times_any<T, Into::write>(a, n, rows - i, b, depth, to, tile_cols<T>);
                else
                    rows_times_any<T, Into::add>(a, n, rows - i, b, depth, to, tile_cols<T>);
            }
    }
    for (std::ptrdiff_t c = 0; c < n - begin; c += tile_cols<T>) {
        const std::ptrdiff_t cols = n - begin - c < tile_cols<T> ? n - begin - c : tile_cols<T>;
        for (std::ptrdiff_t i = 0; i < rows; i += tile_rows) {
            for (int r = 0; r < tile_rows; ++r)
                to[r] = R + (i + r < rows ? i + r : rows - 1) * n + begin + c;
            rows_times_any<T, Into::subtract>(products + i * width, width, rows - i,
                                              left + c * width, width, to, cols);
        }
    }
}
