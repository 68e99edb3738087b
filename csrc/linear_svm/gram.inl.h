// The lower triangle of H += sum of kappa x x' over rows, and systems with it.

// Rows of a chunk, of which a panel has tile_cols x gram_depth entries.
constexpr std::ptrdiff_t gram_depth = 128;

struct AddTo {
    double* H;
    std::ptrdiff_t ld;
    FML_INLINE void begin(std::ptrdiff_t i0, Tile<double>& tile) const {
        using Vec = Simd<double>::Vec;
        FML_UNROLL
        for (int i = 0; i < tile_rows; ++i) {
            FML_UNROLL
            for (int v = 0; v < tile_vecs; ++v)
                tile.at[i][v] = load<Vec>(H + (i0 + i) * ld + v * Simd<double>::lanes);
        }
    }
    FML_INLINE void end(std::ptrdiff_t i0, const Tile<double>& tile) const {
        FML_UNROLL
        for (int i = 0; i < tile_rows; ++i) {
            FML_UNROLL
            for (int v = 0; v < tile_vecs; ++v)
                store(H + (i0 + i) * ld + v * Simd<double>::lanes, tile.at[i][v]);
        }
    }
};

// A row (ld) times `scale` into panels: entry p goes to panel p / width.
template <int width>
FML_INLINE void spread(const double* row, double scale, std::ptrdiff_t ld, std::ptrdiff_t depth,
                       double* panels) {
    for (std::ptrdiff_t p = 0; p < ld; p += width, panels += width * depth)
        for (int c = 0; c < width; ++c) panels[c] = scale * row[p + c];
}

template <class T>
void dense_gram(const Rows<T>& X, double bias, const std::int32_t* rows, const double* kappa,
                std::ptrdiff_t m, std::ptrdiff_t ld, double* scratch, double* H) {
    constexpr int cols = tile_cols<double>;
    double* row = scratch + 2 * gram_depth * ld;  // with the constant, and zeros to the end
    std::fill_n(row, ld, 0.0);
    row[X.d] = bias;
    const std::ptrdiff_t panels = X.d / tile_rows + 1;  // others are of zeros
    for (std::ptrdiff_t i0 = 0; i0 < m; i0 += gram_depth) {
        const std::ptrdiff_t depth = m - i0 < gram_depth ? m - i0 : gram_depth;
        double *A = scratch, *B = scratch + ld * depth;
        for (std::ptrdiff_t i = 0; i < depth; ++i) {
            const T* x = X.data + rows[i0 + i] * X.d;
            for (std::ptrdiff_t p = 0; p < X.d; ++p) row[p] = x[p];
            spread<tile_rows>(row, kappa[i0 + i], ld, depth, A + i * tile_rows);
            spread<cols>(row, 1, ld, depth, B + i * cols);
        }
        for (std::ptrdiff_t c = 0; c <= X.d; c += cols) {
            const std::ptrdiff_t first = c / tile_rows;  // the panel of the diagonal
            AddTo sums{H + first * tile_rows * ld + c, ld};
            multiply_panel(A + first * tile_rows * depth, panels - first, B + c * depth, depth,
                           static_cast<double*>(nullptr), sums);
        }
    }
}

template <class T>
void sparse_gram(const Rows<T>& X, double bias, const std::int32_t* rows, const double* kappa,
                 std::ptrdiff_t m, std::ptrdiff_t ld, double* H) {
    double* last = H + X.d * ld;
    for (std::ptrdiff_t i = 0; i < m; ++i) {
        const std::int32_t begin = X.indptr[rows[i]], end = X.indptr[rows[i] + 1];
        for (std::int32_t q = begin; q < end; ++q) {
            const std::int32_t p = X.indices[q];
            const double x = kappa[i] * X.data[q];
            for (std::int32_t r = begin; r <= q; ++r) {
                const std::int32_t s = X.indices[r];
                H[p > s ? p * ld + s : s * ld + p] += x * X.data[r];
            }
            last[p] += bias * x;
        }
        last[X.d] += bias * bias * kappa[i];
    }
}

// scratch: ld (2 gram_depth + 1) values, dense only; ld is a multiple of both sides of a tile, > d.
template <class T>
void gram_block(const Rows<T>& X, double bias, const std::int32_t* rows, const double* kappa,
                std::ptrdiff_t m, std::ptrdiff_t ld, double* scratch, double* H) {
    if (X.indptr)
        sparse_gram(X, bias, rows, kappa, m, ld, H);
    else
        dense_gram(X, bias, rows, kappa, m, ld, scratch, H);
}

// Columns that a factor is made of at a time: whole strides of dense_dot.
constexpr std::ptrdiff_t factor_cols = 32;

// L L' = H + ridge I. A pivot that rounding has lost becomes infinite, which leaves its entry of the
// solution zero. What columns before a block take off it are sums along rows; within a block a
// column is taken off those after it, since sums so short would be scalar.
inline void factor(const double* H, std::ptrdiff_t n, std::ptrdiff_t ld, double ridge, double* L) {
    for (std::ptrdiff_t c = 0; c < n; c += factor_cols) {
        const std::ptrdiff_t end = n - c < factor_cols ? n : c + factor_cols;
        for (std::ptrdiff_t i = c; i < n; ++i) {
            double* row = L + i * ld;
            const std::ptrdiff_t last = i < end ? i + 1 : end;
            for (std::ptrdiff_t j = c; j < last; ++j)
                row[j] = H[i * ld + j] - dense_dot(row, c, L + j * ld);
            if (i < end) row[i] += ridge;
        }
        double column[factor_cols];
        for (std::ptrdiff_t j = c; j < end; ++j) {
            double& diagonal = L[j * ld + j];
            diagonal = diagonal > 1e-15 * (H[j * ld + j] + ridge) ? std::sqrt(diagonal) : 1e150;
            const double by = 1 / diagonal;
            for (std::ptrdiff_t i = j + 1; i < end; ++i) column[i - c] = L[i * ld + j] *= by;
            for (std::ptrdiff_t i = j + 1; i < n; ++i) {
                double* row = L + i * ld;
                const std::ptrdiff_t last = i < end ? i + 1 : end;
                const double v = i < end ? column[i - c] : row[j] *= by;
#pragma omp simd
                for (std::ptrdiff_t k = j + 1; k < last; ++k) row[k] -= v * column[k - c];
            }
        }
    }
}

// x = (L L')^-1 x
inline void solve(const double* L, std::ptrdiff_t n, std::ptrdiff_t ld, double* x) {
    for (std::ptrdiff_t i = 0; i < n; ++i)
        x[i] = (x[i] - dense_dot(L + i * ld, i, x)) / L[i * ld + i];
    for (std::ptrdiff_t i = n; i-- > 0;) {
        const double* row = L + i * ld;
        const double xi = x[i] /= row[i];
#pragma omp simd
        for (std::ptrdiff_t j = 0; j < i; ++j) x[j] -= xi * row[j];
    }
}
