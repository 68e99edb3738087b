// Scores in less precision than the rows have: bfloat16 where a region says that it is there,
// single precision (which only rows in double gain from) elsewhere. Two rows' scores are
// compared only as far as their error allows; what stays open is told to the caller.
#include "kmeans/nearest.inl.h"

#if defined(FML_BFLOAT16)

// Words of two entries each: coordinate 2q in the low half, 2q + 1 in the high one.
FML_INLINE constexpr std::ptrdiff_t narrow_depth(std::ptrdiff_t d) { return (d + 1) / 2; }

// Multiplies two pairs of bfloat16 at a time, twice as many as a fused multiply-add.
struct NarrowProduct {
    static FML_INLINE Simd<float>::Vec step(const Simd<float>::Vec& sum, const Simd<float>::Vec& b,
                                            float a) {
        return (Simd<float>::Vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)b,
                                                  (__m512bh)_mm512_set1_ps(a));
    }
};

// The nearest bfloat16, as the upper half of a float.
FML_INLINE Simd<float>::Index narrowed(const Simd<float>::Vec& x) {
    return ((Simd<float>::Index)x + 0x8000) & ~0xffff;
}

// A panel of floats as words; adds to lost what that takes off each row, squared.
template <int vecs>
FML_INLINE void narrow_panel(const float* panel, std::ptrdiff_t d, float* words, float* lost) {
    using Vec = typename Simd<float>::Vec;
    using Index = typename Simd<float>::Index;
    constexpr int lanes = Simd<float>::lanes, width = vecs * lanes;
    Vec sum[vecs];
    for (int v = 0; v < vecs; ++v) sum[v] = broadcast<Vec>(0.0f);
    for (std::ptrdiff_t p = 0; p < d; p += 2)
        for (int v = 0; v < vecs; ++v) {
            const Vec low = load<Vec>(panel + p * width + v * lanes);
            const Vec high =
                p + 1 < d ? load<Vec>(panel + (p + 1) * width + v * lanes) : broadcast<Vec>(0.0f);
            const Index a = narrowed(low), b = narrowed(high);
            const Vec da = low - (Vec)a, db = high - (Vec)b;
            sum[v] += da * da + db * db;
            store(words + p / 2 * width + v * lanes, ((a >> 16) & 0xffff) | b);
        }
    for (int v = 0; v < vecs; ++v) store(lost + v * lanes, sum[v]);
}

// The best and the second best score, with the index of its center in the last bits of each, which
// saves comparisons: scores need only be known as well as their operands.
struct NarrowNearest {
    using Vec = typename Simd<float>::Vec;
    using Index = typename Simd<float>::Index;
    const float* bias;
    std::int32_t index_bits;  // ones where the index is
    Index here;
    Vec best[tile_vecs], second[tile_vecs];

    FML_INLINE NarrowNearest(const float* bias_of_centers, std::int32_t bits)
        : bias(bias_of_centers), index_bits(bits), here(broadcast<Index>(0)) {
        for (int v = 0; v < tile_vecs; ++v)
            best[v] = second[v] = broadcast<Vec>(-std::numeric_limits<float>::infinity());
    }
    FML_INLINE void begin(std::ptrdiff_t i0, Tile<float>& tile) const {
        FML_UNROLL
        for (int i = 0; i < tile_rows; ++i) {
            FML_UNROLL
            for (int v = 0; v < tile_vecs; ++v) tile.at[i][v] = broadcast<Vec>(bias[i0 + i]);
        }
    }
    // In so many words, or GCC takes them apart.
    static FML_INLINE Vec larger(const Vec& a, const Vec& b) {
        return (Vec)_mm512_max_ps((__m512)a, (__m512)b);
    }
    static FML_INLINE Vec smaller(const Vec& a, const Vec& b) {
        return (Vec)_mm512_min_ps((__m512)a, (__m512)b);
    }
    FML_INLINE void end(std::ptrdiff_t, const Tile<float>& tile) {
        FML_UNROLL
        for (int i = 0; i < tile_rows; ++i) {
            FML_UNROLL
            for (int v = 0; v < tile_vecs; ++v) {
                const Vec score = (Vec)(((Index)tile.at[i][v] & ~index_bits) | here);
                second[v] = larger(second[v], smaller(score, best[v]));
                best[v] = larger(score, best[v]);
            }
            here += 1;
        }
    }
    FML_INLINE Index index(int v) const { return (Index)best[v] & index_bits; }
};

#else

FML_INLINE constexpr std::ptrdiff_t narrow_depth(std::ptrdiff_t d) { return d; }
using NarrowProduct = Product;

struct NarrowNearest : Nearest<float, true> {
    FML_INLINE NarrowNearest(const float* bias_of_centers, std::int32_t)
        : Nearest<float, true>(bias_of_centers) {}
    FML_INLINE typename Simd<float>::Index index(int v) const {
        return Nearest<float, true>::index[v];
    }
};

#endif

// |x - x̂| of the rows of a panel of floats, and the panel in words.
FML_INLINE void narrow_rows(const float* panel, std::ptrdiff_t d, float* words, const float* norms,
                            float* lost) {
    constexpr int cols = tile_cols<float>;
#if defined(FML_BFLOAT16)
    narrow_panel<tile_vecs>(panel, d, words, lost);
    for (int r = 0; r < cols; ++r) lost[r] = std::sqrt(lost[r]) * bound_up;
    for (int r = 0; r < cols; ++r) lost[r] += std::sqrt(norms[r]) * 1.2e-7f;  // if X is double
#else
    (void)panel, (void)d, (void)words;
    for (int r = 0; r < cols; ++r) lost[r] = std::sqrt(norms[r]) * 1.2e-7f;
#endif
}

// Entries as words keep them, and their bits.
template <class T>
FML_INLINE void keep_entries(const T* from, int n, float* kept, std::uint32_t* bits) {
    for (int p = 0; p < n; ++p) kept[p] = static_cast<float>(from[p]);
    std::memcpy(bits, kept, n * sizeof *bits);
#if defined(FML_BFLOAT16)
    for (int p = 0; p < n; ++p) bits[p] = (bits[p] + 0x8000) & 0xffff0000u;
    std::memcpy(kept, bits, n * sizeof *bits);
#endif
}

// A panel i of the centers in words, with starting scores. *lost: the largest |c - ĉ|².
template <class T>
void pack_narrow_panel(const T* centers, std::ptrdiff_t k, std::ptrdiff_t d, std::ptrdiff_t i,
                       float* panels, float* bias, double* lost) {
    constexpr int strip = 64;
    std::uint32_t* words =
        reinterpret_cast<std::uint32_t*>(panels) + i * tile_rows * narrow_depth(d);
    *lost = 0;
    for (std::ptrdiff_t r = 0; r < tile_rows; ++r) {
        const std::ptrdiff_t j = i * tile_rows + r;
        const bool real = j < k;
        double norm = 0, error = 0;
        for (std::ptrdiff_t p0 = 0; p0 < d; p0 += strip) {
            const int n = static_cast<int>(d - p0 < strip ? d - p0 : strip);
            T c[strip] = {};
            float kept[strip] = {};
            std::uint32_t bits[strip] = {};
            if (real) std::memcpy(c, centers + j * d + p0, n * sizeof(T));
            keep_entries(c, strip, kept, bits);
#pragma omp simd reduction(+ : norm, error)
            for (int p = 0; p < strip; ++p) {
                const double exact = c[p], off = exact - kept[p];
                norm += exact * exact;
                error += off * off;
            }
#if defined(FML_BFLOAT16)
            for (int q = 0; 2 * q < n; ++q)
                words[(p0 / 2 + q) * tile_rows + r] = bits[2 * q] >> 16 | bits[2 * q + 1];
#else
            for (int p = 0; p < n; ++p) words[(p0 + p) * tile_rows + r] = bits[p];
#endif
        }
        bias[j] = real ? static_cast<float>(-0.5 * norm) : std::numeric_limits<float>::lowest();
        *lost = error > *lost ? error : *lost;
    }
}

// Scores of the rows of one panel. kept: null, or of all rows in order. scratch: a panel of floats
// and one of words, then the spill.
template <class T, class Epilogue>
FML_INLINE void score_narrow(const Rows<T>& X, const Picked& pick, std::ptrdiff_t i,
                             const Packed<float>& centers, const KeptRows* kept, float* scratch,
                             float* norms, float* lost, Epilogue& epilogue) {
    constexpr int cols = tile_cols<float>;
    const std::ptrdiff_t depth = narrow_depth(X.d);
    float *panel = scratch, *words = panel + cols * X.d, *spill = words + cols * depth;
    if (kept) words = kept->words + i * depth;
    if (kept && kept->filled) {
        std::memcpy(norms, kept->norms + i, cols * sizeof *norms);
        std::memcpy(lost, kept->lost + i, cols * sizeof *lost);
    } else {
#if !defined(FML_BFLOAT16)
        panel = words;
#endif
        gather_panel<float, cols>(X, pick, i, panel);
        panel_norms(panel, X.d, norms);
        narrow_rows(panel, X.d, words, norms, lost);
        if (kept) {
            std::memcpy(kept->norms + i, norms, cols * sizeof *norms);
            std::memcpy(kept->lost + i, lost, cols * sizeof *lost);
        }
    }
    multiply_panel<NarrowProduct>(centers.panels, centers.n_panels, words, depth, spill, epilogue);
}

// Labels rows [begin, end) of `pick` as far as scores tell for sure, as label_rows_block would;
// lists the others in `open`, which may be list + begin. Returns how many those are.
template <class T, bool bounded>
std::ptrdiff_t label_narrow_block(const Rows<T>& X, const std::int32_t* list, std::ptrdiff_t begin,
                                  std::ptrdiff_t end, const Packed<float>& centers,
                                  std::int32_t index_bits, const Bounds& bounds,
                                  const KeptRows* kept, std::int32_t* labels, std::int32_t* open,
                                  std::ptrdiff_t* changed, float* scratch) {
    constexpr int lanes = Simd<float>::lanes, cols = tile_cols<float>;
    const Picked pick{list, end};
    std::ptrdiff_t n_open = 0;
    for (std::ptrdiff_t i = begin; i < end; i += cols) {
        const std::ptrdiff_t rows = end - i < cols ? end - i : cols;
        float norms[cols], lost[cols], best[cols], second[cols], upper[cols], lower[cols];
        std::int32_t label[cols], sure[cols];
        NarrowNearest nearest(centers.bias, index_bits);
        score_narrow(X, pick, i, centers, kept, scratch, norms, lost, nearest);
        for (int v = 0; v < tile_vecs; ++v) {
            store(best + v * lanes, nearest.best[v]);
            store(second + v * lanes, nearest.second[v]);
            store(label + v * lanes, nearest.index(v));
        }
#pragma omp simd
        for (int r = 0; r < cols; ++r) {
            const float error =
                twice_error<float>(centers.margin, norms[r], std::sqrt(norms[r]), lost[r]);
            sure[r] = best[r] - second[r] > error;  // not if any of it is NaN
            if (bounded) {
                upper[r] = upper_bound<float>(norms[r] - 2 * best[r], error);
                lower[r] = lower_bound<float>(norms[r] - 2 * second[r], error);
            }
        }
        for (std::ptrdiff_t r = 0; r < rows; ++r) {
            const std::ptrdiff_t row = pick(i + r);
            if (!sure[r]) {
                open[n_open++] = static_cast<std::int32_t>(row);
                continue;
            }
            *changed += labels[row] != label[r];
            labels[row] = label[r];
            if (bounded) {
                bounds.upper[row] = upper[r];
                bounds.lower[row] = lower[r];
            }
        }
    }
    return n_open;
}

// near[i] = at most the distance from row i to the nearest of the centers.
template <class T>
void reach_narrow_block(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end,
                        const Packed<float>& centers, const KeptRows* kept, float* near,
                        float* scratch) {
    constexpr int lanes = Simd<float>::lanes, cols = tile_cols<float>;
    const Picked pick{nullptr, end};
    for (std::ptrdiff_t i = begin; i < end; i += cols) {
        const std::ptrdiff_t rows = end - i < cols ? end - i : cols;
        float norms[cols], lost[cols], best[cols];
        Nearest<float, false> nearest(centers.bias);
        score_narrow(X, pick, i, centers, kept, scratch, norms, lost, nearest);
        for (int v = 0; v < tile_vecs; ++v) store(best + v * lanes, nearest.best[v]);
        for (std::ptrdiff_t r = 0; r < rows; ++r) {
            const float error =
                twice_error<float>(centers.margin, norms[r], std::sqrt(norms[r]), lost[r]);
            const float least = lower_bound<float>(norms[r] - 2 * best[r], error);
            near[i + r] = least >= 0 ? least : 0.0f;
        }
    }
}
