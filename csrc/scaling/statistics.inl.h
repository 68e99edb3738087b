// Statistics of columns over a tile: `rows` rows of `width` values, `stride` apart. Where columns
// are few, the driver hands over several rows as one (see `Tile`), so that the inner loops are
// long: then value j belongs to column j % d.

#include "common/simd.inl.h"

// Chan, Golub, LeVeque (1983), eq. 2.1: `into` becomes the moments of both.
inline void merge_moments(const Moments& into, const Moments& from, std::ptrdiff_t d) {
    for (std::ptrdiff_t j = 0; j < d; ++j) {
        const double n = into.count[j] + from.count[j];
        const double share = n != 0 ? from.count[j] / n : 0;
        const double delta = from.mean[j] - into.mean[j];
        into.mean[j] = from.count[j] == n ? from.mean[j] : into.mean[j] + delta * share;
        into.square[j] += from.square[j] + delta * delta * into.count[j] * share;
        into.count[j] = n;
    }
}

template <class T>
void sums_block(const T* X, std::ptrdiff_t rows, std::ptrdiff_t width, std::ptrdiff_t stride,
                double* sum) {
    std::ptrdiff_t i = 0;
    for (; i + 4 <= rows; i += 4, X += 4 * stride) {
        const T *a = X, *b = X + stride, *c = b + stride, *e = c + stride;
#pragma omp simd
        for (std::ptrdiff_t j = 0; j < width; ++j)
            sum[j] += (static_cast<double>(a[j]) + b[j]) + (static_cast<double>(c[j]) + e[j]);
    }
    for (; i < rows; ++i, X += stride) {
#pragma omp simd
        for (std::ptrdiff_t j = 0; j < width; ++j) sum[j] += X[j];
    }
}

// first[j] += x - mean[j], second[j] += its square.
template <class T>
void deviations_block(const T* X, std::ptrdiff_t rows, std::ptrdiff_t width, std::ptrdiff_t stride,
                      const double* mean, double* first, double* second) {
    std::ptrdiff_t i = 0;
    constexpr int at_once = 8;  // rows: so often are first and second read and written
    for (; i + at_once <= rows; i += at_once, X += at_once * stride) {
#pragma omp simd
        for (std::ptrdiff_t j = 0; j < width; ++j) {
            double sum = 0, squares = 0;
            FML_UNROLL
            for (int r = 0; r < at_once; ++r) {
                const double p = X[r * stride + j] - mean[j];
                sum += p;
                squares += p * p;
            }
            first[j] += sum;
            second[j] += squares;
        }
    }
    for (; i < rows; ++i, X += stride) {
#pragma omp simd
        for (std::ptrdiff_t j = 0; j < width; ++j) {
            const double p = X[j] - mean[j];
            first[j] += p;
            second[j] += p * p;
        }
    }
}

// The same two for values that may be NaN, or have weights (w, one a row, or null).
template <class T>
bool weighted_sums_block(const T* X, std::ptrdiff_t rows, std::ptrdiff_t width,
                         std::ptrdiff_t stride, const T* w, double* count, double* sum) {
    int infinite = 0;
    const T inf = std::numeric_limits<T>::infinity();
    for (std::ptrdiff_t i = 0; i < rows; ++i, X += stride) {
        const double wi = w ? w[i] : 1;
#pragma omp simd reduction(| : infinite)
        for (std::ptrdiff_t j = 0; j < width; ++j) {
            const T x = X[j];
            infinite |= std::fabs(x) == inf;
            sum[j] += x == x ? wi * x : 0;
            count[j] += x == x ? wi : 0;
        }
    }
    return infinite;
}

template <class T>
void weighted_deviations_block(const T* X, std::ptrdiff_t rows, std::ptrdiff_t width,
                               std::ptrdiff_t stride, const T* w, const double* mean, double* first,
                               double* second) {
    for (std::ptrdiff_t i = 0; i < rows; ++i, X += stride) {
        const double wi = w ? w[i] : 1;
#pragma omp simd
        for (std::ptrdiff_t j = 0; j < width; ++j) {
            const T x = X[j];
            const double p = x == x ? x - mean[j] : 0;
            first[j] += wi * p;
            second[j] += wi * p * p;
        }
    }
}

template <class T>
void extremes_block(const T* X, std::ptrdiff_t rows, std::ptrdiff_t width, std::ptrdiff_t stride,
                    T* least, T* largest) {
    std::ptrdiff_t i = 0;
    // A comparison with NaN is false: the old value stays.
    for (; i + 4 <= rows; i += 4, X += 4 * stride) {
        const T *a = X, *b = X + stride, *c = b + stride, *e = c + stride;
#pragma omp simd
        for (std::ptrdiff_t j = 0; j < width; ++j) {
            T low = least[j], high = largest[j];
            low = a[j] < low ? a[j] : low;
            high = a[j] > high ? a[j] : high;
            low = b[j] < low ? b[j] : low;
            high = b[j] > high ? b[j] : high;
            low = c[j] < low ? c[j] : low;
            high = c[j] > high ? c[j] : high;
            low = e[j] < low ? e[j] : low;
            high = e[j] > high ? e[j] : high;
            least[j] = low;
            largest[j] = high;
        }
    }
    for (; i < rows; ++i, X += stride) {
#pragma omp simd
        for (std::ptrdiff_t j = 0; j < width; ++j) {
            least[j] = X[j] < least[j] ? X[j] : least[j];
            largest[j] = X[j] > largest[j] ? X[j] : largest[j];
        }
    }
}

// Rows of a tile taken `fold` at a time, and what is left of them.
template <class T> struct Folded {
    const T* X;
    std::ptrdiff_t rows, width, stride;  // of the long rows
    std::ptrdiff_t rest;                 // values of the last row, which is shorter
    const T* tail;
    Folded(const T* X_, std::ptrdiff_t rows_, std::ptrdiff_t d, std::ptrdiff_t stride_,
           std::ptrdiff_t fold)
        : X(X_), rows(rows_ / fold), width(fold * d), stride(fold > 1 ? fold * d : stride_),
          rest(rows_ % fold * d), tail(X_ + rows * stride) {}
};

// Adds the `fold` parts of `sum` to its first.
inline void add_up(double* sum, std::ptrdiff_t fold, std::ptrdiff_t d) {
    for (std::ptrdiff_t f = 1; f < fold; ++f)
        for (std::ptrdiff_t j = 0; j < d; ++j) sum[j] += sum[f * d + j];
}
inline void clear(double* values, std::ptrdiff_t size) {
    for (std::ptrdiff_t j = 0; j < size; ++j) values[j] = 0;
}
inline void repeat(double* values, std::ptrdiff_t fold, std::ptrdiff_t d) {
    for (std::ptrdiff_t j = d; j < fold * d; ++j) values[j] = values[j - d];
}

template <class T>
void tile_sums(const Folded<T>& t, std::ptrdiff_t fold, std::ptrdiff_t d, double* sum) {
    clear(sum, fold * d);
    sums_block(t.X, t.rows, t.width, t.stride, sum);
    sums_block(t.tail, t.rest ? 1 : 0, t.rest, t.stride, sum);
    add_up(sum, fold, d);
}

// Deviations from the mean of some of the tile's rows. Of s out of n that mean is off by no more
// than sqrt(square / s), whatever the values are, so what is subtracted below is at most n / s
// times what is left: three bits. Returns false if there is NaN or infinity, or sums overflow.
template <class T>
bool plain_deviations(const Folded<T>& t, const T* X, std::ptrdiff_t rows, std::ptrdiff_t d,
                      std::ptrdiff_t stride, std::ptrdiff_t fold, double* count, double* mean,
                      double* first, double* second) {
    const std::ptrdiff_t some = rows < 32 ? (rows < 4 ? rows : 4) : rows / 8;
    tile_sums(Folded<T>(X, some, d, stride, fold), fold, d, mean);
    for (std::ptrdiff_t j = 0; j < d; ++j) mean[j] /= some;
    repeat(mean, fold, d);
    clear(first, 2 * t.width);
    deviations_block(t.X, t.rows, t.width, t.stride, mean, first, second);
    deviations_block(t.tail, t.rest ? 1 : 0, t.rest, t.stride, mean, first, second);
    add_up(first, fold, d);
    add_up(second, fold, d);
    bool finite = true;
    for (std::ptrdiff_t j = 0; j < d; ++j) {
        count[j] = rows;
        finite &= std::fabs(first[j]) <= std::numeric_limits<double>::max();
    }
    return finite;
}

// The same of values that may be NaN or have weights, from their mean. Returns whether there is
// an infinity.
template <class T>
bool weighted_deviations(const Folded<T>& t, const T* w, std::ptrdiff_t d, std::ptrdiff_t fold,
                         double* count, double* mean, double* first, double* second) {
    clear(count, 2 * t.width);
    bool infinite = weighted_sums_block(t.X, t.rows, t.width, t.stride, w, count, mean);
    infinite |= weighted_sums_block(t.tail, t.rest ? 1 : 0, t.rest, t.stride, w, count, mean);
    add_up(count, fold, d);
    add_up(mean, fold, d);
    for (std::ptrdiff_t j = 0; j < d; ++j) mean[j] = count[j] != 0 ? mean[j] / count[j] : 0;
    repeat(mean, fold, d);
    clear(first, 2 * t.width);
    weighted_deviations_block(t.X, t.rows, t.width, t.stride, w, mean, first, second);
    weighted_deviations_block(t.tail, t.rest ? 1 : 0, t.rest, t.stride, w, mean, first, second);
    add_up(first, fold, d);
    add_up(second, fold, d);
    return infinite;
}

// Adds a tile to `into`. `work` holds 4 * fold * d values. Returns whether there was an infinity.
// fold must be 1 if there are weights, and stride d if it is not.
template <class T>
bool add_tile(const T* X, const T* w, std::ptrdiff_t rows, std::ptrdiff_t d, std::ptrdiff_t stride,
              std::ptrdiff_t fold, const Moments& into, double* work) {
    const Folded<T> t(X, rows, d, stride, fold);
    double *count = work, *mean = count + t.width, *first = mean + t.width,
           *second = first + t.width;
    bool infinite = false;
    if (w || !plain_deviations(t, X, rows, d, stride, fold, count, mean, first, second))
        infinite = weighted_deviations(t, w, d, fold, count, mean, first, second);
    for (std::ptrdiff_t j = 0; j < d; ++j) {
        const double shift = count[j] != 0 ? first[j] / count[j] : 0;
        mean[j] += shift;
        second[j] -= shift * first[j];
        second[j] = second[j] < 0 ? 0 : second[j];
    }
    merge_moments(into, {count, mean, second}, d);
    return infinite;
}

// Writes a tile of a matrix in Fortran order (columns `stride` apart) row by row.
template <class T>
void pack_columns(const T* X, std::ptrdiff_t rows, std::ptrdiff_t d, std::ptrdiff_t stride,
                  T* out) {
    constexpr std::ptrdiff_t side = 8;
    for (std::ptrdiff_t i0 = 0; i0 < rows; i0 += side) {
        const std::ptrdiff_t i1 = i0 + side < rows ? i0 + side : rows;
        for (std::ptrdiff_t j = 0; j < d; ++j)
            for (std::ptrdiff_t i = i0; i < i1; ++i) out[i * d + j] = X[j * stride + i];
    }
}
template <class T>
void pack_rows(const T* X, std::ptrdiff_t rows, std::ptrdiff_t d, std::ptrdiff_t stride, T* out) {
    for (std::ptrdiff_t i = 0; i < rows; ++i)
        for (std::ptrdiff_t j = 0; j < d; ++j) out[i * d + j] = X[i * stride + j];
}

// Updates least and largest (d values each) with the rows of X. `work` holds 2 * fold * d values.
template <class T>
void extremes_of_rows(const T* X, std::ptrdiff_t rows, std::ptrdiff_t d, std::ptrdiff_t stride,
                      std::ptrdiff_t fold, T* least, T* largest, T* work) {
    const Folded<T> t(X, rows, d, stride, fold);
    T *low = work, *high = work + t.width;
    for (std::ptrdiff_t j = 0; j < t.width; ++j) {
        low[j] = least[j % d];
        high[j] = largest[j % d];
    }
    extremes_block(t.X, t.rows, t.width, t.stride, low, high);
    extremes_block(t.tail, t.rest ? 1 : 0, t.rest, t.stride, low, high);
    for (std::ptrdiff_t j = 0; j < t.width; ++j) {
        least[j % d] = low[j] < least[j % d] ? low[j] : least[j % d];
        largest[j % d] = high[j] > largest[j % d] ? high[j] : largest[j % d];
    }
}
