// K-means on dense rows: the blocks, each for one thread and one range of rows.
#include "common/sqdist.inl.h"

// A panel i of the centers and its starting scores: -|c|²/2, and -inf for the padding.
template <class T>
void pack_centers_panel(const T* centers, std::ptrdiff_t k, std::ptrdiff_t d, std::ptrdiff_t i,
                        T* panels, T* bias) {
    const std::ptrdiff_t first = i * tile_rows;
    const std::ptrdiff_t rows = k - first < tile_rows ? k - first : tile_rows;
    pack_panel<T, tile_rows>(centers + first * d, d, rows, d, nullptr, panels + first * d);
    for (std::ptrdiff_t r = 0; r < tile_rows; ++r)
        bias[first + r] = r < rows
                              ? T(-0.5) * squared_norm<T>(centers + (first + r) * d, nullptr, d)
                              : -std::numeric_limits<T>::infinity();
}

// Keeps, for each of tile_cols rows, the best score x·c - |c|²/2 so far and whose it is.
// Centers arrive in ascending order and must beat what is there: ties go to the lower index.
template <class T> struct Nearest {
    using Vec = typename Simd<T>::Vec;
    using Index = typename Simd<T>::Index;
    const T* bias;
    Vec best[tile_vecs];
    Index index[tile_vecs];

    FML_INLINE explicit Nearest(const T* bias_of_centers) : bias(bias_of_centers) {
        for (int v = 0; v < tile_vecs; ++v) {
            best[v] = broadcast<Vec>(-std::numeric_limits<T>::infinity());
            index[v] = broadcast<Index>(typename Simd<T>::Int(0));
        }
    }
    FML_INLINE void begin(std::ptrdiff_t i0, Tile<T>& tile) const {
        FML_UNROLL
        for (int i = 0; i < tile_rows; ++i) {
            FML_UNROLL
            for (int v = 0; v < tile_vecs; ++v) tile.at[i][v] = broadcast<Vec>(bias[i0 + i]);
        }
    }
    FML_INLINE void end(std::ptrdiff_t i0, const Tile<T>& tile) {
        FML_UNROLL
        for (int i = 0; i < tile_rows; ++i) {
            const Index here = broadcast<Index>(static_cast<typename Simd<T>::Int>(i0 + i));
            FML_UNROLL
            for (int v = 0; v < tile_vecs; ++v) {
                const auto better = tile.at[i][v] > best[v];
                best[v] = select(better, tile.at[i][v], best[v]);
                index[v] = select(better, here, index[v]);
            }
        }
    }
};

// Labels of rows [begin, end); returns how many changed.
// scratch: a B panel (tile_cols x d), then what multiply_panel spills.
template <class T>
std::ptrdiff_t assign_dense_block(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end,
                                  const T* panels, const T* bias, std::ptrdiff_t n_panels,
                                  std::int32_t* labels, T* scratch) {
    constexpr int lanes = Simd<T>::lanes;
    T *panel = scratch, *spill = panel + tile_cols<T> * X.d;
    std::ptrdiff_t changed = 0;
    for (std::ptrdiff_t i = begin; i < end; i += tile_cols<T>) {
        const std::ptrdiff_t rows = end - i < tile_cols<T> ? end - i : tile_cols<T>;
        pack_panel<T, tile_cols<T>>(X.data + i * X.d, X.d, rows, X.d, X.shift, panel);
        Nearest<T> nearest(bias);
        multiply_panel(panels, n_panels, panel, X.d, spill, nearest);
        for (std::ptrdiff_t r = 0; r < rows; ++r) {
            const auto label = static_cast<std::int32_t>(nearest.index[r / lanes][r % lanes]);
            changed += labels[i + r] != label;
            labels[i + r] = label;
        }
    }
    return changed;
}

// sums[p] += w * (x[p] - shift[p]) for columns [p0, p1).
template <class T>
FML_INLINE void add_row(const T* x, const T* shift, double w, std::ptrdiff_t p0, std::ptrdiff_t p1,
                        double* sums) {
    if (shift) {
        for (std::ptrdiff_t p = p0; p < p1; ++p)
            sums[p] += w * static_cast<double>(x[p] - shift[p]);
    } else {
        for (std::ptrdiff_t p = p0; p < p1; ++p) sums[p] += w * static_cast<double>(x[p]);
    }
}

template <class T>
void sum_block(const Rows<T>& X, const T* w, const std::int32_t* labels, std::ptrdiff_t begin,
               std::ptrdiff_t end, double* sums, double* weights) {
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        const double wi = w ? w[i] : 1;
        add_row(X.data + i * X.d, X.shift, wi, 0, X.d, sums + labels[i] * X.d);
        weights[labels[i]] += wi;
    }
}

// Columns [p0, p1) of one cluster, whose rows are listed in ascending order.
template <class T>
void sum_listed(const Rows<T>& X, const T* w, const std::int32_t* rows, std::ptrdiff_t n_rows,
                std::ptrdiff_t p0, std::ptrdiff_t p1, double* sums) {
    for (std::ptrdiff_t p = p0; p < p1; ++p) sums[p] = 0;
    for (std::ptrdiff_t r = 0; r < n_rows; ++r)
        add_row(X.data + rows[r] * X.d, X.shift, w ? double(w[rows[r]]) : 1.0, p0, p1, sums);
}

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

// Sums of x - pivot and its squares over rows [begin, end), d each.
template <class T>
void moments_block(const Rows<T>& X, const T* pivot, std::ptrdiff_t begin, std::ptrdiff_t end,
                   double* sum, double* sum_of_squares) {
    for (std::ptrdiff_t i = begin; i < end; ++i)
        for (std::ptrdiff_t p = 0; p < X.d; ++p) {
            const double t = static_cast<double>(X.data[i * X.d + p]) - pivot[p];
            sum[p] += t;
            sum_of_squares[p] += t * t;
        }
}
