// Sparse rows against dense vectors. The columns of a block of vectors are the lanes; a single vector
// is gathered from.
#include "common/simd.inl.h"

constexpr int sparse_vecs = FML_VECTOR_BYTES == 64 ? 16 : 8;

// Y (end - begin, k) = X V - 1 less' for the last `tail` columns and the whole vectors before, which
// are `vecs` together; V is padded to rows of `width`.
template <class T, int vecs>
void sparse_panel(const Sparse<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end, const T* V,
                  std::ptrdiff_t width, const T* less, std::ptrdiff_t k, std::ptrdiff_t tail, T* Y) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    // Rows of V lie anywhere: what stored values to come need is on its way while these are added.
    constexpr std::ptrdiff_t ahead = 8;
    const std::ptrdiff_t last = X.indptr[end] - 1;
    for (std::ptrdiff_t i = begin; i < end; ++i, Y += k) {
        Vec sum[vecs];
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) sum[v] = broadcast<Vec>(T(0)) - load<Vec>(less + v * lanes);
        for (std::ptrdiff_t q = X.indptr[i]; q < X.indptr[i + 1]; ++q) {
            const T* next = V + X.indices[q + ahead < last ? q + ahead : last] * width;
            const T* row = V + X.indices[q] * width;
            FML_UNROLL
            for (int v = 0; v < vecs; ++v) {
                FML_PREFETCH(next + v * lanes);
                sum[v] += load<Vec>(row + v * lanes) * X.data[q];
            }
        }
        FML_UNROLL
        for (int v = 0; v < vecs - 1; ++v) store(Y + v * lanes, sum[v]);
        for (std::ptrdiff_t l = 0; l < tail; ++l) Y[(vecs - 1) * lanes + l] = sum[vecs - 1][l];
    }
}

template <class T, int vecs = sparse_vecs>
auto sparse_panel_of(std::ptrdiff_t wanted) {
    if constexpr (vecs > 1)
        if (wanted < vecs) return sparse_panel_of<T, vecs - 1>(wanted);
    return &sparse_panel<T, vecs>;
}

// `less` is padded as well, and k > 1.
template <class T>
void sparse_times(const Sparse<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end, const T* V,
                  const T* less, std::ptrdiff_t k, std::ptrdiff_t width, T* Y) {
    constexpr std::ptrdiff_t lanes = Simd<T>::lanes;
    std::ptrdiff_t left = width / lanes, panels = (left + sparse_vecs - 1) / sparse_vecs;
    for (std::ptrdiff_t at = 0; panels; --panels) {
        const std::ptrdiff_t vecs = (left + panels - 1) / panels;
        const std::ptrdiff_t to = at + vecs * lanes;
        const std::ptrdiff_t tail = to <= k ? lanes : k - (to - lanes);
        sparse_panel_of<T>(vecs)(X, begin, end, V + at, width, less + at, k, tail, Y + at);
        at = to;
        left -= vecs;
    }
}

template <class T> FML_INLINE T sparse_dot(const Sparse<T>& X, std::ptrdiff_t i, const T* v) {
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::ptrdiff_t q = X.indptr[i]; q < X.indptr[i + 1]; ++q) sum += X.data[q] * v[X.indices[q]];
    return sum;
}

template <class T>
void sparse_dots(const Sparse<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end, const T* v, T less,
                 T* y) {
    for (std::ptrdiff_t i = begin; i < end; ++i) y[i - begin] = sparse_dot(X, i, v) - less;
}

// z += X' (X v - less), of rows [begin, end).
template <class T>
void sparse_gram(const Sparse<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end, const T* v, T less,
                 T* z) {
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        const T y = sparse_dot(X, i, v) - less;
        for (std::ptrdiff_t q = X.indptr[i]; q < X.indptr[i + 1]; ++q)
            z[X.indices[q]] += X.data[q] * y;
    }
}

template <class T> void vector_lanes(std::ptrdiff_t* lanes) { *lanes = Simd<T>::lanes; }
