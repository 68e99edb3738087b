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

// Rows [0, rows) of A less `shift` (d values, or null) against all panels of B. scratch: the rows as
// A panels, then the spill.
template <class T>
void gemm_block(const T* A, std::ptrdiff_t rows, const T* shift, const T* panels, std::ptrdiff_t n,
                std::ptrdiff_t d, T* out, T* scratch) {
    const std::ptrdiff_t a_panels = ceil_div(rows, tile_rows);
    T* spill = scratch + a_panels * tile_rows * d;
    for (std::ptrdiff_t i = 0; i < a_panels; ++i) {
        const std::ptrdiff_t first = i * tile_rows;
        const std::ptrdiff_t here = rows - first < tile_rows ? rows - first : tile_rows;
        pack_panel<T, tile_rows>(A + first * d, d, here, d, shift, scratch + first * d);
    }
    for (std::ptrdiff_t j = 0; j < n; j += tile_cols<T>) {
        const std::ptrdiff_t cols = n - j < tile_cols<T> ? n - j : tile_cols<T>;
        WriteTiles<T> write{out + j, n, rows, cols};
        multiply_panel(scratch, a_panels, panels + j * d, d, spill, write);
    }
}
