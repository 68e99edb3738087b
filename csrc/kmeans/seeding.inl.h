#include "kmeans/dense.inl.h"
// after what it stands on
#include "kmeans/codes.inl.h"
#include "kmeans/sparse.inl.h"

// What candidates of k-means++ would gain: the blocks.

// Rows [begin, end), begin a multiple of the panel width, as panels of columns.
template <class T>
void seed_panels(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end, T* panels) {
    constexpr int cols = tile_cols<T>;
    for (std::ptrdiff_t i = begin; i < end; i += cols)
        pack_panel<T, cols>(X.data + i * X.d, X.d, end - i < cols ? end - i : cols, X.d, X.shift,
                            panels + (i - begin) * X.d);
}

// Rows of few columns: squared distances by differences, a panel of rows at a time. closest may be
// updated (accept, with one candidate). panels: of all rows, or null. scratch: a B panel, two rows
// of tile_cols, and a vector a candidate.
template <class T>
void gains_small_block(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end, const T* w,
                       T* closest, const T* panels, const T* candidates,
                       std::ptrdiff_t n_candidates, bool accept, double* gain, T* scratch) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes, cols = tile_cols<T>;
    T *packed = scratch, *last = packed + cols * X.d, *last_w = last + cols, *taken = last_w + cols;
    for (std::ptrdiff_t c = 0; c < n_candidates * lanes; ++c) taken[c] = 0;
    for (std::ptrdiff_t i = begin; i < end; i += cols) {
        const std::ptrdiff_t rows = end - i < cols ? end - i : cols;
        const T* panel = panels ? panels + i * X.d : packed;
        if (!panels) seed_panels(X, i, i + rows, packed);
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

// extent[s] = the largest entry of row s * stride, less the shift, in size.
template <class T>
void sample_extent(const Rows<T>& X, std::ptrdiff_t stride, double* extent) {
    for (std::ptrdiff_t i = 0; i < X.n; i += stride) {
        double most = 0;
        for (std::ptrdiff_t p = 0; p < X.d; ++p) {
            const double x = X.data[i * X.d + p] - (X.shift ? X.shift[p] : T(0));
            const double size = x < 0 ? -x : x;
            most = size > most ? size : most;
        }
        extent[i / stride] = most;
    }
}

// Codes of rows [begin, end), begin a multiple of the panel width; see Sketch. What rounding and
// the range of codes lose is measured, not assumed.
template <class T>
void sketch_block(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end,
                  const Sketch& sketch) {
    constexpr int strip = 64;
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        const T* x = X.data + i * X.d;
        double norm = 0, error = 0;
        for (std::ptrdiff_t p0 = 0; p0 < X.d; p0 += strip) {
            const int n = static_cast<int>(X.d - p0 < strip ? X.d - p0 : strip);
            double exact[strip] = {}, kept[strip];
            std::int8_t code[strip];
            if (X.shift) {
                for (int p = 0; p < n; ++p) exact[p] = x[p0 + p] - X.shift[p0 + p];
            } else {
                for (int p = 0; p < n; ++p) exact[p] = x[p0 + p];
            }
            // Of constant length, for which there are vectors of any width.
#pragma omp simd reduction(+ : norm, error)
            for (int p = 0; p < strip; ++p) {
                const double level = exact[p] * sketch.per_step;
                const double bounded = level < 127 ? (level > -127 ? level : -127) : 127;
                kept[p] = std::nearbyint(bounded);
                norm += kept[p] * kept[p];
                error += (level - kept[p]) * (level - kept[p]);
            }
            for (int p = 0; p < strip; ++p) code[p] = static_cast<std::int8_t>(kept[p]);
            if (sketch.rows)
                for (int p = 0; p < n; ++p)
                    sketch.rows[i * X.d + p0 + p] = static_cast<float>(exact[p] * sketch.per_step);
            put_codes(sketch.codes, i, p0, X.d, code, n);
        }
        sketch.half_norm[i] = static_cast<float>(0.5 * norm);
        sketch.error[i] = static_cast<float>(std::sqrt(error) * (1 + 1e-6));
    }
}

// From the closest squared distance.
template <class T> FML_INLINE void set_reach(const Sketch& sketch, std::ptrdiff_t i, T closest) {
    const double reach =
        std::sqrt(static_cast<double>(closest)) * sketch.per_step + sketch.error[i];
    sketch.reach[i] = static_cast<float>(reach * (1 + 1e-6));
}

template <class T> FML_INLINE void prefetch_row(const T* data, std::ptrdiff_t d, std::ptrdiff_t i) {
    const char* row = reinterpret_cast<const char*>(data + i * d);
    const std::ptrdiff_t size = d * sizeof(T) < 1024 ? d * sizeof(T) : 1024;
    for (std::ptrdiff_t b = 0; b < size; b += 64) FML_PREFETCH(row + b);
}

// Which entries of a panel are above their floors: a bit a row, for every candidate.
struct Above {
    std::uint64_t rows[max_sketched];
};

// Scores of the panel of rows at i, all candidates, and whether they are so high that the distance
// may be below the closest; the rows to be read are asked for. error: that of any candidate.
template <class T>
FML_INLINE void score_panel(const Rows<T>& X, std::ptrdiff_t i, const Sketch& sketch,
                            std::ptrdiff_t n_candidates, const float* panels, const float* bias,
                            float error, Above& above) {
    using Vec = typename Simd<float>::Vec;
    constexpr int lanes = Simd<float>::lanes;
    const std::ptrdiff_t words = code_words(X.d);
    const float slack = code_slack(X.d);
    Vec floor[tile_vecs];
    for (int v = 0; v < tile_vecs; ++v) {
        const Vec reach = load<Vec>(sketch.reach + i + v * lanes) + error;
        const Vec half = load<Vec>(sketch.half_norm + i + v * lanes) - slack;
        floor[v] = half - reach * reach * (0.5f * (1 + 2e-6f));
    }
    std::uint64_t any = 0;
    for (std::ptrdiff_t c0 = 0; c0 < n_candidates; c0 += tile_rows) {
        Tile<float> tile;
        code_scores(panels + c0 * words, bias + c0, sketch.codes + i * words * codes_a_word, words,
                    tile);
        for (int a = 0; a < tile_rows && c0 + a < n_candidates; ++a) {
            std::uint64_t rows = 0;
            FML_UNROLL
            for (int v = 0; v < tile_vecs; ++v)
                rows |= std::uint64_t{not_below(tile.at[a][v], floor[v])} << v * lanes;
            above.rows[c0 + a] = rows;
            any |= rows;
        }
    }
    for (; any; any &= any - 1) {
        const std::ptrdiff_t r = i + lowest_bit(any);
        if (r >= X.n) break;
        if (sketch.rows)
            prefetch_row(sketch.rows, X.d, r);
        else
            prefetch_row(X.data, X.d, r);
    }
}

// Distances in single precision, where `above` says so, and how much gains may be off. With rows x
// and y rounded by the part e, and sums of d terms, a square is off by at most (d + 8) e times
// itself and 4 e times |y| times its root; the mean of squares bounds the latter.
template <class T>
FML_INLINE void take_gains_single(const Rows<T>& X, std::ptrdiff_t i, const T* w, const T* closest,
                                  const Sketch& sketch, const std::ptrdiff_t* candidates,
                                  std::ptrdiff_t n_candidates, const Above& above, double* gain) {
    constexpr double e = 0x1.1p-24;
    constexpr float most = 1e30f;  // beyond it squares may overflow
    const double unit = sketch.per_step * sketch.per_step, relative = (X.d + 10) * e;
    for (std::ptrdiff_t c = 0; c < n_candidates; ++c) {
        const std::ptrdiff_t j = candidates[c];
        const double norm = std::sqrt(2.0 * sketch.half_norm[j]) + sketch.error[j];
        double sum = 0, off = 0;
        for (std::uint64_t rows = above.rows[c]; rows; rows &= rows - 1) {
            const std::ptrdiff_t r = i + lowest_bit(rows);
            if (r >= X.n) break;
            double square = squared_distance(sketch.rows + j * X.d, sketch.rows + r * X.d, X.d);
            if (!(square < most))
                square = unit * squared_distance(X.data + j * X.d, X.data + r * X.d, X.d);
            const double error = relative * square + 2 * e * norm * norm;
            const double weight = w ? static_cast<double>(w[r]) : 1.0;
            const double gained = closest[r] * unit - square;
            const bool less = gained > -error;
            sketch.nearer[r] |= std::uint32_t{less} << c;
            sum += gained > 0 ? weight * gained : 0.0;
            off += less ? weight * error : 0.0;
        }
        gain[c] += sum / unit;
        gain[n_candidates + c] += off / unit;
    }
}

// The distances themselves, by differences.
template <class T>
FML_INLINE void take_gains(const Rows<T>& X, std::ptrdiff_t i, const T* w, const T* closest,
                           const Sketch& sketch, const std::ptrdiff_t* candidates,
                           std::ptrdiff_t n_candidates, const Above& above, double* gain) {
    if (sketch.rows)
        return take_gains_single(X, i, w, closest, sketch, candidates, n_candidates, above, gain);
    for (std::ptrdiff_t c = 0; c < n_candidates; ++c) {
        std::uint64_t rows = above.rows[c];
        if (!rows) continue;
        const T* y = X.data + candidates[c] * X.d;
        double sum = 0;
        for (; rows; rows &= rows - 1) {
            const std::ptrdiff_t r = i + lowest_bit(rows);
            if (r >= X.n) break;
            const T sqdist = squared_distance(y, X.data + r * X.d, X.d);
            // No branch, which would be guessed wrong as often as not.
            const bool less = sqdist < closest[r];
            const double gained = static_cast<double>(closest[r]) - sqdist;
            sketch.nearer[r] |= std::uint32_t{less} << c;
            sum += less ? (w ? static_cast<double>(w[r]) : 1.0) * gained : 0.0;
        }
        gain[c] += sum;
    }
}

// The sketched form of gains_small_block: scores x̂·ĉ - |ĉ|²/2 of codes, and only where a score is
// high enough the distance itself. panels: the candidates, with their biases; error: the largest of
// theirs. sketch.nearer says for which candidates a row may have something to gain. gain: as many
// again follow, what each may be off.
template <class T>
void gains_sketched_block(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end, const T* w,
                          const T* closest, const Sketch& sketch, const std::ptrdiff_t* candidates,
                          std::ptrdiff_t n_candidates, const float* panels, const float* bias,
                          float error, double* gain) {
    constexpr int cols = tile_cols<float>;
    for (std::ptrdiff_t c = 0; c < 2 * n_candidates; ++c) gain[c] = 0;
    for (std::ptrdiff_t i = begin; i < end; ++i) sketch.nearer[i] = 0;
    // A panel's rows are read one panel later: by then they have come from memory.
    Above above[2];
    int now = 0;
    for (std::ptrdiff_t i = begin; i < end; i += cols, now = 1 - now) {
        score_panel(X, i, sketch, n_candidates, panels, bias, error, above[now]);
        if (i > begin)
            take_gains(X, i - cols, w, closest, sketch, candidates, n_candidates, above[1 - now],
                       gain);
    }
    const std::ptrdiff_t last = begin + (end - begin - 1) / cols * cols;
    take_gains(X, last, w, closest, sketch, candidates, n_candidates, above[1 - now], gain);
}

// Makes row `center` a center for the rows of [begin, end) with all of `bits` set in
// sketch.nearer (0: for all rows), if it is nearer.
template <class T>
void accept_block(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end, T* closest,
                  const Sketch& sketch, std::ptrdiff_t center, std::uint32_t bits) {
    constexpr std::ptrdiff_t strip = 64;
    for (std::ptrdiff_t i0 = begin; i0 < end; i0 += strip) {
        const std::ptrdiff_t rows = end - i0 < strip ? end - i0 : strip;
        std::int32_t listed[strip], n = 0, any = 0;
#pragma omp simd reduction(| : any)
        for (std::ptrdiff_t r = 0; r < rows; ++r) any |= (sketch.nearer[i0 + r] & bits) == bits;
        if (!any) continue;
        for (std::ptrdiff_t r = 0; r < rows; ++r) {
            listed[n] = static_cast<std::int32_t>(r);
            n += (sketch.nearer[i0 + r] & bits) == bits;
        }
        for (std::int32_t l = 0; l < n; ++l) prefetch_row(X.data, X.d, i0 + listed[l]);
        for (std::int32_t l = 0; l < n; ++l) {
            const std::ptrdiff_t i = i0 + listed[l];
            const T sqdist = squared_distance(X.data + center * X.d, X.data + i * X.d, X.d);
            if (!(sqdist < closest[i])) continue;
            closest[i] = sqdist;
            set_reach(sketch, i, sqdist);
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
