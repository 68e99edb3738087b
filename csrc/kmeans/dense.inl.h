// K-means on dense rows: the blocks, each for one thread and one range of rows.
#include "common/sqdist.inl.h"

// By differences, in double: this is the number that users compare.
template <class T>
double inertia_block(const Rows<T>& X, const T* w, const T* centers, const std::int32_t* labels,
                     std::ptrdiff_t begin, std::ptrdiff_t end, T* sqdist) {
    double total = 0;
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        const T *x = X.data + i * X.d, *c = centers + labels[i] * X.d;
        double sum = 0;
        if (X.shift) {
#pragma omp simd reduction(+ : sum)
            for (std::ptrdiff_t p = 0; p < X.d; ++p) {
                const double t = static_cast<double>(x[p] - X.shift[p]) - c[p];
                sum += t * t;
            }
        } else {
#pragma omp simd reduction(+ : sum)
            for (std::ptrdiff_t p = 0; p < X.d; ++p) {
                const double t = static_cast<double>(x[p]) - c[p];
                sum += t * t;
            }
        }
        if (sqdist) sqdist[i] = static_cast<T>(sum);
        total += w ? w[i] * sum : sum;
    }
    return total;
}

// Tiles of row blocks (A) against center panels (B), written out as distances.
template <class T> struct WriteDistances {
    RowPair<T> exact;
    const T *norms_a, *norms_b;
    std::ptrdiff_t n_rows, n_cols, k;
    T* out;  // entry (0, 0) of this block

    FML_INLINE void begin(std::ptrdiff_t, Tile<T>& tile) const { tile = Tile<T>{}; }
    FML_INLINE void end(std::ptrdiff_t i0, Tile<T>& tile) const {
        constexpr int lanes = Simd<T>::lanes;
        const std::ptrdiff_t rows = n_rows - i0 < tile_rows ? n_rows - i0 : tile_rows;
        RowPair<T> pair = exact;
        pair.rows += i0 * pair.d;
        to_sqdist(tile, norms_a + i0, rows, norms_b, n_cols, pair);
        for (std::ptrdiff_t i = 0; i < rows; ++i) {
            T row[tile_cols<T>];
            for (int v = 0; v < tile_vecs; ++v) store(row + v * lanes, tile.at[i][v]);
            T* target = out + (i0 + i) * k;
            for (std::ptrdiff_t j = 0; j < n_cols; ++j) target[j] = std::sqrt(row[j]);
        }
    }
};

// Distances of rows [begin, end), at most max_panels A panels of them. `centers_b` are the centers
// as B panels, norms_b theirs, padded. scratch: max_panels A panels, their norms, the spill.
template <class T>
void distances_dense_block(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end,
                           const T* centers, const T* centers_b, const T* norms_b, std::ptrdiff_t k,
                           T* out, T* scratch, std::ptrdiff_t max_panels) {
    T *a = scratch, *norms_a = a + max_panels * tile_rows * X.d;
    T* spill = norms_a + max_panels * tile_rows;
    const std::ptrdiff_t n_panels = ceil_div(end - begin, tile_rows);
    for (std::ptrdiff_t i = 0; i < n_panels; ++i) {
        const std::ptrdiff_t first = begin + i * tile_rows;
        const std::ptrdiff_t rows = end - first < tile_rows ? end - first : tile_rows;
        pack_panel<T, tile_rows>(X.data + first * X.d, X.d, rows, X.d, X.shift,
                                 a + i * tile_rows * X.d);
        for (std::ptrdiff_t r = 0; r < tile_rows; ++r)
            norms_a[i * tile_rows + r] =
                r < rows ? squared_norm(X.data + (first + r) * X.d, X.shift, X.d) : T(0);
    }
    for (std::ptrdiff_t j = 0; j < k; j += tile_cols<T>) {
        WriteDistances<T> write{{X.data + begin * X.d, X.shift, centers + j * X.d, X.d},
                                norms_a,
                                norms_b + j,
                                end - begin,
                                k - j < tile_cols<T> ? k - j : tile_cols<T>,
                                k,
                                out + begin * k + j};
        multiply_panel(a, n_panels, centers_b + j * X.d, X.d, spill, write);
    }
}

// Sums of x - pivot and its squares over rows [begin, end), d each. Rows of few columns are taken
// several at a time, so that the loop is long enough for vectors.
template <class T>
void moments_block(const Rows<T>& X, const T* pivot, std::ptrdiff_t begin, std::ptrdiff_t end,
                   double* sum, double* sum_of_squares) {
    constexpr std::ptrdiff_t most = 48;
    const std::ptrdiff_t d = X.d, together = d < most ? most / d : 1, width = together * d;
    std::ptrdiff_t i = begin;
    if (together > 1) {
        double from[most], first[most] = {}, second[most] = {};
        for (std::ptrdiff_t q = 0; q < width; ++q) from[q] = pivot[q % d];
        for (; i + together <= end; i += together) {
            const T* x = X.data + i * d;
#pragma omp simd
            for (std::ptrdiff_t q = 0; q < width; ++q) {
                const double t = static_cast<double>(x[q]) - from[q];
                first[q] += t;
                second[q] += t * t;
            }
        }
        for (std::ptrdiff_t q = 0; q < width; ++q) {
            sum[q % d] += first[q];
            sum_of_squares[q % d] += second[q];
        }
    }
    for (; i < end; ++i)
        for (std::ptrdiff_t p = 0; p < d; ++p) {
            const double t = static_cast<double>(X.data[i * d + p]) - pivot[p];
            sum[p] += t;
            sum_of_squares[p] += t * t;
        }
}
