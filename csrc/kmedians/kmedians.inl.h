#include "common/gemm.inl.h"

// A panel i of rows (n, d): centers, or candidates to become some.
template <class T>
void pack_rows_panel(const T* rows, std::ptrdiff_t n, std::ptrdiff_t d, std::ptrdiff_t i,
                     T* panels) {
    const std::ptrdiff_t first = i * tile_rows;
    const std::ptrdiff_t here = n - first < tile_rows ? n - first : tile_rows;
    pack_panel<T, tile_rows>(rows + first * d, d, here, d, nullptr, panels + first * d);
}

// Keeps, for each of tile_cols rows, the least distance so far and whose it is. Centers arrive in
// ascending order and must beat what is there: ties go to the lower index, and so do distances that
// overflow.
template <class T> struct Least {
    using Vec = typename Simd<T>::Vec;
    using Index = typename Simd<T>::Index;
    std::ptrdiff_t k;
    Vec best[tile_vecs];
    Index index[tile_vecs];

    FML_INLINE explicit Least(std::ptrdiff_t n_centers) : k(n_centers) {
        for (int v = 0; v < tile_vecs; ++v) {
            best[v] = broadcast<Vec>(std::numeric_limits<T>::infinity());
            index[v] = broadcast<Index>(typename Simd<T>::Int(0));
        }
    }
    FML_INLINE void begin(std::ptrdiff_t i0, Tile<T>& tile) const {
        FML_UNROLL
        for (int i = 0; i < tile_rows; ++i) {
            const T start = i0 + i < k ? T(0) : std::numeric_limits<T>::infinity();
            FML_UNROLL
            for (int v = 0; v < tile_vecs; ++v) tile.at[i][v] = broadcast<Vec>(start);
        }
    }
    FML_INLINE void end(std::ptrdiff_t i0, const Tile<T>& tile) {
        FML_UNROLL
        for (int i = 0; i < tile_rows; ++i) {
            const Index here = broadcast<Index>(static_cast<typename Simd<T>::Int>(i0 + i));
            FML_UNROLL
            for (int v = 0; v < tile_vecs; ++v) {
                const auto better = tile.at[i][v] < best[v];
                best[v] = select(better, tile.at[i][v], best[v]);
                index[v] = select(better, here, index[v]);
            }
        }
    }
};

// Labels of rows [begin, end); returns how many changed.
// scratch: a B panel (tile_cols x d), then what multiply_panel spills.
template <class T>
std::ptrdiff_t assign_block(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end,
                            const T* panels, std::ptrdiff_t k, std::int32_t* labels, T* scratch) {
    constexpr int lanes = Simd<T>::lanes;
    T *panel = scratch, *spill = panel + tile_cols<T> * X.d;
    std::ptrdiff_t changed = 0;
    for (std::ptrdiff_t i = begin; i < end; i += tile_cols<T>) {
        const std::ptrdiff_t rows = end - i < tile_cols<T> ? end - i : tile_cols<T>;
        pack_panel<T, tile_cols<T>>(X.data + i * X.d, X.d, rows, X.d, nullptr, panel);
        Least<T> least(k);
        multiply_panel<AbsDiff>(panels, (k + tile_rows - 1) / tile_rows, panel, X.d, spill, least);
        for (std::ptrdiff_t r = 0; r < rows; ++r) {
            const auto label = static_cast<std::int32_t>(least.index[r / lanes][r % lanes]);
            changed += labels[i + r] != label;
            labels[i + r] = label;
        }
    }
    return changed;
}

// In double: this is the number that users compare.
template <class T>
double deviation_block(const Rows<T>& X, const T* w, const T* centers, const std::int32_t* labels,
                       std::ptrdiff_t begin, std::ptrdiff_t end, T* distance) {
    double total = 0;
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        const T *x = X.data + i * X.d, *c = centers + labels[i] * X.d;
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::ptrdiff_t p = 0; p < X.d; ++p) {
            sum += std::fabs(static_cast<double>(x[p]) - c[p]);
        }
        if (distance) distance[i] = static_cast<T>(sum);
        total += w ? w[i] * sum : sum;
    }
    return total;
}

// Sums, over the rows of a panel, what candidates leave of their distances.
template <class T> struct Potential {
    using Vec = typename Simd<T>::Vec;
    std::ptrdiff_t n_candidates, rows;
    const T* w;
    T* closest;
    bool accept;
    double* sums;

    FML_INLINE void begin(std::ptrdiff_t, Tile<T>& tile) const { tile = Tile<T>{}; }
    FML_INLINE void end(std::ptrdiff_t i0, const Tile<T>& tile) const {
        for (std::ptrdiff_t i = 0; i < tile_rows && i0 + i < n_candidates; ++i) {
            T distance[tile_cols<T>];
            for (int v = 0; v < tile_vecs; ++v) store(distance + v * Simd<T>::lanes, tile.at[i][v]);
            double sum = 0;
#pragma omp simd reduction(+ : sum)
            for (std::ptrdiff_t r = 0; r < rows; ++r) {
                const T now = distance[r] < closest[r] ? distance[r] : closest[r];
                distance[r] = now;
                sum += w ? static_cast<double>(w[r]) * now : static_cast<double>(now);
            }
            sums[i0 + i] += sum;
            if (accept) std::memcpy(closest, distance, rows * sizeof(T));
        }
    }
};

template <class T>
void potentials_block(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end, const T* w,
                      T* closest, const T* panels, std::ptrdiff_t n_candidates, bool accept,
                      double* potential, T* scratch) {
    T *panel = scratch, *spill = panel + tile_cols<T> * X.d;
    for (std::ptrdiff_t c = 0; c < n_candidates; ++c) potential[c] = 0;
    for (std::ptrdiff_t i = begin; i < end; i += tile_cols<T>) {
        const std::ptrdiff_t rows = end - i < tile_cols<T> ? end - i : tile_cols<T>;
        pack_panel<T, tile_cols<T>>(X.data + i * X.d, X.d, rows, X.d, nullptr, panel);
        Potential<T> sum{n_candidates, rows, w ? w + i : nullptr, closest + i, accept, potential};
        multiply_panel<AbsDiff>(panels, (n_candidates + tile_rows - 1) / tile_rows, panel, X.d,
                                spill, sum);
    }
}

constexpr double sparse_rounding = 16 * std::numeric_limits<double>::epsilon();

// CSR rows, in double whatever T: |x - c| = |c| + sum over the stored values of |x - c| - |c|, which
// cancels where x is near c. `columns`: the centers transposed, (d, stride); size[j] = |c_j|.
// out[0, stride) = the distances of row i; what is within rounding of zero is zero.
template <class T>
FML_INLINE void sparse_distances(const Rows<T>& X, std::ptrdiff_t i, const double* columns,
                                 const double* size, std::ptrdiff_t stride, double* out) {
    using Vec = typename Simd<double>::Vec;
    constexpr int lanes = Simd<double>::lanes, vecs = 2;  // divides the stride, a multiple of 16
    double norm = 0;
    for (std::int32_t q = X.indptr[i]; q < X.indptr[i + 1]; ++q)
        norm += std::fabs(static_cast<double>(X.data[q]));
    for (std::ptrdiff_t j = 0; j < stride; j += vecs * lanes) {
        Vec sum[vecs];
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) sum[v] = load<Vec>(size + j + v * lanes);
        for (std::int32_t q = X.indptr[i]; q < X.indptr[i + 1]; ++q) {
            const double x = X.data[q];
            const double* column = columns + X.indices[q] * stride + j;
            FML_UNROLL
            for (int v = 0; v < vecs; ++v) {
                const Vec c = load<Vec>(column + v * lanes);
                sum[v] += absolute<double>(c - x) - absolute<double>(c);
            }
        }
        for (int v = 0; v < vecs; ++v) store(out + j + v * lanes, sum[v]);
    }
    for (std::ptrdiff_t j = 0; j < stride; ++j)
        if (!(out[j] > sparse_rounding * (norm + size[j]))) out[j] = 0;
}

template <class T>
std::ptrdiff_t assign_sparse_block(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end,
                                   const double* columns, const double* size, std::ptrdiff_t k,
                                   std::ptrdiff_t stride, std::int32_t* labels, double* row) {
    std::ptrdiff_t changed = 0;
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        sparse_distances(X, i, columns, size, stride, row);
        std::int32_t label = 0;
        for (std::ptrdiff_t j = 1; j < k; ++j)
            if (row[j] < row[label]) label = static_cast<std::int32_t>(j);
        changed += labels[i] != label;
        labels[i] = label;
    }
    return changed;
}

// size[j] = |c_j|, centers in C order.
template <class T>
double deviation_sparse_block(const Rows<T>& X, const T* w, const T* centers, const double* size,
                              const std::int32_t* labels, std::ptrdiff_t begin, std::ptrdiff_t end,
                              T* distance) {
    double total = 0;
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        const T* center = centers + labels[i] * X.d;
        double sum = size[labels[i]], norm = sum;
        for (std::int32_t q = X.indptr[i]; q < X.indptr[i + 1]; ++q) {
            const double x = X.data[q], c = center[X.indices[q]];
            sum += std::fabs(x - c) - std::fabs(c);
            norm += std::fabs(x);
        }
        if (!(sum > sparse_rounding * norm)) sum = 0;
        if (distance) distance[i] = static_cast<T>(sum);
        total += w ? w[i] * sum : sum;
    }
    return total;
}

template <class T>
void potentials_sparse_block(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end, const T* w,
                             T* closest, const double* columns, const double* size,
                             std::ptrdiff_t stride, std::ptrdiff_t n_candidates, bool accept,
                             double* potential, double* row) {
    for (std::ptrdiff_t c = 0; c < n_candidates; ++c) potential[c] = 0;
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        sparse_distances(X, i, columns, size, stride, row);
        T now = closest[i];
        for (std::ptrdiff_t c = 0; c < n_candidates; ++c) {
            now = row[c] < closest[i] ? static_cast<T>(row[c]) : closest[i];
            potential[c] += w ? static_cast<double>(w[i]) * now : static_cast<double>(now);
        }
        if (accept) closest[i] = now;
    }
}
