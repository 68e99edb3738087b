// Small symmetric systems of one thread, in cache. Matrices are in C order with rows of ld values, a
// multiple of factor_unit; of symmetric ones the upper triangle counts, and what is left of the
// diagonal within its vector is arbitrary but finite.
#include "common/simd.inl.h"

constexpr int tile_rows = FML_TILE_ROWS;

// out[r, :] += (or -=) sum over q < depth of a[q, r] b[q, :], rows of out being `ld_out` apart.
template <class T, int vecs, bool minus>
FML_INLINE void rank_tile(const T* a, const T* b, std::ptrdiff_t ld, std::ptrdiff_t depth, T* out,
                          std::ptrdiff_t ld_out) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    Vec sum[tile_rows][vecs];
    FML_UNROLL
    for (int r = 0; r < tile_rows; ++r) {
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) sum[r][v] = load<Vec>(out + r * ld_out + v * lanes);
    }
    for (std::ptrdiff_t q = 0; q < depth; ++q, a += ld, b += ld) {
        Vec bq[vecs];
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) bq[v] = load<Vec>(b + v * lanes);
        FML_UNROLL
        for (int r = 0; r < tile_rows; ++r) {
            FML_UNROLL
            for (int v = 0; v < vecs; ++v) {
                if constexpr (minus)
                    sum[r][v] -= bq[v] * a[r];
                else
                    sum[r][v] += bq[v] * a[r];
            }
        }
    }
    FML_UNROLL
    for (int r = 0; r < tile_rows; ++r) {
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) store(out + r * ld_out + v * lanes, sum[r][v]);
    }
}

// The tiles of rows [i0, i0 + tile_rows) of out that are on or right of the diagonal.
template <class T, bool minus>
FML_INLINE void rank_rows(const T* panel, std::ptrdiff_t ld, std::ptrdiff_t depth, std::ptrdiff_t f,
                          std::ptrdiff_t i0, T* out, std::ptrdiff_t ld_out) {
    constexpr int lanes = Simd<T>::lanes;
    T* rows = out + i0 * ld_out;
    for (std::ptrdiff_t j = i0 / lanes * lanes; j < f;) {
        const std::ptrdiff_t left = (f - j + lanes - 1) / lanes;
        if (left == 1) {
            rank_tile<T, 1, minus>(panel + i0, panel + j, ld, depth, rows + j, ld_out);
            j += lanes;
        } else if (left == 2 || left == 4) {
            rank_tile<T, 2, minus>(panel + i0, panel + j, ld, depth, rows + j, ld_out);
            j += 2 * lanes;
        } else {
            rank_tile<T, 3, minus>(panel + i0, panel + j, ld, depth, rows + j, ld_out);
            j += 3 * lanes;
        }
    }
}

// A (f, f) += PᵀP of a panel P (depth, f).
template <class T>
void add_gram(const T* panel, std::ptrdiff_t ld, std::ptrdiff_t depth, std::ptrdiff_t f, T* A,
              std::ptrdiff_t ld_a) {
    for (std::ptrdiff_t i0 = 0; i0 < f; i0 += tile_rows)
        rank_rows<T, false>(panel, ld, depth, f, i0, A, ld_a);
}

// to[j] -= times·row[j] from the vector of column `from` on.
template <class T>
FML_INLINE void subtract_row(const T* row, T times, std::ptrdiff_t from, std::ptrdiff_t f, T* to) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    const Vec t = broadcast<Vec>(times);
    for (std::ptrdiff_t j = from / lanes * lanes; j < f; j += lanes)
        store(to + j, load<Vec>(to + j) - load<Vec>(row + j) * t);
}

// A = UᵀU in place, U upper triangular; inverse[i] = 1 / U[i, i], or 0 where the pivot is lost to
// rounding: that unknown is then left out. A has a multiple of tile_rows rows, within ld of them.
template <class T> void factorise(T* A, std::ptrdiff_t f, std::ptrdiff_t ld, T* inverse) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    for (std::ptrdiff_t i0 = 0; i0 < f; i0 += tile_rows) {
        const std::ptrdiff_t rows = f - i0 < tile_rows ? f - i0 : tile_rows;
        T least[tile_rows];
        for (std::ptrdiff_t r = 0; r < rows; ++r)
            least[r] = A[(i0 + r) * (ld + 1)] * (4 * std::numeric_limits<T>::epsilon());
        rank_rows<T, true>(A, ld, i0, f, i0, A, ld);
        for (std::ptrdiff_t r = 0; r < rows; ++r) {
            T* row = A + (i0 + r) * ld;
            const T pivot = row[i0 + r];
            const T scale = pivot > least[r] && pivot > 0 ? 1 / std::sqrt(pivot) : T(0);
            inverse[i0 + r] = scale;
            const Vec s = broadcast<Vec>(scale);
            for (std::ptrdiff_t j = i0 / lanes * lanes; j < f; j += lanes)
                store(row + j, load<Vec>(row + j) * s);
            for (std::ptrdiff_t r2 = r + 1; r2 < rows; ++r2)
                subtract_row(row, row[i0 + r2], i0, f, row + (r2 - r) * ld);
        }
    }
}

// x = A⁻¹ z from what factorise left. z, which is lost, and x have ld values; x[f:] becomes 0.
template <class T>
void solve_factorised(const T* U, std::ptrdiff_t f, std::ptrdiff_t ld, const T* inverse, T* z,
                      T* x) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    T* w = z;  // z[i] is done with when w[i] is known, but vectors reach back over it
    for (std::ptrdiff_t i = 0; i < f; ++i) {
        x[i] = w[i] * inverse[i];
        subtract_row(U + i * ld, x[i], i, f, w);
    }
    for (std::ptrdiff_t i = 0; i < f; ++i) w[i] = x[i];
    for (std::ptrdiff_t i = 0; i < ld; ++i) x[i] = 0;
    for (std::ptrdiff_t i = f - 1; i >= 0; --i) {
        Vec sum{};
        for (std::ptrdiff_t j = i / lanes * lanes; j < f; j += lanes)
            sum += load<Vec>(U + i * ld + j) * load<Vec>(x + j);
        T parts[lanes];
        store(parts, sum);
        T dot = 0;
        for (int l = 0; l < lanes; ++l) dot += parts[l];
        x[i] = (w[i] - dot) * inverse[i];
    }
}

// out[j] = sum over q < n of coefficient[q] panel[q, j].
template <class T, int vecs>
FML_INLINE void combine_strip(const T* panel, std::ptrdiff_t ld, std::ptrdiff_t n,
                              const T* coefficient, T* out) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    Vec even[vecs] = {}, odd[vecs] = {};
    std::ptrdiff_t q = 0;
    for (; q + 2 <= n; q += 2, panel += 2 * ld) {
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) {
            even[v] += load<Vec>(panel + v * lanes) * coefficient[q];
            odd[v] += load<Vec>(panel + ld + v * lanes) * coefficient[q + 1];
        }
    }
    for (int v = 0; v < vecs; ++v) {
        if (q < n) even[v] += load<Vec>(panel + v * lanes) * coefficient[q];
        store(out + v * lanes, load<Vec>(out + v * lanes) + (even[v] + odd[v]));
    }
}

// out += Pᵀ·coefficient.
template <class T>
void add_combination(const T* panel, std::ptrdiff_t ld, std::ptrdiff_t n, std::ptrdiff_t f,
                     const T* coefficient, T* out) {
    constexpr int lanes = Simd<T>::lanes;
    std::ptrdiff_t j = 0;
    for (; j + 4 * lanes <= ld && j + 3 * lanes < f; j += 4 * lanes)
        combine_strip<T, 4>(panel + j, ld, n, coefficient, out + j);
    for (; j < f; j += lanes) combine_strip<T, 1>(panel + j, ld, n, coefficient, out + j);
}

// out[q] = P[q]·x, for n rows rounded up to factor_unit. As many rows at a time as there are lanes,
// to sum across all of them at once.
template <class T>
void panel_dots(const T* panel, std::ptrdiff_t ld, std::ptrdiff_t n, std::ptrdiff_t f, const T* x,
                T* out) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    for (std::ptrdiff_t q = 0; q < n; q += lanes, panel += lanes * ld) {
        Vec sums[lanes] = {};
        for (std::ptrdiff_t j = 0; j < f; j += lanes) {
            const Vec xj = load<Vec>(x + j);
            FML_UNROLL
            for (int r = 0; r < lanes; ++r) sums[r] += load<Vec>(panel + r * ld + j) * xj;
        }
        store(out + q, sums_of<T>(sums));
    }
}

// out (f, ld_out) = the transpose of a panel (n, f), both sizes rounded up to factor_unit.
template <class T>
void transpose_panel(const T* panel, std::ptrdiff_t ld, std::ptrdiff_t n, std::ptrdiff_t f, T* out,
                     std::ptrdiff_t ld_out) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    for (std::ptrdiff_t q = 0; q < n; q += lanes)
        for (std::ptrdiff_t j = 0; j < f; j += lanes) {
            Vec block[lanes];
            FML_UNROLL
            for (int r = 0; r < lanes; ++r) block[r] = load<Vec>(panel + (q + r) * ld + j);
            transpose<T>(block);
            FML_UNROLL
            for (int r = 0; r < lanes; ++r) store(out + (j + r) * ld_out + q, block[r]);
        }
}
