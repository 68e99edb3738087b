// Products with factors, which are (n, ld) with zeros from k to ld, a multiple of every vector's
// length: so narrow that none of both operands needs packing, and their rows are the lanes.
#include "common/simd.inl.h"

constexpr int tile_rows = FML_TILE_ROWS;

// Of m rows, column c of vector v, vecs * lanes rows in all, goes to tile + c * apart + v * lanes; missing
// rows are zero.
template <class T, int vecs>
FML_INLINE void flip_in(const T* rows, std::ptrdiff_t m, std::ptrdiff_t ld, T* tile,
                        std::ptrdiff_t apart) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    for (std::ptrdiff_t v = 0; v < vecs; ++v) {
        for (std::ptrdiff_t c = 0; c < ld; c += lanes) {
            Vec block[lanes];
            for (int i = 0; i < lanes; ++i) {
                const std::ptrdiff_t row = v * lanes + i;
                block[i] = row < m ? load<Vec>(rows + row * ld + c) : broadcast<Vec>(T(0));
            }
            transpose<T>(block);
            for (int i = 0; i < lanes; ++i) store(tile + (c + i) * apart + v * lanes, block[i]);
        }
    }
}
template <class T, int vecs>
FML_INLINE void flip_out(const T* tile, std::ptrdiff_t apart, std::ptrdiff_t m, std::ptrdiff_t ld,
                         T* rows) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    for (std::ptrdiff_t v = 0; v < vecs; ++v) {
        for (std::ptrdiff_t c = 0; c < ld; c += lanes) {
            Vec block[lanes];
            for (int i = 0; i < lanes; ++i)
                block[i] = load<Vec>(tile + (c + i) * apart + v * lanes);
            transpose<T>(block);
            for (int i = 0; i < lanes && v * lanes + i < m; ++i)
                store(rows + (v * lanes + i) * ld + c, block[i]);
        }
    }
}

// What becomes of a finished tile, of row r0 and column j0 on: it is stored.
template <class T> struct Store {
    T* out;
    std::ptrdiff_t ld;
    template <class V> FML_INLINE void operator()(std::ptrdiff_t r, std::ptrdiff_t j,
                                                  const V& sum) const {
        store(out + r * ld + j, sum);
    }
};

// sum over p < depth of a[r rs + p cs] b[p, :], rows of b being ldb apart, for the tile from row r0 and
// column j0 on. It starts from `start`, whose rows are ld_start apart, or from zero. ahead: a is read
// along its rows for the first time, and too few rows at once for the processor to foresee it.
template <class T, int rows, int vecs, bool ahead, class End>
FML_INLINE void product_tile(const T* a, std::ptrdiff_t rs, std::ptrdiff_t cs, const T* b,
                             std::ptrdiff_t ldb, std::ptrdiff_t depth, const T* start,
                             std::ptrdiff_t ld_start, std::ptrdiff_t r0, std::ptrdiff_t j0,
                             const End& end) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    constexpr std::ptrdiff_t distance = 512 / sizeof(T);
    Vec sum[rows][vecs];
    FML_UNROLL
    for (int r = 0; r < rows; ++r) {
        FML_UNROLL
        for (int v = 0; v < vecs; ++v)
            sum[r][v] = start ? load<Vec>(start + (r0 + r) * ld_start + j0 + v * lanes)
                              : broadcast<Vec>(T(0));
    }
    for (std::ptrdiff_t p = 0; p < depth; ++p, a += cs, b += ldb) {
        if constexpr (ahead) FML_PREFETCH(a + (p & (rows - 1)) * rs + distance);
        Vec bp[vecs];
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) bp[v] = load<Vec>(b + v * lanes);
        FML_UNROLL
        for (int r = 0; r < rows; ++r) {
            FML_UNROLL
            for (int v = 0; v < vecs; ++v) sum[r][v] += bp[v] * a[r * rs];
        }
    }
    FML_UNROLL
    for (int r = 0; r < rows; ++r) {
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) end(r0 + r, j0 + v * lanes, sum[r][v]);
    }
}

template <class T, int vecs, bool ahead, class End>
FML_INLINE void product_strip(const T* A, std::ptrdiff_t rs, std::ptrdiff_t cs, std::ptrdiff_t m,
                              const T* B, std::ptrdiff_t ldb, std::ptrdiff_t depth, const T* start,
                              std::ptrdiff_t ld_start, std::ptrdiff_t j, const End& end) {
    std::ptrdiff_t i = 0;
    for (; i + tile_rows <= m; i += tile_rows)
        product_tile<T, tile_rows, vecs, ahead>(A + i * rs, rs, cs, B + j, ldb, depth, start,
                                                ld_start, i, j, end);
    for (; i < m; ++i)
        product_tile<T, 1, vecs, ahead>(A + i * rs, rs, cs, B + j, ldb, depth, start, ld_start, i,
                                        j, end);
}

// start (m, n), or zero, + A·B goes to `end`, for A[i, p] = A[i rs + p cs] of m rows and B (depth, n), n
// a multiple of lanes.
template <class T, bool ahead, class End>
FML_INLINE void product(const T* A, std::ptrdiff_t rs, std::ptrdiff_t cs, std::ptrdiff_t m,
                        std::ptrdiff_t depth, const T* B, std::ptrdiff_t ldb, std::ptrdiff_t n,
                        const T* start, std::ptrdiff_t ld_start, const End& end) {
    constexpr int lanes = Simd<T>::lanes;
    for (std::ptrdiff_t j = 0; j < n;) {
        const std::ptrdiff_t left = (n - j) / lanes;
        if (left == 1) {
            product_strip<T, 1, ahead>(A, rs, cs, m, B, ldb, depth, start, ld_start, j, end);
            j += lanes;
        } else if (left == 2 || left == 4) {
            product_strip<T, 2, ahead>(A, rs, cs, m, B, ldb, depth, start, ld_start, j, end);
            j += 2 * lanes;
        } else {
            product_strip<T, 3, ahead>(A, rs, cs, m, B, ldb, depth, start, ld_start, j, end);
            j += 3 * lanes;
        }
    }
}

constexpr std::ptrdiff_t slice = 128;  // rows of B whose strips stay in L1

// out (m, n) += A·B.
template <class T>
void add_product(const T* A, std::ptrdiff_t rs, std::ptrdiff_t cs, std::ptrdiff_t m,
                 std::ptrdiff_t depth, const T* B, std::ptrdiff_t ldb, std::ptrdiff_t n, T* out,
                 std::ptrdiff_t ldo) {
    const Store<T> end{out, ldo};
    for (std::ptrdiff_t p = 0; p < depth; p += slice) {
        const std::ptrdiff_t deep = depth - p < slice ? depth - p : slice;
        product<T, false>(A + p * cs, rs, cs, m, deep, B + p * ldb, ldb, n, out, ldo, end);
    }
}

template <class T> void clear(T* out, std::ptrdiff_t size) {
    std::memset(out, 0, size * sizeof(T));
}

template <class T>
FML_INLINE void prefetch_row(const T* row, std::ptrdiff_t ld) {
    for (std::ptrdiff_t j = 0; j < ld; j += 64 / static_cast<std::ptrdiff_t>(sizeof(T)))
        FML_PREFETCH(row + j);
}
constexpr std::ptrdiff_t entries_ahead = 8;

// One vector has as many sums as hide what an addition takes.
template <class T, int vecs>
FML_INLINE void gather_strip(const T* data, const std::int32_t* indices, std::ptrdiff_t n,
                             const T* B, std::ptrdiff_t ld, T* out) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes, chains = vecs == 1 ? 4 : 1;
    Vec sum[chains][vecs] = {};
    std::ptrdiff_t q = 0;
    for (; q + chains <= n; q += chains) {
        if (q + entries_ahead + chains <= n) {
            FML_UNROLL
            for (int c = 0; c < chains; ++c)
                prefetch_row(B + indices[q + entries_ahead + c] * ld, vecs * lanes);
        }
        FML_UNROLL
        for (int c = 0; c < chains; ++c) {
            const T* row = B + indices[q + c] * ld;
            FML_UNROLL
            for (int v = 0; v < vecs; ++v) sum[c][v] += load<Vec>(row + v * lanes) * data[q + c];
        }
    }
    for (; q < n; ++q) {
        const T* row = B + indices[q] * ld;
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) sum[0][v] += load<Vec>(row + v * lanes) * data[q];
    }
    FML_UNROLL
    for (int v = 0; v < vecs; ++v) {
        FML_UNROLL
        for (int c = 1; c < chains; ++c) sum[0][v] += sum[c][v];
        store(out + v * lanes, sum[0][v]);
    }
}

// out (ld) = sum over q < n of data[q] B[indices[q], :].
template <class T>
FML_INLINE void gather_row(const T* data, const std::int32_t* indices, std::ptrdiff_t n, const T* B,
                           std::ptrdiff_t ld, T* out) {
    constexpr int lanes = Simd<T>::lanes;
    for (std::ptrdiff_t j = 0; j < ld;) {
        const std::ptrdiff_t left = (ld - j) / lanes;
        if (left >= 8) {
            gather_strip<T, 8>(data, indices, n, B + j, ld, out + j);
            j += 8 * lanes;
        } else if (left >= 6) {
            gather_strip<T, 6>(data, indices, n, B + j, ld, out + j);
            j += 6 * lanes;
        } else if (left >= 3) {
            gather_strip<T, 3>(data, indices, n, B + j, ld, out + j);
            j += 3 * lanes;
        } else {
            gather_strip<T, 1>(data, indices, n, B + j, ld, out + j);
            j += lanes;
        }
    }
}

// Rows [i, i + m) of X·B.
template <class T>
void rows_times(const Rows<T>& X, std::ptrdiff_t i, std::ptrdiff_t m, const T* B, std::ptrdiff_t ld,
                T* out) {
    if (!X.indptr) {
        const Store<T> end{out, ld};
        for (std::ptrdiff_t p = 0; p < X.d; p += slice)
            product<T, true>(X.data + i * X.d + p, X.d, std::ptrdiff_t(1), m,
                             X.d - p < slice ? X.d - p : slice, B + p * ld, ld, ld,
                             p ? out : nullptr, ld, end);
        return;
    }
    for (std::ptrdiff_t r = 0; r < m; ++r) {
        const std::int32_t first = X.indptr[i + r];
        gather_row(X.data + first, X.indices + first, X.indptr[i + r + 1] - first, B, ld,
                   out + r * ld);
    }
}

// out (ld, ld) += the products of the columns of m rows.
template <class T>
void add_gram(const T* rows, std::ptrdiff_t m, std::ptrdiff_t ld, T* out) {
    add_product(rows, std::ptrdiff_t(1), ld, ld, m, rows, ld, ld, out, ld);
}
