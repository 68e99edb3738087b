// The nearest center of every row, and what it tells about the distances: the blocks.
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

// The largest |c|²; NaN if any is.
template <class T>
double largest_square(const T* centers, std::ptrdiff_t k, std::ptrdiff_t d) {
    double largest = 0;
    for (std::ptrdiff_t j = 0; j < k; ++j) {
        const T* c = centers + j * d;
        double norm = 0;
#pragma omp simd reduction(+ : norm)
        for (std::ptrdiff_t p = 0; p < d; ++p) norm += static_cast<double>(c[p]) * c[p];
        largest = norm > largest || norm != norm ? norm : largest;
    }
    return largest;
}

// Rows by position: those of a list, or all in order. Beyond `end` comes the last one again.
struct Picked {
    const std::int32_t* list;  // null: all
    std::ptrdiff_t end;
    FML_INLINE std::ptrdiff_t operator()(std::ptrdiff_t r) const {
        if (r >= end) r = end - 1;
        return list ? list[r] : r;
    }
};

// `lanes` entries less the shift, as To.
template <class To, class T>
FML_INLINE typename Simd<To>::Vec load_entries(const T* x, const T* shift) {
    using Vec = typename Simd<To>::Vec;
    if constexpr (std::is_same_v<T, To>) {
        return shift ? load<Vec>(x) - load<Vec>(shift) : load<Vec>(x);
    } else {
        constexpr int lanes = Simd<To>::lanes;
        To out[lanes];
        if (shift) {
#pragma omp simd
            for (int l = 0; l < lanes; ++l) out[l] = static_cast<To>(x[l] - shift[l]);
        } else {
#pragma omp simd
            for (int l = 0; l < lanes; ++l) out[l] = static_cast<To>(x[l]);
        }
        return load<Vec>(out);
    }
}

// Rows i, i + 1, ... of `pick` as a panel out[p * width + r] (see pack_panel), each from where it
// lies; the rows of the next panel are asked for.
template <class To, int width, class T>
void gather_panel(const Rows<T>& X, const Picked& pick, std::ptrdiff_t i, To* out) {
    constexpr int lanes = Simd<To>::lanes;
    const T* row[2 * width];
    for (int r = 0; r < 2 * width; ++r) row[r] = X.data + pick(i + r) * X.d;
    std::ptrdiff_t p = 0;
    for (; p + lanes <= X.d; p += lanes)
        for (int r = 0; r < width; r += lanes) {
            typename Simd<To>::Vec block[lanes];
            FML_UNROLL
            for (int l = 0; l < lanes; ++l) {
                block[l] = load_entries<To>(row[r + l] + p, X.shift ? X.shift + p : nullptr);
                FML_PREFETCH(row[r + l + width] + p);
            }
            transpose<To>(block);
            FML_UNROLL
            for (int l = 0; l < lanes; ++l) store(out + (p + l) * width + r, block[l]);
        }
    for (; p < X.d; ++p) {
        const T less = X.shift ? X.shift[p] : T(0);
        for (int r = 0; r < width; ++r) out[p * width + r] = static_cast<To>(row[r][p] - less);
    }
}

// Keeps, for each of tile_cols rows, the best score x·c - |c|²/2 so far and whose it is, and the
// second best if wanted. Centers arrive in ascending order and must beat what is there: ties go to
// the lower index.
template <class T, bool two> struct Nearest {
    using Vec = typename Simd<T>::Vec;
    using Index = typename Simd<T>::Index;
    const T* bias;
    Vec best[tile_vecs], second[tile_vecs];
    Index index[tile_vecs];

    FML_INLINE explicit Nearest(const T* bias_of_centers) : bias(bias_of_centers) {
        for (int v = 0; v < tile_vecs; ++v) {
            best[v] = second[v] = broadcast<Vec>(-std::numeric_limits<T>::infinity());
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
                const Vec& score = tile.at[i][v];
                const auto better = score > best[v];
                if (two) second[v] = maximum<T>(second[v], minimum<T>(score, best[v]));
                best[v] = select(better, score, best[v]);
                index[v] = select(better, here, index[v]);
            }
        }
    }
};

// Squared norms of the rows of a panel.
template <class T> FML_INLINE void panel_norms(const T* panel, std::ptrdiff_t d, T* norms) {
    using Vec = typename Simd<T>::Vec;
    Vec sum[tile_vecs];
    for (int v = 0; v < tile_vecs; ++v) sum[v] = broadcast<Vec>(T(0));
    for (std::ptrdiff_t p = 0; p < d; ++p) {
        FML_UNROLL
        for (int v = 0; v < tile_vecs; ++v) {
            const Vec x = load<Vec>(panel + p * tile_cols<T> + v * Simd<T>::lanes);
            sum[v] += x * x;
        }
    }
    for (int v = 0; v < tile_vecs; ++v) store(norms + v * Simd<T>::lanes, sum[v]);
}

// What the rounding of scores and of rows may amount to; see Margin.
template <class T>
FML_INLINE T twice_error(const Margin<T>& margin, T norm, T size, T row_error) {
    return margin.gamma * (norm + 2 * margin.reach * (size + margin.reach)) +
           2 * (row_error * margin.reach + (size + row_error) * margin.lost);
}

// Bounds in single precision, of distances whose squares are known up to `error`.
template <class T> FML_INLINE float upper_bound(T square, T error) {
    return std::sqrt(static_cast<float>((square > 0 ? square : T(0)) + error)) * bound_up;
}
template <class T> FML_INLINE float lower_bound(T square, T error) {
    const T least = square - error;
    return least > 0 ? std::sqrt(static_cast<float>(least)) * bound_down : 0.0f;
}

// Labels of rows [begin, end) of `pick`, with bounds if wanted; returns how many changed.
// scratch: a B panel (tile_cols x d), then what multiply_panel spills.
template <class T, bool bounded>
std::ptrdiff_t label_rows_block(const Rows<T>& X, const std::int32_t* list, std::ptrdiff_t begin,
                                std::ptrdiff_t end, const Packed<T>& centers, const Bounds& bounds,
                                std::int32_t* labels, T* scratch) {
    constexpr int lanes = Simd<T>::lanes, cols = tile_cols<T>;
    T *panel = scratch, *spill = panel + cols * X.d;
    const Picked pick{list, end};
    std::ptrdiff_t changed = 0;
    for (std::ptrdiff_t i = begin; i < end; i += cols) {
        const std::ptrdiff_t rows = end - i < cols ? end - i : cols;
        gather_panel<T, cols>(X, pick, i, panel);
        Nearest<T, bounded> nearest(centers.bias);
        multiply_panel(centers.panels, centers.n_panels, panel, X.d, spill, nearest);
        for (std::ptrdiff_t r = 0; r < rows; ++r) {
            const std::ptrdiff_t row = pick(i + r);
            const auto label = static_cast<std::int32_t>(nearest.index[r / lanes][r % lanes]);
            changed += labels[row] != label;
            labels[row] = label;
        }
        if (!bounded) continue;
        T norms[cols], best[cols], second[cols];
        float upper[cols], lower[cols];
        panel_norms(panel, X.d, norms);
        for (int v = 0; v < tile_vecs; ++v) {
            store(best + v * lanes, nearest.best[v]);
            store(second + v * lanes, nearest.second[v]);
        }
#pragma omp simd
        for (int r = 0; r < cols; ++r) {
            const T error = twice_error<T>(centers.margin, norms[r], std::sqrt(norms[r]), T(0));
            upper[r] = upper_bound<T>(norms[r] - 2 * best[r], error);
            lower[r] = lower_bound<T>(norms[r] - 2 * second[r], error);
        }
        for (std::ptrdiff_t r = 0; r < rows; ++r) {
            bounds.upper[pick(i + r)] = upper[r];
            bounds.lower[pick(i + r)] = lower[r];
        }
    }
    return changed;
}
