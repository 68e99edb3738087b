#include "kmeans/dense.inl.h"
#include "kmeans/sparse.inl.h"

// What candidates of k-means++ would gain: the blocks.

// Rows of few columns: squared distances by differences, a tile at a time. closest may be updated
// (accept, with one candidate). scratch: a B panel and two rows of tile_cols.
template <class T>
void gains_small_block(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end, const T* w,
                       T* closest, const T* candidates, std::ptrdiff_t n_candidates, bool accept,
                       double* gain, T* scratch) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes, cols = tile_cols<T>;
    T *panel = scratch, *old = panel + cols * X.d, *weight = old + cols;
    for (std::ptrdiff_t c = 0; c < n_candidates; ++c) gain[c] = 0;
    for (std::ptrdiff_t i = begin; i < end; i += cols) {
        const std::ptrdiff_t rows = end - i < cols ? end - i : cols;
        pack_panel<T, cols>(X.data + i * X.d, X.d, rows, X.d, X.shift, panel);
        for (std::ptrdiff_t r = 0; r < cols; ++r) {
            old[r] = r < rows ? closest[i + r] : T(0);  // nothing to gain on padding
            weight[r] = r < rows && w ? w[i + r] : T(1);
        }
        for (std::ptrdiff_t c = 0; c < n_candidates; ++c) {
            const T* y = candidates + c * X.d;
            Vec sqdist[tile_vecs];
            for (int v = 0; v < tile_vecs; ++v) sqdist[v] = broadcast<Vec>(T(0));
            for (std::ptrdiff_t p = 0; p < X.d; ++p) {
                FML_UNROLL
                for (int v = 0; v < tile_vecs; ++v) {
                    const Vec t = load<Vec>(panel + p * cols + v * lanes) - y[p];
                    sqdist[v] += t * t;
                }
            }
            Vec taken = broadcast<Vec>(T(0));
            FML_UNROLL
            for (int v = 0; v < tile_vecs; ++v) {
                const Vec had = load<Vec>(old + v * lanes);
                const Vec has = select(sqdist[v] < had, sqdist[v], had);
                taken += (had - has) * load<Vec>(weight + v * lanes);
                if (accept) store(old + v * lanes, has);
            }
            double sum = 0;
            for (int l = 0; l < lanes; ++l) sum += taken[l];
            gain[c] += sum;
        }
        if (accept)
            for (std::ptrdiff_t r = 0; r < rows; ++r) closest[i + r] = old[r];
    }
}

// Largest |x - shift| of every column over rows [begin, end).
template <class T>
void extent_block(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end, double* extent) {
    for (std::ptrdiff_t p = 0; p < X.d; ++p) extent[p] = 0;
    for (std::ptrdiff_t i = begin; i < end; ++i)
        for (std::ptrdiff_t p = 0; p < X.d; ++p) {
            const double x = X.data[i * X.d + p] - (X.shift ? X.shift[p] : T(0));
            const double size = x < 0 ? -x : x;
            extent[p] = size > extent[p] ? size : extent[p];
        }
}

// Codes of rows [begin, end), begin a multiple of the panel width; see Sketch.
template <class T>
void sketch_block(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end, const Sketch& sketch) {
    constexpr int cols = tile_cols<float>;
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        std::int8_t* code = sketch.codes + i / cols * cols * X.d + i % cols;
        double norm = 0, error = 0;
        for (std::ptrdiff_t p = 0; p < X.d; ++p) {
            const double x = X.data[i * X.d + p] - (X.shift ? X.shift[p] : T(0));
            const double step = sketch.step[p];
            const double level = step > 0 ? std::nearbyint(x / sketch.unit / step) : 0;
            code[p * cols] = static_cast<std::int8_t>(level);
            const double kept = level * step, lost = x / sketch.unit - kept;
            norm += kept * kept;
            error += lost * lost;
        }
        sketch.half_norm[i] = static_cast<float>(0.5 * norm * (1 - sketch.slack));
        sketch.error[i] = static_cast<float>(std::sqrt(error) * (1 + 1e-6));
    }
}

// floor[i], from the closest squared distance: no candidate scores above it unless it is closer.
template <class T> FML_INLINE void set_floor(const Sketch& sketch, std::ptrdiff_t i, T closest) {
    const double reach = std::sqrt(static_cast<double>(closest)) / sketch.unit + sketch.error[i];
    sketch.floor[i] = static_cast<float>(sketch.half_norm[i] - 0.5 * reach * reach * (1 + 1e-6));
}

// Marks the entries of a tile whose score is above the row's floor, NaN included.
FML_INLINE bool any_above(const Tile<float>& tile, const float* floor) {
    using Vec = typename Simd<float>::Vec;
    Vec flags = broadcast<Vec>(0.0f);
    const Vec one = broadcast<Vec>(1.0f);
    FML_UNROLL
    for (int v = 0; v < tile_vecs; ++v) {
        const Vec bound = load<Vec>(floor + v * Simd<float>::lanes);
        FML_UNROLL
        for (int i = 0; i < tile_rows; ++i) flags = select(tile.at[i][v] <= bound, flags, one);
    }
    return any<float>(flags);
}

// The sketched form of gains_small_block: scores x̂·c - |c|²/2 from codes, and only where a score
// is above the row's floor the distance itself, by differences. scores: n_candidates packed as A
// panels of c * step, with their biases.
template <class T>
void gains_sketched_block(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end, const T* w,
                          T* closest, const Sketch& sketch, const std::ptrdiff_t* candidates,
                          std::ptrdiff_t n_candidates, const float* panels, const float* bias,
                          bool accept, double* gain) {
    using Vec = typename Simd<float>::Vec;
    constexpr int lanes = Simd<float>::lanes, cols = tile_cols<float>;
    for (std::ptrdiff_t c = 0; c < n_candidates; ++c) gain[c] = 0;
    for (std::ptrdiff_t i = begin; i < end; i += cols) {
        const std::ptrdiff_t rows = end - i < cols ? end - i : cols;
        float floor[cols];
        for (std::ptrdiff_t r = 0; r < cols; ++r)
            floor[r] = r < rows ? sketch.floor[i + r] : std::numeric_limits<float>::infinity();
        for (std::ptrdiff_t c0 = 0; c0 < n_candidates; c0 += tile_rows) {
            Tile<float> tile;
            FML_UNROLL
            for (int a = 0; a < tile_rows; ++a) {
                FML_UNROLL
                for (int v = 0; v < tile_vecs; ++v) tile.at[a][v] = broadcast<Vec>(bias[c0 + a]);
            }
            tile_multiply(panels + c0 * X.d, sketch.codes + i * X.d, X.d, tile);
            if (!any_above(tile, floor)) continue;
            const std::ptrdiff_t here = n_candidates - c0 < tile_rows ? n_candidates - c0 : tile_rows;
            for (std::ptrdiff_t a = 0; a < here; ++a) {
                float score[cols];
                for (int v = 0; v < tile_vecs; ++v) store(score + v * lanes, tile.at[a][v]);
                for (std::ptrdiff_t r = 0; r < rows; ++r) {
                    if (score[r] <= floor[r]) continue;
                    const T sqdist = squared_distance(X.data + candidates[c0 + a] * X.d,
                                                      X.data + (i + r) * X.d, X.d);
                    if (!(sqdist < closest[i + r])) continue;
                    gain[c0 + a] += (w ? static_cast<double>(w[i + r]) : 1.0) *
                                    (static_cast<double>(closest[i + r]) - sqdist);
                    if (!accept) continue;
                    closest[i + r] = sqdist;
                    set_floor(sketch, i + r, sqdist);
                }
            }
        }
    }
}

template <class T>
double total_block(const T* p, const T* w, std::ptrdiff_t begin, std::ptrdiff_t end) {
    double sum = 0;
    if (w) {
#pragma omp simd reduction(+ : sum)
        for (std::ptrdiff_t i = begin; i < end; ++i) sum += static_cast<double>(w[i]) * p[i];
    } else {
#pragma omp simd reduction(+ : sum)
        for (std::ptrdiff_t i = begin; i < end; ++i) sum += static_cast<double>(p[i]);
    }
    return sum;
}
