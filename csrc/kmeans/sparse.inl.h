// K-means on CSR rows.
#include "common/sparse.inl.h"

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
