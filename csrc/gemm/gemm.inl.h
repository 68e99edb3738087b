#include "common/gemm.inl.h"

// Writes tiles of a row block (A) against column panels (B) to C order.
template <class T> struct WriteTiles {
    T* out;  // entry (0, 0) of the block
    std::ptrdiff_t ld, n_rows, n_cols;

    FML_INLINE void begin(std::ptrdiff_t, Tile<T>& tile) const { tile = Tile<T>{}; }
    FML_INLINE void end(std::ptrdiff_t i0, const Tile<T>& tile) const {
        constexpr int lanes = Simd<T>::lanes;
        if (n_cols == tile_cols<T> && i0 + tile_rows <= n_rows) {
            FML_UNROLL
            for (int i = 0; i < tile_rows; ++i) {
                FML_UNROLL
                for (int v = 0; v < tile_vecs; ++v)
                    store(out + (i0 + i) * ld + v * lanes, tile.at[i][v]);
            }
            return;
        }
        for (std::ptrdiff_t i = 0; i < tile_rows && i0 + i < n_rows; ++i)
            for (std::ptrdiff_t j = 0; j < n_cols; ++j)
                out[(i0 + i) * ld + j] = tile.at[i][j / lanes][j % lanes];
    }
};

template <class T>
void pack_b(const T* B, std::ptrdiff_t n, std::ptrdiff_t d, std::ptrdiff_t panel, T* out) {
    const std::ptrdiff_t first = panel * tile_cols<T>;
    const std::ptrdiff_t rows = n - first < tile_cols<T> ? n - first : tile_cols<T>;
    pack_panel<T, tile_cols<T>>(B + first * d, d, rows, d, nullptr, out + first * d);
}

// Rows [i0, i0 + tile_rows) of A, those there are, against vecs vectors of a panel: `bias` (or null
// for zeros) and the products to `out`, or with `more` the products added to it. Entries of A are
// broadcast from where they lie: packing costs more than it brings where B has few rows.
template <class T, int vecs>
FML_INLINE void multiply_rows(const T* A, std::ptrdiff_t ld, std::ptrdiff_t rows, const T* b,
                              std::ptrdiff_t depth, const T* bias, bool more, std::ptrdiff_t cols,
                              T* out, std::ptrdiff_t n) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    const T* a[tile_rows];
    FML_UNROLL
    for (int i = 0; i < tile_rows; ++i) a[i] = A + (i < rows ? i : rows - 1) * ld;
    Vec sum[tile_rows][vecs] = {};
    for (std::ptrdiff_t p = 0; p < depth; ++p, b += tile_cols<T>) {
        Vec bp[vecs];
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) bp[v] = load<Vec>(b + v * lanes);
        FML_UNROLL
        for (int i = 0; i < tile_rows; ++i) {
            const T ap = a[i][p];
            FML_UNROLL
            for (int v = 0; v < vecs; ++v) sum[i][v] = sum[i][v] + bp[v] * ap;
        }
    }
    T start[vecs * lanes] = {};
    for (std::ptrdiff_t j = 0; j < cols && bias; ++j) start[j] = bias[j];
    for (std::ptrdiff_t i = 0; i < tile_rows && i < rows; ++i) {
        T row[vecs * lanes];
        FML_UNROLL
        for (int v = 0; v < vecs; ++v)
            store(row + v * lanes, sum[i][v] + load<Vec>(start + v * lanes));
        T* to = out + i * n;
        if (more) {
            for (std::ptrdiff_t j = 0; j < cols; ++j) to[j] += row[j];
        } else if (cols == vecs * lanes) {
            std::memcpy(to, row, sizeof row);
        } else {
            for (std::ptrdiff_t j = 0; j < cols; ++j) to[j] = row[j];
        }
    }
}

// Rows [0, rows) of A against all panels of B, slices of which stay in L1.
template <class T>
void gemm_block(const T* A, std::ptrdiff_t rows, const T* panels, std::ptrdiff_t n,
                std::ptrdiff_t d, const T* bias, T* out) {
    constexpr int lanes = Simd<T>::lanes;
    for (std::ptrdiff_t p = 0; p < d; p += tile_depth<T>) {
        const std::ptrdiff_t depth = d - p < tile_depth<T> ? d - p : tile_depth<T>;
        for (std::ptrdiff_t j = 0; j < n; j += tile_cols<T>) {
            const std::ptrdiff_t cols = n - j < tile_cols<T> ? n - j : tile_cols<T>;
            const T* b = panels + j * d + p * tile_cols<T>;
            const T* start = bias && p == 0 ? bias + j : nullptr;
            for (std::ptrdiff_t i = 0; i < rows; i += tile_rows) {
                const T* a = A + i * d + p;
                T* to = out + i * n + j;
                if (cols > 2 * lanes)
                    multiply_rows<T, 3>(a, d, rows - i, b, depth, start, p > 0, cols, to, n);
                else if (cols > lanes)
                    multiply_rows<T, 2>(a, d, rows - i, b, depth, start, p > 0, cols, to, n);
                else
                    multiply_rows<T, 1>(a, d, rows - i, b, depth, start, p > 0, cols, to, n);
            }
        }
    }
}
