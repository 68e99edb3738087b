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
            if (sketch.rows) {
                float* row = sketch.rows + i * sketch.row + p0;
                const std::ptrdiff_t room = sketch.row - p0 < strip ? sketch.row - p0 : strip;
                for (int p = 0; p < room; ++p)
                    row[p] = static_cast<float>(exact[p] * sketch.per_step);
            }
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

#include "kmeans/tries.inl.h"
