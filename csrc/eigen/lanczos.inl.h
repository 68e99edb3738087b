#include "eigen/product.inl.h"

// What rows [begin, end) and the columns above them add to Y = A X for two vectors, rows of X and Y
// (2, ld), of A known on and above the diagonal. begin, end, n: multiples of diagonal_block.
template <class T>
void pair_product_block(const T* A, std::ptrdiff_t ld, std::ptrdiff_t begin, std::ptrdiff_t end,
                        std::ptrdiff_t n, const T* X, T* Y) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes, rows = tile_rows / 2;
    constexpr std::ptrdiff_t block = diagonal_block<T>;
    for (std::ptrdiff_t i = begin; i < end; i += rows) {
        const T* a = A + i * ld;
        Vec x[2][rows], sum[2][rows] = {};
        FML_UNROLL
        for (int r = 0; r < rows; ++r) {
            x[0][r] = broadcast<Vec>(X[i + r]);
            x[1][r] = broadcast<Vec>(X[ld + i + r]);
        }
        std::ptrdiff_t j = i / block * block;
        for (const std::ptrdiff_t stop = j + block; j < stop; j += lanes) {
            const Vec v = load<Vec>(X + j), w = load<Vec>(X + ld + j);
            FML_UNROLL
            for (int r = 0; r < rows; ++r) {
                const Vec k = load<Vec>(a + r * ld + j);
                sum[0][r] += k * v;
                sum[1][r] += k * w;
            }
        }
        for (; j < n; j += block) {
            FML_UNROLL
            for (int r = 0; r < rows; ++r) FML_PREFETCH_NEXT(a + r * ld + j + 4 * block);
            FML_UNROLL
            for (int s = 0; s < block; s += lanes) {
                const Vec v = load<Vec>(X + j + s), w = load<Vec>(X + ld + j + s);
                Vec y = load<Vec>(Y + j + s), z = load<Vec>(Y + ld + j + s);
                FML_UNROLL
                for (int r = 0; r < rows; ++r) {
                    const Vec k = load<Vec>(a + r * ld + j + s);
                    sum[0][r] += k * v;
                    sum[1][r] += k * w;
                    y += k * x[0][r];
                    z += k * x[1][r];
                }
                store(Y + j + s, y);
                store(Y + ld + j + s, z);
            }
        }
        for (int r = 0; r < rows; ++r) {
            Y[i + r] += sum_of_lanes<T>(sum[0][r]);
            Y[ld + i + r] += sum_of_lanes<T>(sum[1][r]);
        }
    }
}

// The sum over `parts` pairs, each 2 ld after the one before, on [begin, end).
template <class T>
void add_pairs(const T* Y, std::ptrdiff_t ld, std::ptrdiff_t parts, std::ptrdiff_t begin,
               std::ptrdiff_t end, T* out) {
    for (int c = 0; c < 2; ++c, Y += ld, out += ld)
        for (std::ptrdiff_t i = begin; i < end; ++i) {
            T sum = Y[i];
            for (std::ptrdiff_t t = 1; t < parts; ++t) sum += Y[2 * t * ld + i];
            out[i] = sum;
        }
}

// C (count, 2) = the sums over [begin, end) of rows of V times both rows of W; all of them ld apart.
template <class T>
void pair_dots_block(const T* V, std::ptrdiff_t ld, std::ptrdiff_t count, const T* W,
                     std::ptrdiff_t begin, std::ptrdiff_t end, T* C) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes, rows = 4;
    for (std::ptrdiff_t p = 0; p < count; p += rows) {
        const T* v[rows];  // rows that are not there have another's place
        FML_UNROLL
        for (int r = 0; r < rows; ++r) v[r] = V + (p + r < count ? p + r : p) * ld;
        Vec sum[2][rows] = {};
        for (std::ptrdiff_t i = begin; i < end; i += lanes) {
            const Vec a = load<Vec>(W + i), b = load<Vec>(W + ld + i);
            FML_UNROLL
            for (int r = 0; r < rows; ++r) {
                const Vec here = load<Vec>(v[r] + i);
                sum[0][r] += here * a;
                sum[1][r] += here * b;
            }
        }
        for (int r = 0; r < rows && p + r < count; ++r)
            for (int c = 0; c < 2; ++c) C[2 * (p + r) + c] = sum_of_lanes<T>(sum[c][r]);
    }
}

template <class T, int vecs>
FML_INLINE void pair_add_vecs(const T* V, std::ptrdiff_t ld, std::ptrdiff_t count, const T* C,
                              std::ptrdiff_t i, T* W) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    Vec a[vecs], b[vecs];
    FML_UNROLL
    for (int s = 0; s < vecs; ++s) {
        a[s] = load<Vec>(W + i + s * lanes);
        b[s] = load<Vec>(W + ld + i + s * lanes);
    }
    for (std::ptrdiff_t p = 0; p < count; ++p) {
        const Vec c = broadcast<Vec>(C[2 * p]), d = broadcast<Vec>(C[2 * p + 1]);
        FML_UNROLL
        for (int s = 0; s < vecs; ++s) {
            const Vec v = load<Vec>(V + p * ld + i + s * lanes);
            a[s] += v * c;
            b[s] += v * d;
        }
    }
    FML_UNROLL
    for (int s = 0; s < vecs; ++s) {
        store(W + i + s * lanes, a[s]);
        store(W + ld + i + s * lanes, b[s]);
    }
}

// Adds C' V to both rows of W, on [begin, end).
template <class T>
void pair_add_block(const T* V, std::ptrdiff_t ld, std::ptrdiff_t count, const T* C,
                    std::ptrdiff_t begin, std::ptrdiff_t end, T* W) {
    constexpr int lanes = Simd<T>::lanes, vecs = 4;
    std::ptrdiff_t i = begin;
    for (; i + vecs * lanes <= end; i += vecs * lanes)
        pair_add_vecs<T, vecs>(V, ld, count, C, i, W);
    for (; i < end; i += lanes) pair_add_vecs<T, 1>(V, ld, count, C, i, W);
}
