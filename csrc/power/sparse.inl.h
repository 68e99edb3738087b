// Sparse rows against dense vectors. The columns of a block of vectors are the lanes; a single vector
// is gathered from.
#include "common/simd.inl.h"

constexpr int sparse_vecs = FML_VECTOR_BYTES == 64 ? 16 : 8;

// Where vector v of `vecs` begins in rows of k values, one of which it must end with if it is `last`:
// so nothing is read or written beyond a row, and what two vectors share is the same in both.
template <class T> FML_INLINE std::ptrdiff_t begin_of(int v, int vecs, std::ptrdiff_t last) {
    return v + 1 < vecs ? v * Simd<T>::lanes : last;
}

// Rows [begin, end) of Y (n, k) = X V - 1 less', added to Y if `add`: of the columns that `vecs`
// vectors hold, of which the last begins at `last`.
template <class T, int vecs>
void sparse_panel(const Sparse<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end, const T* V,
                  std::ptrdiff_t k, const T* less, bool add, std::ptrdiff_t last, T* Y) {
    using Vec = typename Simd<T>::Vec;
    // Rows of V lie anywhere: what stored values to come need is on its way while these are added.
    constexpr std::ptrdiff_t ahead = 8;
    const std::ptrdiff_t stored = X.indptr[end] - 1;
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        T* const out = Y + i * k;
        Vec sum[vecs];
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) {
            const std::ptrdiff_t at = begin_of<T>(v, vecs, last);
            sum[v] = add ? load<Vec>(out + at) : broadcast<Vec>(T(0));
            if (less) sum[v] -= load<Vec>(less + at);
        }
        for (std::ptrdiff_t q = X.indptr[i]; q < X.indptr[i + 1]; ++q) {
            const T* next = V + X.indices[q + ahead < stored ? q + ahead : stored] * k;
            const T* row = V + X.indices[q] * k;
            FML_UNROLL
            for (int v = 0; v < vecs; ++v) {
                const std::ptrdiff_t at = begin_of<T>(v, vecs, last);
                FML_PREFETCH(next + at);
                sum[v] += load<Vec>(row + at) * X.data[q];
            }
        }
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) store(out + begin_of<T>(v, vecs, last), sum[v]);
    }
}

template <class T, int vecs = sparse_vecs>
auto sparse_panel_of(std::ptrdiff_t wanted) {
    if constexpr (vecs > 1)
        if (wanted < vecs) return sparse_panel_of<T, vecs - 1>(wanted);
    return &sparse_panel<T, vecs>;
}

// For k of at least a vector, in panels as even as can be.
template <class T>
void sparse_times(const Sparse<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end, const T* V,
                  const T* less, bool add, std::ptrdiff_t k, T* Y) {
    constexpr std::ptrdiff_t lanes = Simd<T>::lanes;
    std::ptrdiff_t left = (k + lanes - 1) / lanes;
    std::ptrdiff_t panels = (left + sparse_vecs - 1) / sparse_vecs;
    for (std::ptrdiff_t at = 0; panels; --panels) {
        const std::ptrdiff_t vecs = (left + panels - 1) / panels, to = at + vecs * lanes;
        const std::ptrdiff_t last = (to < k ? to : k) - lanes - at;
        // Two panels share no column (one of several has two vectors at least): none is added twice.
        sparse_panel_of<T>(vecs)(X, begin, end, V + at, k, less ? less + at : less, add, last,
                                 Y + at);
        at = to;
        left -= vecs;
    }
}

template <class T> FML_INLINE T sparse_dot(const Sparse<T>& X, std::ptrdiff_t i, const T* v) {
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::ptrdiff_t q = X.indptr[i]; q < X.indptr[i + 1]; ++q)
        sum += X.data[q] * v[X.indices[q]];
    return sum;
}

template <class T>
void sparse_dots(const Sparse<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end, const T* v,
                 const T* less, bool add, T* y) {
    for (std::ptrdiff_t i = begin; i < end; ++i)
        y[i] = (add ? y[i] : T(0)) + (sparse_dot(X, i, v) - (less ? *less : T(0)));
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
