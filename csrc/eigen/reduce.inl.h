#include "eigen/product.inl.h"

// What rows [begin, end) and the columns above them add to y = A v, of A known on and above the
// diagonal. begin, end, n: multiples of diagonal_block.
template <class T>
void symmetric_vector_block(const T* A, std::ptrdiff_t ld, std::ptrdiff_t begin, std::ptrdiff_t end,
                            std::ptrdiff_t n, const T* v, T* y) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes, rows = tile_rows;
    constexpr std::ptrdiff_t block = diagonal_block<T>;
    for (std::ptrdiff_t i = begin; i < end; i += rows) {
        const T* a = A + i * ld;
        Vec x[rows], sum[rows] = {};
        FML_UNROLL
        for (int r = 0; r < rows; ++r) x[r] = broadcast<Vec>(v[i + r]);
        std::ptrdiff_t j = i / block * block;
        for (const std::ptrdiff_t stop = j + block; j < stop; j += lanes) {
            const Vec vj = load<Vec>(v + j);
            FML_UNROLL
            for (int r = 0; r < rows; ++r) sum[r] += load<Vec>(a + r * ld + j) * vj;
        }
        for (; j < n; j += block) {
            FML_UNROLL
            for (int r = 0; r < rows; ++r) FML_PREFETCH_NEXT(a + r * ld + j + 4 * block);
            FML_UNROLL
            for (int s = 0; s < block; s += lanes) {
                const Vec vj = load<Vec>(v + j + s);
                Vec total[2] = {load<Vec>(y + j + s)};  // two chains: one alone takes too long
                FML_UNROLL
                for (int r = 0; r < rows; ++r) {
                    const Vec k = load<Vec>(a + r * ld + j + s);
                    sum[r] += k * vj;
                    total[r % 2] += k * x[r];
                }
                store(y + j + s, total[0] + total[1]);
            }
        }
        for (int r = 0; r < rows; ++r) y[i + r] += sum_of_lanes<T>(sum[r]);
    }
}

// out[p] = the sum over [begin, end) of V[p] v, for `count` rows of V.
template <class T>
void dots_block(const T* V, std::ptrdiff_t ld, std::ptrdiff_t count, const T* v,
                std::ptrdiff_t begin, std::ptrdiff_t end, T* out) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes, rows = 4;
    std::ptrdiff_t p = 0;
    for (; p + rows <= count; p += rows) {
        Vec sum[rows] = {};
        for (std::ptrdiff_t i = begin; i < end; i += lanes) {
            const Vec x = load<Vec>(v + i);
            FML_UNROLL
            for (int r = 0; r < rows; ++r) sum[r] += load<Vec>(V + (p + r) * ld + i) * x;
        }
        for (int r = 0; r < rows; ++r) out[p + r] = sum_of_lanes<T>(sum[r]);
    }
    for (; p < count; ++p) {
        Vec sum = {};
        for (std::ptrdiff_t i = begin; i < end; i += lanes)
            sum += load<Vec>(V + p * ld + i) * load<Vec>(v + i);
        out[p] = sum_of_lanes<T>(sum);
    }
}

template <class T, int vecs>
FML_INLINE void combine_vecs(const Panel<T>& P, const T* parts, std::ptrdiff_t apart,
                             std::ptrdiff_t n_parts, std::ptrdiff_t i, T* y, T* next) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    Vec sum[vecs] = {}, more[vecs] = {};
    for (std::ptrdiff_t t = 0; t < n_parts; ++t) {
        FML_UNROLL
        for (int s = 0; s < vecs; ++s) sum[s] += load<Vec>(parts + t * apart + i + s * lanes);
    }
    for (std::ptrdiff_t p = 0; p < P.count; ++p) {
        const T a = P.of_v[p], b = P.of_w[p], c = P.next_v[p], d = P.next_w[p];
        FML_UNROLL
        for (int s = 0; s < vecs; ++s) {
            const Vec v = load<Vec>(P.V + p * P.ld + i + s * lanes);
            const Vec w = load<Vec>(P.W + p * P.ld + i + s * lanes);
            sum[s] = sum[s] - v * a - w * b;
            more[s] = more[s] + v * c + w * d;
        }
    }
    FML_UNROLL
    for (int s = 0; s < vecs; ++s) {
        store(y + i + s * lanes, sum[s]);
        store(next + i + s * lanes, more[s]);
    }
}

// y = the parts' sum less what the panel takes from it, next = what it takes from the next row, on
// [begin, end); and the product of y and v.
template <class T>
void combine_block(const Panel<T>& P, const T* parts, std::ptrdiff_t apart, std::ptrdiff_t n_parts,
                   std::ptrdiff_t begin, std::ptrdiff_t end, const T* v, T* y, T* next,
                   T* product) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes, vecs = 4;
    std::ptrdiff_t i = begin;
    for (; i + vecs * lanes <= end; i += vecs * lanes)
        combine_vecs<T, vecs>(P, parts, apart, n_parts, i, y, next);
    for (; i < end; i += lanes) combine_vecs<T, 1>(P, parts, apart, n_parts, i, y, next);
    Vec sum = {};
    for (i = begin; i < end; i += lanes) sum += load<Vec>(y + i) * load<Vec>(v + i);
    *product = sum_of_lanes<T>(sum);
}

// The reflector I - tau v v', v[0] = 1, that takes x (m) to (beta, 0, ...): x becomes v.
template <class T> void reflector(T* x, std::ptrdiff_t m, T* beta, T* tau) {
    // Squares below this lose digits, and with them the reflector its orthogonality.
    constexpr T small = std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon() /
                        std::numeric_limits<T>::epsilon();
    constexpr T up = sizeof(T) == 8 ? T(0x1p500) : T(0x1p60);
    T scale = 1;
    for (;;) {
        T square = 0, most = 0;
#pragma omp simd reduction(+ : square)
        for (std::ptrdiff_t i = 1; i < m; ++i) square += x[i] * x[i];
        if (square < small) {
            for (std::ptrdiff_t i = 1; i < m; ++i)
                most = x[i] < -most ? -x[i] : x[i] > most ? x[i] : most;
            if (most == 0) {
                *beta = x[0] / scale;
                *tau = 0;
                for (std::ptrdiff_t i = 0; i < m; ++i) x[i] = i == 0;
                return;
            }
            // Beside a large x[0] what is lost is lost to rounding anyway.
            if (x[0] * x[0] < small && scale < up * up) {
                for (std::ptrdiff_t i = 0; i < m; ++i) x[i] *= up;
                scale *= up;
                continue;
            }
        }
        const T alpha = x[0], size = std::sqrt(alpha * alpha + square);
        const T to = alpha > 0 ? -size : size;
        *beta = to / scale;
        *tau = (to - alpha) / to;
        const T factor = 1 / (alpha - to);
        x[0] = 1;
        for (std::ptrdiff_t i = 1; i < m; ++i) x[i] *= factor;
        return;
    }
}

// Of `count` rows of V and of W: columns [c0, c0 + tile_cols) one step of the depth after the other,
// V's and W's by turns; and columns [i0, i0 + tile_rows) likewise, W's and V's.
template <class T, int width>
void pack_pair(const T* V, const T* W, std::ptrdiff_t ld, std::ptrdiff_t count, std::ptrdiff_t c0,
               T* out) {
    for (std::ptrdiff_t p = 0; p < count; ++p) {
        const T *v = V + p * ld + c0, *w = W + p * ld + c0;
        for (int r = 0; r < width; ++r) out[r] = v[r];
        out += width;
        for (int r = 0; r < width; ++r) out[r] = w[r];
        out += width;
    }
}
template <class T>
void pack_left(const T* V, const T* W, std::ptrdiff_t ld, std::ptrdiff_t count, std::ptrdiff_t c0,
               T* out) {
    pack_pair<T, tile_rows>(W, V, ld, count, c0, out);
}
template <class T>
void pack_right(const T* V, const T* W, std::ptrdiff_t ld, std::ptrdiff_t count, std::ptrdiff_t c0,
                T* out) {
    pack_pair<T, tile_cols<T>>(V, W, ld, count, c0, out);
}

template <class T> struct Subtract {
    T* out;  // entry (0, 0) of the column panel
    std::ptrdiff_t ld;

    FML_INLINE void begin(std::ptrdiff_t, Tile<T>& tile) const { tile = Tile<T>{}; }
    FML_INLINE void end(std::ptrdiff_t i0, const Tile<T>& tile) const {
        using Vec = typename Simd<T>::Vec;
        FML_UNROLL
        for (int i = 0; i < tile_rows; ++i) {
            FML_UNROLL
            for (int v = 0; v < tile_vecs; ++v) {
                T* at = out + (i0 + i) * ld + v * Simd<T>::lanes;
                store(at, load<Vec>(at) - tile.at[i][v]);
            }
        }
    }
};

// Takes V'W + W'V from tile_cols columns of the matrix that begins at `out`, in the first m rows.
template <class T>
void subtract_panel(const T* left, std::ptrdiff_t m, const T* right, std::ptrdiff_t depth, T* out,
                    std::ptrdiff_t ld) {
    Subtract<T> epilogue{out, ld};
    multiply_panel(left, (m + tile_rows - 1) / tile_rows, right, depth, static_cast<T*>(nullptr),
                   epilogue);
}
