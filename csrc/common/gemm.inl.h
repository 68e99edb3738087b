// Tile GEMM for use inside parallel regions: S = A·Bᵀ for row sets A (m, d) and B (n, d), tile by
// tile, each tile handed to an epilogue while it is still in registers. One thread, no allocation.
// With another Op than Product, sums of something else over the coordinates (distances, usually).
//
// Both operands are packed in d-major panels, rows padded with zeros: A in panels of tile_rows,
// whose entries are broadcast, B in panels of tile_cols = 3 vectors, whose entries are lanes.
// One B panel stays in L1/L2 while all A panels stream past it: at 3·tile_rows FMAs for
// 3 vector and tile_rows scalar loads, A may come from L3 without being felt.
#include "common/simd.inl.h"

constexpr int tile_rows = FML_TILE_ROWS;
constexpr int tile_vecs = 3;
template <class T> constexpr int tile_cols = tile_vecs * Simd<T>::lanes;
// Longer rows are cut, so that a B panel's slice (tile_cols x depth) stays in L1.
template <class T> constexpr std::ptrdiff_t tile_depth = 2048 / sizeof(T);

template <class T> struct Tile {
    typename Simd<T>::Vec at[tile_rows][tile_vecs];
};

// The same for a driver, which is outside every region.
template <class T> void tile_shape(std::ptrdiff_t* rows, std::ptrdiff_t* cols,
                                   std::ptrdiff_t* depth) {
    *rows = tile_rows;
    *cols = tile_cols<T>;
    *depth = tile_depth<T>;
}

// Square blocks of `lanes` rows and columns go through registers; what is left over goes one by one.
template <class T, int width>
void pack_corner(const T* X, std::ptrdiff_t ld, std::ptrdiff_t rows, std::ptrdiff_t p0,
                 std::ptrdiff_t p1, const T* shift, T* out) {
    for (std::ptrdiff_t p = p0; p < p1; ++p) {
        const T less = shift ? shift[p] : T(0);
        const T* column = X + p;
        T* to = out + p * width;
        if (rows == width) {
            for (int r = 0; r < width; ++r) to[r] = column[r * ld] - less;
        } else {
            for (std::ptrdiff_t r = 0; r < rows; ++r) to[r] = column[r * ld] - less;
            for (std::ptrdiff_t r = rows; r < width; ++r) to[r] = 0;
        }
    }
}

// Rows [0, rows) of X (row stride ld) minus `shift` (d values, or null) into one panel
// out[p * width + r]; rows up to `width` are filled with zeros.
template <class T, int width>
void pack_panel(const T* X, std::ptrdiff_t ld, std::ptrdiff_t rows, std::ptrdiff_t d,
                const T* shift, T* out) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    std::ptrdiff_t p = 0;
    if (width % lanes == 0 && rows == width) {
        for (; p + lanes <= d; p += lanes) {
            const Vec less = shift ? load<Vec>(shift + p) : broadcast<Vec>(T(0));
            for (int r = 0; r < width; r += lanes) {
                Vec block[lanes];
                FML_UNROLL
                for (int i = 0; i < lanes; ++i) {
                    block[i] = load<Vec>(X + (r + i) * ld + p) - less;
                    FML_PREFETCH(X + (r + i + width) * ld + p);
                }
                transpose<T>(block);
                FML_UNROLL
                for (int i = 0; i < lanes; ++i) store(out + (p + i) * width + r, block[i]);
            }
        }
    }
    constexpr int strip = 8;  // columns at a time, so that the rows read stay in L1
    for (; p < d; p += strip)
        pack_corner<T, width>(X, ld, rows, p, p + strip < d ? p + strip : d, shift, out);
}

// What a tile gathers over the coordinates of a pair. Padding (zeros) adds nothing but to rows that
// are padding themselves.
struct Product {
    template <class V, class T> static FML_INLINE V step(const V& sum, const V& b, T a) {
        return sum + b * a;
    }
};
struct AbsDiff {
    template <class V, class T> static FML_INLINE V step(const V& sum, const V& b, T a) {
        return plus<T>(sum, absolute<T>(b - a));
    }
};
struct SquaredDiff {
    template <class V, class T> static FML_INLINE V step(const V& sum, const V& b, T a) {
        const V t = b - a;
        return sum + t * t;
    }
};
struct MaxDiff {
    template <class V, class T> static FML_INLINE V step(const V& sum, const V& b, T a) {
        return maximum<T>(absolute<T>(b - a), sum);  // in this order, which passes over NaN
    }
};
struct Minimum {
    template <class V, class T> static FML_INLINE V step(const V& sum, const V& b, T a) {
        return plus<T>(sum, minimum<T>(b, broadcast<V>(a)));
    }
};

// b: T, or small integers that are widened on the way into registers. Of the tile's vectors so many
// are worked at: the others belong to padding.
template <class Op, int vecs = tile_vecs, class T, class B>
FML_INLINE void tile_multiply(const T* a, const B* b, std::ptrdiff_t depth, Tile<T>& tile) {
    using Vec = typename Simd<T>::Vec;
    Tile<T> sum = tile;
    for (std::ptrdiff_t p = 0; p < depth; ++p) {
        Vec bp[vecs];
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) bp[v] = load_as<T>(b + v * Simd<T>::lanes);
        FML_UNROLL
        for (int i = 0; i < tile_rows; ++i) {
            FML_UNROLL
            for (int v = 0; v < vecs; ++v) sum.at[i][v] = Op::step(sum.at[i][v], bp[v], a[i]);
        }
        a += tile_rows;
        b += tile_cols<T>;
    }
    tile = sum;
}

// All tiles of m_panels A panels against one B panel. `epilogue.begin(i0, tile)` sets a tile's
// starting value (a bias, usually), `epilogue.end(i0, tile)` consumes the finished one; i0 is the
// first A row. `spill` holds m_panels tiles, tile_rows x tile_cols values each, and is used only
// when d > tile_depth.
template <class Op = Product, int vecs = tile_vecs, class T, class Epilogue>
FML_INLINE void multiply_panel(const T* A, std::ptrdiff_t m_panels, const T* B, std::ptrdiff_t d,
                               T* spill, Epilogue& epilogue) {
    if (d <= tile_depth<T>) {
        for (std::ptrdiff_t i = 0; i < m_panels; ++i) {
            Tile<T> tile;
            epilogue.begin(i * tile_rows, tile);
            tile_multiply<Op, vecs>(A + i * tile_rows * d, B, d, tile);
            epilogue.end(i * tile_rows, tile);
        }
        return;
    }
    for (std::ptrdiff_t p = 0; p < d; p += tile_depth<T>) {
        const std::ptrdiff_t depth = d - p < tile_depth<T> ? d - p : tile_depth<T>;
        for (std::ptrdiff_t i = 0; i < m_panels; ++i) {
            T* kept = spill + i * tile_rows * tile_cols<T>;
            Tile<T> tile;
            if (p == 0)
                epilogue.begin(i * tile_rows, tile);
            else
                std::memcpy(&tile, kept, sizeof tile);
            tile_multiply<Op, vecs>(A + (i * d + p) * tile_rows, B + p * tile_cols<T>, depth, tile);
            if (p + depth == d)
                epilogue.end(i * tile_rows, tile);
            else
                std::memcpy(kept, &tile, sizeof tile);
        }
    }
}
