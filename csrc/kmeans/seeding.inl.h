#include "kmeans/dense.inl.h"
#include "kmeans/sparse.inl.h"

// What candidates of k-means++ would gain: the blocks.

// Rows of few columns: squared distances by differences, a panel of rows at a time. closest may be
// updated (accept, with one candidate). scratch: a B panel, two rows of tile_cols, and a vector a
// candidate.
template <class T>
void gains_small_block(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end, const T* w,
                       T* closest, const T* candidates, std::ptrdiff_t n_candidates, bool accept,
                       double* gain, T* scratch) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes, cols = tile_cols<T>;
    T *panel = scratch, *last = panel + cols * X.d, *last_w = last + cols, *taken = last_w + cols;
    for (std::ptrdiff_t c = 0; c < n_candidates * lanes; ++c) taken[c] = 0;
    for (std::ptrdiff_t i = begin; i < end; i += cols) {
        const std::ptrdiff_t rows = end - i < cols ? end - i : cols;
        pack_panel<T, cols>(X.data + i * X.d, X.d, rows, X.d, X.shift, panel);
        T* had = closest + i;
        const T* weight = w ? w + i : nullptr;
        if (rows < cols) {
            for (std::ptrdiff_t r = 0; r < cols; ++r) {
                last[r] = r < rows ? had[r] : T(0);  // nothing to gain on padding
                last_w[r] = r < rows && w ? weight[r] : T(1);
            }
            had = last;
            weight = last_w;
        }
        for (std::ptrdiff_t c = 0; c < n_candidates; ++c) {
            const T* y = candidates + c * X.d;
            Vec sqdist[tile_vecs];
            FML_UNROLL
            for (int v = 0; v < tile_vecs; ++v) sqdist[v] = broadcast<Vec>(T(0));
            for (std::ptrdiff_t p = 0; p < X.d; ++p) {
                FML_UNROLL
                for (int v = 0; v < tile_vecs; ++v) {
                    const Vec t = load<Vec>(panel + p * cols + v * lanes) - y[p];
                    sqdist[v] += t * t;
                }
            }
            Vec sum = load<Vec>(taken + c * lanes);
            FML_UNROLL
            for (int v = 0; v < tile_vecs; ++v) {
                const Vec old = load<Vec>(had + v * lanes);
                const Vec now = select(sqdist[v] < old, sqdist[v], old);
                sum += weight ? (old - now) * load<Vec>(weight + v * lanes) : old - now;
                if (accept) store(had + v * lanes, now);
            }
            store(taken + c * lanes, sum);
        }
        if (accept && rows < cols)
            for (std::ptrdiff_t r = 0; r < rows; ++r) closest[i + r] = last[r];
    }
    for (std::ptrdiff_t c = 0; c < n_candidates; ++c) {
        gain[c] = 0;
        for (int l = 0; l < lanes; ++l) gain[c] += taken[c * lanes + l];
    }
}

// Largest |x - shift| of every column over every stride-th row.
template <class T>
void sample_extent(const Rows<T>& X, std::ptrdiff_t stride, double* extent) {
    for (std::ptrdiff_t p = 0; p < X.d; ++p) extent[p] = 0;
    for (std::ptrdiff_t i = 0; i < X.n; i += stride)
        for (std::ptrdiff_t p = 0; p < X.d; ++p) {
            const double x = X.data[i * X.d + p] - (X.shift ? X.shift[p] : T(0));
            const double size = x < 0 ? -x : x;
            extent[p] = size > extent[p] ? size : extent[p];
        }
}

// Codes of rows [begin, end), begin a multiple of the panel width; see Sketch. What rounding and
// the range of codes lose is measured, not assumed.
template <class T>
void sketch_block(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end,
                  const Sketch& sketch) {
    constexpr int cols = tile_cols<float>, strip = 64;
    const double scale = 1 / sketch.unit;
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        std::int8_t* code = sketch.codes + i / cols * cols * X.d + i % cols;
        const T* x = X.data + i * X.d;
        double norm = 0, error = 0;
        for (std::ptrdiff_t p0 = 0; p0 < X.d; p0 += strip) {
            const int n = static_cast<int>(X.d - p0 < strip ? X.d - p0 : strip);
            double level[strip];
#pragma omp simd reduction(+ : norm, error)
            for (int p = 0; p < n; ++p) {
                const T from = X.shift ? x[p0 + p] - X.shift[p0 + p] : x[p0 + p];
                const double value = from * scale, step = sketch.step[p0 + p];
                const double exact = value * sketch.per_step[p0 + p];
                const double bounded = exact < 127 ? (exact > -127 ? exact : -127) : 127;
                level[p] = std::nearbyint(bounded);
                const double kept = level[p] * step, lost = value - kept;
                norm += kept * kept;
                error += lost * lost;
            }
            for (int p = 0; p < n; ++p) code[(p0 + p) * cols] = static_cast<std::int8_t>(level[p]);
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

template <class T> FML_INLINE void prefetch_row(const Rows<T>& X, std::ptrdiff_t i) {
    const char* row = reinterpret_cast<const char*>(X.data + i * X.d);
    const std::ptrdiff_t size = X.d * sizeof(T) < 1024 ? X.d * sizeof(T) : 1024;
    for (std::ptrdiff_t b = 0; b < size; b += 64) FML_PREFETCH(row + b);
}

// Which entries of a panel are above their floors: a bit a row, for every candidate.
struct Above {
    unsigned bits[max_sketched][tile_vecs];
};

// Scores of the panel of rows at i, all candidates; the rows to be read are asked for.
template <class T>
FML_INLINE void score_panel(const Rows<T>& X, std::ptrdiff_t i, std::ptrdiff_t end,
                            const Sketch& sketch, std::ptrdiff_t n_candidates, const float* panels,
                            const float* bias, Above& above) {
    using Vec = typename Simd<float>::Vec;
    constexpr int lanes = Simd<float>::lanes, cols = tile_cols<float>;
    float floor[cols];
    for (std::ptrdiff_t r = 0; r < cols; ++r)
        floor[r] = i + r < end ? sketch.floor[i + r] : std::numeric_limits<float>::infinity();
    unsigned any[tile_vecs] = {};
    for (std::ptrdiff_t c0 = 0; c0 < n_candidates; c0 += tile_rows) {
        Tile<float> tile;
        FML_UNROLL
        for (int a = 0; a < tile_rows; ++a) {
            FML_UNROLL
            for (int v = 0; v < tile_vecs; ++v) tile.at[a][v] = broadcast<Vec>(bias[c0 + a]);
        }
        tile_multiply<Product>(panels + c0 * X.d, sketch.codes + i * X.d, X.d, tile);
        for (int a = 0; a < tile_rows && c0 + a < n_candidates; ++a)
            for (int v = 0; v < tile_vecs; ++v) {
                const unsigned bits = not_below(tile.at[a][v], load<Vec>(floor + v * lanes));
                above.bits[c0 + a][v] = bits;
                any[v] |= bits;
            }
    }
    for (int v = 0; v < tile_vecs; ++v)
        for (; any[v]; any[v] &= any[v] - 1) {
            const std::ptrdiff_t r = i + v * lanes + lowest_bit(any[v]);
            if (r < end) prefetch_row(X, r);
        }
}

// The distances themselves, by differences, where `above` says so.
template <class T>
FML_INLINE void take_gains(const Rows<T>& X, std::ptrdiff_t i, std::ptrdiff_t end, const T* w,
                           const T* closest, const Sketch& sketch, const std::ptrdiff_t* candidates,
                           std::ptrdiff_t n_candidates, const Above& above, double* gain) {
    for (std::ptrdiff_t c = 0; c < n_candidates; ++c) {
        const T* y = X.data + candidates[c] * X.d;
        double sum = 0;
        for (int v = 0; v < tile_vecs; ++v)
            for (unsigned bits = above.bits[c][v]; bits; bits &= bits - 1) {
                const std::ptrdiff_t r = i + v * Simd<float>::lanes + lowest_bit(bits);
                if (r >= end) break;
                const T sqdist = squared_distance(y, X.data + r * X.d, X.d);
                if (!(sqdist < closest[r])) continue;
                sketch.nearer[r] |= std::uint32_t{1} << c;
                sum += (w ? static_cast<double>(w[r]) : 1.0) *
                       (static_cast<double>(closest[r]) - sqdist);
            }
        gain[c] += sum;
    }
}

// The sketched form of gains_small_block: scores x̂·c - |c|²/2 from codes, and only where a score
// is above the row's floor the distance itself. panels: the candidates times step as A panels,
// with their biases. sketch.nearer says for which candidates a row has something to gain.
template <class T>
void gains_sketched_block(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end, const T* w,
                          const T* closest, const Sketch& sketch, const std::ptrdiff_t* candidates,
                          std::ptrdiff_t n_candidates, const float* panels, const float* bias,
                          double* gain) {
    constexpr int cols = tile_cols<float>;
    for (std::ptrdiff_t c = 0; c < n_candidates; ++c) gain[c] = 0;
    for (std::ptrdiff_t i = begin; i < end; ++i) sketch.nearer[i] = 0;
    // A panel's rows are read one panel later: by then they have come from memory.
    Above above[2];
    int now = 0;
    for (std::ptrdiff_t i = begin; i < end; i += cols, now = 1 - now) {
        score_panel(X, i, end, sketch, n_candidates, panels, bias, above[now]);
        if (i > begin)
            take_gains(X, i - cols, end, w, closest, sketch, candidates, n_candidates,
                       above[1 - now], gain);
    }
    const std::ptrdiff_t last = begin + (end - begin - 1) / cols * cols;
    take_gains(X, last, end, w, closest, sketch, candidates, n_candidates, above[1 - now], gain);
}

// Makes row `center` a center for the rows of [begin, end) with all of `bits` set in
// sketch.nearer (0: for all rows), if it is nearer.
template <class T>
void accept_block(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end, T* closest,
                  const Sketch& sketch, std::ptrdiff_t center, std::uint32_t bits) {
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        if ((sketch.nearer[i] & bits) != bits) continue;
        const T sqdist = squared_distance(X.data + center * X.d, X.data + i * X.d, X.d);
        if (!(sqdist < closest[i])) continue;
        closest[i] = sqdist;
        set_floor(sketch, i, sqdist);
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
