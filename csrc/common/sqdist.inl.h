// Squared Euclidean distances on top of the tile GEMM.
#include "common/gemm.inl.h"

template <class T> FML_INLINE T squared_norm(const T* x, const T* shift, std::ptrdiff_t d) {
    T sum = 0;
    if (shift) {
#pragma omp simd reduction(+ : sum)
        for (std::ptrdiff_t p = 0; p < d; ++p) sum += (x[p] - shift[p]) * (x[p] - shift[p]);
    } else {
#pragma omp simd reduction(+ : sum)
        for (std::ptrdiff_t p = 0; p < d; ++p) sum += x[p] * x[p];
    }
    return sum;
}

template <class T> FML_INLINE T squared_distance(const T* x, const T* y, std::ptrdiff_t d) {
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::ptrdiff_t p = 0; p < d; ++p) sum += (x[p] - y[p]) * (x[p] - y[p]);
    return sum;
}

// |a|² + |b|² - 2a·b loses what the norms and the distance have in common. Below this share of the
// norms a distance is taken again, by differences: a few entries in a thousand, usually.
template <class T> constexpr T cancels = T(0.05);

template <class T> FML_INLINE bool any(const typename Simd<T>::Vec& flags) {
    T sum = 0;
    for (int l = 0; l < Simd<T>::lanes; ++l) sum += flags[l];
    return sum > 0;
}

// Turns a tile of dot products into squared distances, never negative. A rows i < n_a have norms
// norms_a[i], B rows norms_b (tile_cols of them, padded). exact(i, j) is one pair by differences.
template <class T, class Exact>
FML_INLINE void to_sqdist(Tile<T>& tile, const T* norms_a, std::ptrdiff_t n_a, const T* norms_b,
                          std::ptrdiff_t n_b, const Exact& exact) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    Vec lost = broadcast<Vec>(T(0));
    FML_UNROLL
    for (int v = 0; v < tile_vecs; ++v) {
        const Vec norm_b = load<Vec>(norms_b + v * lanes);
        FML_UNROLL
        for (int i = 0; i < tile_rows; ++i) {
            const Vec norms = norm_b + norms_a[i];
            Vec& entry = tile.at[i][v];
            entry = norms - entry * T(2);
            lost = select(entry >= norms * cancels<T>, lost, broadcast<Vec>(T(1)));
        }
    }
    if (!any<T>(lost)) return;
    for (std::ptrdiff_t i = 0; i < n_a; ++i)
        for (std::ptrdiff_t j = 0; j < n_b; ++j) {
            T entry = tile.at[i][j / lanes][j % lanes];
            if (!(entry >= (norms_a[i] + norms_b[j]) * cancels<T>))
                tile.at[i][j / lanes][j % lanes] = exact(i, j);
        }
}

// The squared distance between row i less `shift` (or null) and row j of `others`, by differences.
template <class T> struct RowPair {
    const T *rows, *shift, *others;
    std::ptrdiff_t d;
    T operator()(std::ptrdiff_t i, std::ptrdiff_t j) const {
        const T *x = rows + i * d, *y = others + j * d;
        if (!shift) return squared_distance(x, y, d);
        T sum = 0;
        for (std::ptrdiff_t p = 0; p < d; ++p) {
            const T t = x[p] - shift[p] - y[p];
            sum += t * t;
        }
        return sum;
    }
};

// B panel j of n rows, with their squared norms.
template <class T>
void pack_cols_panel(const T* rows, std::ptrdiff_t n, std::ptrdiff_t d, std::ptrdiff_t j, T* panels,
                     T* norms) {
    const std::ptrdiff_t first = j * tile_cols<T>;
    const std::ptrdiff_t here = n - first < tile_cols<T> ? n - first : tile_cols<T>;
    pack_panel<T, tile_cols<T>>(rows + first * d, d, here, d, nullptr, panels + first * d);
    for (std::ptrdiff_t r = 0; r < tile_cols<T>; ++r)
        norms[first + r] = r < here ? squared_norm<T>(rows + (first + r) * d, nullptr, d) : T(0);
}
