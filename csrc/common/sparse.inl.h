// CSR rows against dense ones; after sqdist.inl.h. A row is short and its columns are scattered, so
// the lanes are the dense rows: `columns` holds them transposed, (d, stride), stride a multiple of
// the vector length and the padding zero (fastml::Columns).
template <class T, int vecs>
FML_INLINE void row_dots_block(const Rows<T>& X, std::ptrdiff_t i, const T* columns,
                               std::ptrdiff_t stride, T* out) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    Vec dot[vecs];
    FML_UNROLL
    for (int v = 0; v < vecs; ++v) dot[v] = broadcast<Vec>(T(0));
    for (std::int32_t q = X.indptr[i]; q < X.indptr[i + 1]; ++q) {
        const T* column = columns + X.indices[q] * stride;
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) dot[v] += load<Vec>(column + v * lanes) * X.data[q];
    }
    for (int v = 0; v < vecs; ++v) store(out + v * lanes, dot[v]);
}

// out[0, stride) = row i times every dense row.
template <class T>
FML_INLINE void row_dots(const Rows<T>& X, std::ptrdiff_t i, const T* columns,
                         std::ptrdiff_t stride, T* out) {
    constexpr int lanes = Simd<T>::lanes;
    std::ptrdiff_t j = 0;
    for (; j + 8 * lanes <= stride; j += 8 * lanes)
        row_dots_block<T, 8>(X, i, columns + j, stride, out + j);
    for (; j < stride; j += lanes) row_dots_block<T, 1>(X, i, columns + j, stride, out + j);
}

template <class T> FML_INLINE T sparse_norm(const Rows<T>& X, std::ptrdiff_t i) {
    double sum = 0;
    for (std::int32_t q = X.indptr[i]; q < X.indptr[i + 1]; ++q)
        sum += static_cast<double>(X.data[q]) * X.data[q];
    return static_cast<T>(sum);
}

// |x - c|² = |c|² + sum over the stored values of x (x - 2c), in double, never negative.
template <class T>
FML_INLINE double sparse_sqdist(const Rows<T>& X, std::ptrdiff_t i, const T* c, double norm_c) {
    double sum = 0;
    for (std::int32_t q = X.indptr[i]; q < X.indptr[i + 1]; ++q) {
        const double x = X.data[q], cq = c[X.indices[q]];
        sum += (x - cq) * (x - cq) - cq * cq;
    }
    return sum + norm_c > 0 ? sum + norm_c : 0;
}

// out[0, k) = squared distances of row i to all k dense rows, those that cancel taken in double.
template <class T>
FML_INLINE void sparse_sqdists(const Rows<T>& X, std::ptrdiff_t i, T norm_x, const T* dense,
                               const T* columns, const double* norms, std::ptrdiff_t k,
                               std::ptrdiff_t stride, T* out) {
    row_dots(X, i, columns, stride, out);
    for (std::ptrdiff_t j = 0; j < k; ++j) {
        const T both = norm_x + static_cast<T>(norms[j]);
        out[j] = both - 2 * out[j];
        if (out[j] < both * cancels<T>)
            out[j] = static_cast<T>(sparse_sqdist(X, i, dense + j * X.d, norms[j]));
    }
}
