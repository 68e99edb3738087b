// K-means on CSR rows. A row is short and its columns are scattered, so the lanes are centers:
// `columns` holds the centers transposed, (d, stride), stride a multiple of the vector length and
// the padding zero.
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

// out[0, stride) = row i times every center.
template <class T>
FML_INLINE void row_dots(const Rows<T>& X, std::ptrdiff_t i, const T* columns,
                         std::ptrdiff_t stride, T* out) {
    constexpr int lanes = Simd<T>::lanes;
    std::ptrdiff_t j = 0;
    for (; j + 8 * lanes <= stride; j += 8 * lanes)
        row_dots_block<T, 8>(X, i, columns + j, stride, out + j);
    for (; j < stride; j += lanes) row_dots_block<T, 1>(X, i, columns + j, stride, out + j);
}

// The CSR form of assign_block. bias[j] = -|c|²/2; `dots` holds stride values.
template <class T>
std::ptrdiff_t assign_sparse_block(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end,
                                   const T* columns, const T* bias, std::ptrdiff_t k,
                                   std::ptrdiff_t stride, std::int32_t* labels, T* dots) {
    std::ptrdiff_t changed = 0;
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        row_dots(X, i, columns, stride, dots);
        T best = -std::numeric_limits<T>::infinity();
        std::int32_t label = 0;
        for (std::ptrdiff_t j = 0; j < k; ++j) {
            const T score = dots[j] + bias[j];
            if (score > best) {
                best = score;
                label = static_cast<std::int32_t>(j);
            }
        }
        changed += labels[i] != label;
        labels[i] = label;
    }
    return changed;
}

template <class T>
void sum_listed_sparse(const Rows<T>& X, const T* w, const std::int32_t* rows,
                       std::ptrdiff_t n_rows, double* sums) {
    for (std::ptrdiff_t p = 0; p < X.d; ++p) sums[p] = 0;
    for (std::ptrdiff_t r = 0; r < n_rows; ++r) {
        const double wi = w ? w[rows[r]] : 1;
        for (std::int32_t q = X.indptr[rows[r]]; q < X.indptr[rows[r] + 1]; ++q)
            sums[X.indices[q]] += wi * X.data[q];
    }
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

template <class T>
double inertia_sparse_block(const Rows<T>& X, const T* w, const T* centers, const double* norms,
                            const std::int32_t* labels, std::ptrdiff_t begin, std::ptrdiff_t end,
                            T* sqdist) {
    double total = 0;
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        const double sum = sparse_sqdist(X, i, centers + labels[i] * X.d, norms[labels[i]]);
        if (sqdist) sqdist[i] = static_cast<T>(sum);
        total += w ? w[i] * sum : sum;
    }
    return total;
}

// out[0, k) = squared distances of row i to all centers, those that cancel taken in double.
template <class T>
FML_INLINE void sparse_sqdists(const Rows<T>& X, std::ptrdiff_t i, T norm_x, const T* centers,
                               const T* columns, const double* norms, std::ptrdiff_t k,
                               std::ptrdiff_t stride, T* out) {
    row_dots(X, i, columns, stride, out);
    for (std::ptrdiff_t j = 0; j < k; ++j) {
        const T both = norm_x + static_cast<T>(norms[j]);
        out[j] = both - 2 * out[j];
        if (out[j] < both * cancels<T>)
            out[j] = static_cast<T>(sparse_sqdist(X, i, centers + j * X.d, norms[j]));
    }
}

template <class T>
void distances_sparse_block(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end,
                            const T* centers, const T* columns, const double* norms,
                            std::ptrdiff_t k, std::ptrdiff_t stride, T* out, T* row) {
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        sparse_sqdists(X, i, sparse_norm(X, i), centers, columns, norms, k, stride, row);
        for (std::ptrdiff_t j = 0; j < k; ++j) out[i * k + j] = std::sqrt(row[j]);
    }
}

// As gains_small_block. dense: the candidates as dense rows, columns: the same transposed.
template <class T>
void gains_sparse_block(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end, const T* w,
                        T* closest, const T* dense, const T* columns, const double* norms,
                        std::ptrdiff_t n_candidates, std::ptrdiff_t stride, bool accept,
                        double* gain, T* row) {
    for (std::ptrdiff_t c = 0; c < n_candidates; ++c) gain[c] = 0;
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        sparse_sqdists(X, i, sparse_norm(X, i), dense, columns, norms, n_candidates, stride, row);
        for (std::ptrdiff_t c = 0; c < n_candidates; ++c) {
            if (!(row[c] < closest[i])) continue;
            gain[c] += (w ? static_cast<double>(w[i]) : 1.0) * (closest[i] - row[c]);
            if (accept) closest[i] = row[c];
        }
    }
}

template <class T>
void moments_sparse_block(const Rows<T>& X, const T*, std::ptrdiff_t begin, std::ptrdiff_t end,
                          double* sum, double* sum_of_squares) {
    for (std::int32_t q = X.indptr[begin]; q < X.indptr[end]; ++q) {
        const double t = X.data[q];
        sum[X.indices[q]] += t;
        sum_of_squares[X.indices[q]] += t * t;
    }
}
