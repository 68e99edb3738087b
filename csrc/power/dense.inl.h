// Blocks of a dense matrix against narrow blocks of vectors. Either the vectors' columns are lanes
// and entries of X are broadcast (`panel`), or, where the columns are too few to fill a register,
// the features are lanes (`thin`).
#include "common/simd.inl.h"

// Accumulators: as many as the registers hold beside a vector and the broadcast entries.
constexpr int panel_vecs = FML_VECTOR_BYTES == 64 ? 8 : 4;
constexpr int panel_rows(int vecs) {
    return FML_VECTOR_BYTES == 64 ? (vecs <= 3   ? 8
                                     : vecs <= 4 ? 6
                                                 : 24 / vecs)
                                  : (vecs <= 3 ? 4 : 3);
}

template <class T, int vecs, int rows>
FML_INLINE void panel_tile(const T* A, std::ptrdiff_t row, std::ptrdiff_t step,
                           std::ptrdiff_t depth, const T* B, std::ptrdiff_t width, T* out) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    Vec sum[rows][vecs];
    FML_UNROLL
    for (int r = 0; r < rows; ++r) {
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) sum[r][v] = load<Vec>(out + r * width + v * lanes);
    }
    for (std::ptrdiff_t p = 0; p < depth; ++p) {
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) {
            const Vec b = load<Vec>(B + p * width + v * lanes);
            FML_UNROLL
            for (int r = 0; r < rows; ++r) sum[r][v] += b * A[r * row + p * step];
        }
    }
    FML_UNROLL
    for (int r = 0; r < rows; ++r) {
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) store(out + r * width + v * lanes, sum[r][v]);
    }
}

// out (n, vecs vectors of rows that are `width` apart) += A B, entry (r, p) of A at
// A[r * row + p * step].
template <class T, int vecs>
void panel_multiply(const T* A, std::ptrdiff_t row, std::ptrdiff_t step, std::ptrdiff_t n,
                    std::ptrdiff_t depth, const T* B, std::ptrdiff_t width, T* out) {
    constexpr int rows = panel_rows(vecs);
    constexpr std::ptrdiff_t slice = (1 << 15) / (vecs * FML_VECTOR_BYTES);  // of B, stays in L1
    for (std::ptrdiff_t p = 0; p < depth; p += slice) {
        const std::ptrdiff_t here = depth - p < slice ? depth - p : slice;
        std::ptrdiff_t r = 0;
        for (; r + rows <= n; r += rows)
            panel_tile<T, vecs, rows>(A + r * row + p * step, row, step, here, B + p * width, width,
                                      out + r * width);
        for (; r < n; ++r)
            panel_tile<T, vecs, 1>(A + r * row + p * step, row, step, here, B + p * width, width,
                                   out + r * width);
    }
}

// The same for `width` values, a whole number of vectors, in panels as even as can be.
template <class T>
void multiply(const T* A, std::ptrdiff_t row, std::ptrdiff_t step, std::ptrdiff_t n,
              std::ptrdiff_t depth, const T* B, std::ptrdiff_t width, T* out) {
    constexpr std::ptrdiff_t lanes = Simd<T>::lanes;
    std::ptrdiff_t left = width / lanes, panels = (left + panel_vecs - 1) / panel_vecs;
    for (; panels; --panels) {
        const std::ptrdiff_t vecs = (left + panels - 1) / panels;
        const auto with = vecs == 1   ? &panel_multiply<T, 1>
                          : vecs == 2 ? &panel_multiply<T, 2>
                          : vecs == 3 ? &panel_multiply<T, 3>
                          : vecs == 4 ? &panel_multiply<T, 4>
                                      : vecs == 5 ? &panel_multiply < T,
                   panel_vecs < 5 ? 1 : 5 > : vecs == 6 ? &panel_multiply < T,
                   panel_vecs < 6 ? 1 : 6 > : vecs == 7 ? &panel_multiply < T,
                   panel_vecs < 7 ? 1 : 7 >             : &panel_multiply<T, panel_vecs>;
        with(A, row, step, n, depth, B, width, out);
        B += vecs * lanes;
        out += vecs * lanes;
        left -= vecs;
    }
}

template <class T> void vector_lanes(std::ptrdiff_t* lanes) { *lanes = Simd<T>::lanes; }

// A part of X in C order, less the mean: out (rows, cols).
template <class T>
void pack_part(const T* X, std::ptrdiff_t row, std::ptrdiff_t column, std::ptrdiff_t rows,
               std::ptrdiff_t cols, const T* mean, T* out) {
    if (column == 1) {
        for (std::ptrdiff_t i = 0; i < rows; ++i, X += row, out += cols) {
            if (mean)
                for (std::ptrdiff_t j = 0; j < cols; ++j) out[j] = X[j] - mean[j];
            else
                std::memcpy(out, X, cols * sizeof(T));
        }
        return;
    }
    constexpr std::ptrdiff_t strip = 16;  // rows of `out` that stay in L1 while columns pass
    for (std::ptrdiff_t i0 = 0; i0 < rows; i0 += strip) {
        const std::ptrdiff_t i1 = rows - i0 < strip ? rows : i0 + strip;
        for (std::ptrdiff_t j = 0; j < cols; ++j) {
            const T less = mean ? mean[j] : T(0);
            for (std::ptrdiff_t i = i0; i < i1; ++i)
                out[i * cols + j] = X[i * row + j * column] - less;
        }
    }
}

constexpr int thin_rows = 8;  // whose second reading is from L1

// Y (rows, k) = X V, V transposed.
template <class T, int k, int rows>
FML_INLINE void thin_dots(const T* X, std::ptrdiff_t ld, std::ptrdiff_t d, const T* Vt, T* Y) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    Vec sum[rows][k];
    FML_UNROLL
    for (int r = 0; r < rows; ++r) {
        FML_UNROLL
        for (int c = 0; c < k; ++c) sum[r][c] = broadcast<Vec>(T(0));
    }
    std::ptrdiff_t j = 0;
    for (; j + lanes <= d; j += lanes) {
        Vec v[k];
        FML_UNROLL
        for (int c = 0; c < k; ++c) v[c] = load<Vec>(Vt + c * d + j);
        FML_UNROLL
        for (int r = 0; r < rows; ++r) {
            const Vec x = load<Vec>(X + r * ld + j);
            FML_UNROLL
            for (int c = 0; c < k; ++c) sum[r][c] += x * v[c];
        }
    }
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < k; ++c) {
            T total = 0;
            for (int l = 0; l < lanes; ++l) total += sum[r][c][l];
            for (std::ptrdiff_t t = j; t < d; ++t) total += X[r * ld + t] * Vt[c * d + t];
            Y[r * k + c] = total;
        }
}

// Z' += Y' X, Z transposed.
template <class T, int k, int rows>
FML_INLINE void thin_adds(const T* X, std::ptrdiff_t ld, std::ptrdiff_t d, const T* Y, T* Zt) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    std::ptrdiff_t j = 0;
    for (; j + lanes <= d; j += lanes) {
        Vec z[k];
        FML_UNROLL
        for (int c = 0; c < k; ++c) z[c] = load<Vec>(Zt + c * d + j);
        FML_UNROLL
        for (int r = 0; r < rows; ++r) {
            const Vec x = load<Vec>(X + r * ld + j);
            FML_UNROLL
            for (int c = 0; c < k; ++c) z[c] += x * Y[r * k + c];
        }
        FML_UNROLL
        for (int c = 0; c < k; ++c) store(Zt + c * d + j, z[c]);
    }
    for (; j < d; ++j)
        for (int c = 0; c < k; ++c)
            for (int r = 0; r < rows; ++r) Zt[c * d + j] += X[r * ld + j] * Y[r * k + c];
}

template <class T, int k>
void thin_block(const T* X, std::ptrdiff_t ld, std::ptrdiff_t rows, std::ptrdiff_t d, const T* Vt,
                T* Y, T* Zt) {
    std::ptrdiff_t i = 0;
    for (; i + thin_rows <= rows; i += thin_rows) {
        if (Vt) thin_dots<T, k, thin_rows>(X + i * ld, ld, d, Vt, Y + i * k);
        if (Zt) thin_adds<T, k, thin_rows>(X + i * ld, ld, d, Y + i * k, Zt);
    }
    for (; i < rows; ++i) {
        if (Vt) thin_dots<T, k, 1>(X + i * ld, ld, d, Vt, Y + i * k);
        if (Zt) thin_adds<T, k, 1>(X + i * ld, ld, d, Y + i * k, Zt);
    }
}

// Y = X V where V is given, else Y is; Z += X' Y where Z is wanted. `thin`: k, with V and Z
// transposed; 0 for rows of `width` values.
template <class T>
void rows_block(const T* X, std::ptrdiff_t ld, std::ptrdiff_t rows, std::ptrdiff_t d, const T* V,
                std::ptrdiff_t thin, std::ptrdiff_t width, T* Y, T* Z) {
    if (thin == 1) return thin_block<T, 1>(X, ld, rows, d, V, Y, Z);
    if (thin == 2) return thin_block<T, 2>(X, ld, rows, d, V, Y, Z);
    if (V) {
        for (std::ptrdiff_t e = 0; e < rows * width; ++e) Y[e] = 0;
        multiply(X, ld, 1, rows, d, V, width, Y);
    }
    if (Z) multiply(X, 1, ld, d, rows, Y, width, Z);
}
