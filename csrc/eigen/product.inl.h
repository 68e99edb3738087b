// Rows times a panel: what all stages are made of. Entries of A are broadcast from where they lie.
#include "common/gemm.inl.h"

enum class Into { write, add, subtract };

// out[i][0, cols) of tile_rows rows = (or += or -=) row i of A (lda) times a panel of `vecs` vectors,
// tile_cols values to a step of the depth. Rows that are not there have the pointer of another.
// `turned`: column i of A, whose columns are all there.
template <class T, int vecs, Into into, bool turned = false>
FML_INLINE void rows_times_panel(const T* A, std::ptrdiff_t lda, std::ptrdiff_t rows, const T* b,
                                 std::ptrdiff_t depth, T* const* out, std::ptrdiff_t cols) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    const T* a[tile_rows];
    FML_UNROLL
    for (int i = 0; i < tile_rows; ++i) a[i] = turned ? A + i : A + (i < rows ? i : rows - 1) * lda;
    Vec sum[tile_rows][vecs] = {};
    for (std::ptrdiff_t p = 0; p < depth; ++p, b += tile_cols<T>) {
        Vec bp[vecs];
        if (turned) FML_PREFETCH_NEXT(A + p * lda + 2 * diagonal_block<T>);
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) bp[v] = load<Vec>(b + v * lanes);
        FML_UNROLL
        for (int i = 0; i < tile_rows; ++i) {
            const T ap = a[i][turned ? p * lda : p];
            FML_UNROLL
            for (int v = 0; v < vecs; ++v) sum[i][v] = sum[i][v] + bp[v] * ap;
        }
    }
    if (cols == vecs * lanes && rows >= tile_rows) {
        FML_UNROLL
        for (int i = 0; i < tile_rows; ++i) {
            FML_UNROLL
            for (int v = 0; v < vecs; ++v) {
                T* at = out[i] + v * lanes;
                if (into == Into::write)
                    store(at, sum[i][v]);
                else if (into == Into::add)
                    store(at, load<Vec>(at) + sum[i][v]);
                else
                    store(at, load<Vec>(at) - sum[i][v]);
            }
        }
        return;
    }
    // By way of memory: of sums that are chosen while it runs all would be there, for all tiles.
    T tile[tile_rows][vecs * lanes];
    FML_UNROLL
    for (int i = 0; i < tile_rows; ++i) {
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) store(tile[i] + v * lanes, sum[i][v]);
    }
    for (std::ptrdiff_t i = 0; i < tile_rows && i < rows; ++i) {
        const T* row = tile[i];
        T* to = out[i];
        for (std::ptrdiff_t j = 0; j < cols; ++j)
            to[j] = into == Into::write ? row[j]
                    : into == Into::add ? to[j] + row[j]
                                        : to[j] - row[j];
    }
}

template <class T, Into into>
FML_INLINE void rows_times_any(const T* A, std::ptrdiff_t lda, std::ptrdiff_t rows, const T* b,
                               std::ptrdiff_t depth, T* const* out, std::ptrdiff_t cols) {
    constexpr int lanes = Simd<T>::lanes;
    if (cols > 2 * lanes)
        rows_times_panel<T, 3, into>(A, lda, rows, b, depth, out, cols);
    else if (cols > lanes)
        rows_times_panel<T, 2, into>(A, lda, rows, b, depth, out, cols);
    else
        rows_times_panel<T, 1, into>(A, lda, rows, b, depth, out, cols);
}

// The sums of lanes, in an order that is the instruction set's.
template <class T> FML_INLINE T sum_of_lanes(typename Simd<T>::Vec v) {
    constexpr int lanes = Simd<T>::lanes;
    T lane[lanes];
    store(lane, v);
    for (int s = lanes / 2; s > 0; s /= 2)
        for (int l = 0; l < s; ++l) lane[l] += lane[l + s];
    return lane[0];
}
