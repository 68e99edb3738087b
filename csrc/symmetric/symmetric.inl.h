#include "common/simd.inl.h"

// A row of V or of a result, in registers: `width` values, whatever the instruction set.
template <class T> struct Strand {
    using Vec = typename Simd<T>::Vec;
    static constexpr int lanes = Simd<T>::lanes, vecs = symmetric_width<T> / lanes;
    Vec at[vecs];

    FML_INLINE void read(const T* p) {
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) at[v] = load<Vec>(p + v * lanes);
    }
    FML_INLINE void write(T* p) const {
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) store(p + v * lanes, at[v]);
    }
    FML_INLINE void add(T k, const Strand& x) {
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) at[v] += x.at[v] * k;
    }
};

// Entries (i, j) of `rows` rows from i0 and of columns [j0, j1), j1 <= i0: each counts for both of
// its sides.
template <class T, int rows>
FML_INLINE void both_sides(const T* K, std::ptrdiff_t n, std::ptrdiff_t i0, std::ptrdiff_t j0,
                           std::ptrdiff_t j1, const T* V, T* out) {
    constexpr std::ptrdiff_t width = symmetric_width<T>;
    Strand<T> x[rows], sum[rows];
    FML_UNROLL
    for (int r = 0; r < rows; ++r) {
        x[r].read(V + (i0 + r) * width);
        sum[r].read(out + (i0 + r) * width);
    }
    constexpr std::ptrdiff_t line = width;  // columns of a cache line
    for (std::ptrdiff_t j = j0; j < j1;) {
        const std::ptrdiff_t stop = j1 - j < line ? j1 : j + line;
        if (rows > 1) {
            FML_UNROLL
            for (int r = 0; r < rows; ++r) FML_PREFETCH(K + (i0 + rows + r) * n + j);
        }
        for (; j < stop; ++j) {
            Strand<T> y, total;
            y.read(V + j * width);
            total.read(out + j * width);
            FML_UNROLL
            for (int r = 0; r < rows; ++r) {
                const T k = K[(i0 + r) * n + j];
                sum[r].add(k, y);
                total.add(k, x[r]);
            }
            total.write(out + j * width);
        }
    }
    FML_UNROLL
    for (int r = 0; r < rows; ++r) sum[r].write(out + (i0 + r) * width);
}

template <class T>
FML_INLINE void on_diagonal(const T* K, std::ptrdiff_t n, std::ptrdiff_t i, const T* V, T* out) {
    constexpr std::ptrdiff_t width = symmetric_width<T>;
    for (std::ptrdiff_t c = 0; c < width; ++c)
        out[i * width + c] += K[i * n + i] * V[i * width + c];
}

// Adds to out what rows [begin, end) of the lower triangle tell; strips of columns, so that what is
// read and written of V and out stays near.
template <class T>
void symmetric_block(const T* K, std::ptrdiff_t n, std::ptrdiff_t begin, std::ptrdiff_t end,
                     const T* V, T* out) {
    constexpr int rows = FML_TILE_ROWS;
    constexpr std::ptrdiff_t strip = 512;
    for (std::ptrdiff_t j0 = 0; j0 < end; j0 += strip) {
        std::ptrdiff_t i = begin > j0 ? begin : j0;
        for (; i + rows <= end; i += rows) {
            const std::ptrdiff_t j1 = j0 + strip < i ? j0 + strip : i;
            both_sides<T, rows>(K, n, i, j0, j1, V, out);
            if (i >= j0 + strip) continue;
            for (int r = 0; r < rows; ++r) {
                both_sides<T, 1>(K, n, i + r, i, i + r, V, out);
                on_diagonal(K, n, i + r, V, out);
            }
        }
        for (; i < end; ++i) {
            both_sides<T, 1>(K, n, i, j0, j0 + strip < i ? j0 + strip : i, V, out);
            if (i < j0 + strip) on_diagonal(K, n, i, V, out);
        }
    }
}

template <class T>
void centre_block(T* K, std::ptrdiff_t count, std::ptrdiff_t n, const T* columns, const T* rows,
                  T every) {
    for (std::ptrdiff_t i = 0; i < count; ++i, K += n) {
        const T mean = rows[i];
        for (std::ptrdiff_t j = 0; j < n; ++j) K[j] = K[j] - columns[j] - mean + every;
    }
}

// C (width, width) = B' W over n rows of both.
template <class T>
void strands_dot_block(const T* B, const T* W, std::ptrdiff_t n, double* C) {
    constexpr int width = symmetric_width<T>, part = 8;  // of C's rows: what registers hold
    for (int r0 = 0; r0 < width; r0 += part) {
        Strand<T> sum[part] = {};
        for (std::ptrdiff_t i = 0; i < n; ++i) {
            Strand<T> w;
            w.read(W + i * width);
            FML_UNROLL
            for (int r = 0; r < part; ++r) sum[r].add(B[i * width + r0 + r], w);
        }
        for (int r = 0; r < part; ++r) {
            T row[width];
            sum[r].write(row);
            for (int c = 0; c < width; ++c) C[(r0 + r) * width + c] = row[c];
        }
    }
}

// W plus sign B C, C (width, width) with rows ld apart.
template <class T>
void strands_add_block(const T* B, const double* C, std::ptrdiff_t ld, T sign, std::ptrdiff_t n,
                       T* W) {
    constexpr int width = symmetric_width<T>, part = 8;
    for (int r0 = 0; r0 < width; r0 += part) {
        Strand<T> more[part];
        for (int r = 0; r < part; ++r) {
            T row[width];
            for (int c = 0; c < width; ++c) row[c] = sign * static_cast<T>(C[(r0 + r) * ld + c]);
            more[r].read(row);
        }
        for (std::ptrdiff_t i = 0; i < n; ++i) {
            Strand<T> w;
            w.read(W + i * width);
            FML_UNROLL
            for (int r = 0; r < part; ++r) w.add(B[i * width + r0 + r], more[r]);
            w.write(W + i * width);
        }
    }
}

template <class T> void add_to_sums(const T* part, std::ptrdiff_t size, double* sums) {
    for (std::ptrdiff_t e = 0; e < size; ++e) sums[e] += part[e];
}

// Sums of V's columns, of rows with their `weights` or, where these are null, without.
template <class T>
void add_columns(const T* V, const T* weights, std::ptrdiff_t rows, double* sums) {
    constexpr int width = symmetric_width<T>;
    double sum[width] = {};
    for (std::ptrdiff_t i = 0; i < rows; ++i) {
        const double weight = weights ? weights[i] : 1;
        for (int c = 0; c < width; ++c) sum[c] += weight * V[i * width + c];
    }
    for (int c = 0; c < width; ++c) sums[c] += sum[c];
}

template <class T>
void less_row(const T* V, const double* less, std::ptrdiff_t rows, T* out) {
    constexpr int width = symmetric_width<T>;
    for (std::ptrdiff_t i = 0; i < rows; ++i)
        for (int c = 0; c < width; ++c)
            out[i * width + c] = static_cast<T>(V[i * width + c] - less[c]);
}

// out = the sums in T, and the sums of its columns.
template <class T>
void close_sums(const double* sums, std::ptrdiff_t rows, T* out, double* columns) {
    constexpr int width = symmetric_width<T>;
    for (std::ptrdiff_t e = 0; e < rows * width; ++e) out[e] = static_cast<T>(sums[e]);
    add_columns<T>(out, nullptr, rows, columns);
}
