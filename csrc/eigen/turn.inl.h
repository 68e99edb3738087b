#include "eigen/product.inl.h"

// The triangle F (width, width) of a block I - V' F V of `count` reflectors, rows of V with zeros
// before their leading ones, on columns [begin, end). `columns`: scratch of its size.
template <class T>
void block_factor(const T* V, std::ptrdiff_t ld, std::ptrdiff_t count, const T* tau,
                  std::ptrdiff_t begin, std::ptrdiff_t end, T* columns, T* factor) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes, rows = 4;
    constexpr std::ptrdiff_t width = turn_width;
    for (std::ptrdiff_t q = 0; q < count; ++q) {
        T dots[width + rows] = {}, *column = columns + q * width;
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
                column[p] -= tau[q] * columns[s * width + p] * dots[s];
        column[q] = tau[q];
    }
    for (std::ptrdiff_t p = 0; p < count; ++p)
        for (std::ptrdiff_t q = 0; q < count; ++q) factor[p * width + q] = columns[q * width + p];
}

// Rows of a strip lie in panels of tile_cols, n steps of the depth each: one value of every row, then
// the next. Those of one panel from where they are.
template <class T>
void pack_turned(const T* const* rows, std::ptrdiff_t count, std::ptrdiff_t n, T* panel) {
    constexpr int cols = tile_cols<T>, lanes = Simd<T>::lanes;
    using Vec = typename Simd<T>::Vec;
    std::ptrdiff_t p = 0;
    for (; p + lanes <= n; p += lanes) {
        for (int r = 0; r < cols; r += lanes) {
            Vec block[lanes];
            for (int i = 0; i < lanes; ++i)
                block[i] = r + i < count ? load<Vec>(rows[r + i] + p) : Vec{};
            transpose<T>(block);
            for (int i = 0; i < lanes; ++i) store(panel + (p + i) * cols + r, block[i]);
        }
    }
    for (; p < n; ++p)
        for (int r = 0; r < cols; ++r) panel[p * cols + r] = r < count ? rows[r][p] : T(0);
}

// And back to rows of length n, one behind the other.
template <class T>
void unpack_turned(const T* panel, std::ptrdiff_t count, std::ptrdiff_t n, T* out) {
    constexpr int cols = tile_cols<T>, lanes = Simd<T>::lanes;
    using Vec = typename Simd<T>::Vec;
    std::ptrdiff_t p = 0;
    for (; p + lanes <= n; p += lanes) {
        for (int r = 0; r < cols && r < count; r += lanes) {
            Vec block[lanes];
            for (int i = 0; i < lanes; ++i) block[i] = load<Vec>(panel + (p + i) * cols + r);
            transpose<T>(block);
            for (int i = 0; i < lanes && r + i < count; ++i) store(out + (r + i) * n + p, block[i]);
        }
    }
    for (; p < n; ++p)
        for (std::ptrdiff_t r = 0; r < cols && r < count; ++r) out[r * n + p] = panel[p * cols + r];
}

// R -= R V' F' V for `panels` panels of R, each of n_padded steps of which those from `begin` on are
// concerned, and `count` reflectors V, from `begin` on: they are read as they lie. `factor`: row p is
// row p of F. products: 2 x turn_width x tile_cols values.
template <class T>
void turn_panels(T* R, std::ptrdiff_t panels, std::ptrdiff_t n_padded, std::ptrdiff_t begin,
                 const T* V, std::ptrdiff_t ld, std::ptrdiff_t count, const T* factor,
                 T* products) {
    constexpr std::ptrdiff_t width = turn_width, cols = tile_cols<T>;
    constexpr int vecs = tile_vecs;
    const std::ptrdiff_t m = n_padded - begin;
    T* to[tile_rows];
    for (std::ptrdiff_t p = 0; p < panels; ++p) {
        T *panel = R + (p * n_padded + begin) * cols, *dots = products + p * 2 * width * cols,
          *weighted = dots + width * cols;
        for (std::ptrdiff_t c = 0; c < m; c += tile_depth<T>) {
            const std::ptrdiff_t depth = m - c < tile_depth<T> ? m - c : tile_depth<T>;
            for (std::ptrdiff_t q = 0; q < count; q += tile_rows) {
                for (int r = 0; r < tile_rows; ++r) to[r] = dots + (q + r) * cols;
                const T *a = V + q * ld + c, *b = panel + c * cols;
                if (c == 0)
                    rows_times_panel<T, vecs, Into::write>(a, ld, count - q, b, depth, to, cols);
                else
                    rows_times_panel<T, vecs, Into::add>(a, ld, count - q, b, depth, to, cols);
            }
        }
        for (std::ptrdiff_t q = 0; q < count; q += tile_rows) {
            for (int r = 0; r < tile_rows; ++r) to[r] = weighted + (q + r) * cols;
            rows_times_panel<T, vecs, Into::write>(factor + q * width, width, count - q, dots,
                                                   count, to, cols);
        }
    }
    for (std::ptrdiff_t c = 0; c < m; c += tile_rows)
        for (std::ptrdiff_t p = 0; p < panels; ++p) {
            T* at = R + (p * n_padded + begin + c) * cols;
            for (int r = 0; r < tile_rows; ++r) to[r] = at + r * cols;
            rows_times_panel<T, vecs, Into::subtract, true>(
                V + c, ld, tile_rows, products + (p * 2 + 1) * width * cols, count, to, cols);
        }
}
