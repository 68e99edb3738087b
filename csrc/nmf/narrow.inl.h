// Products of dense X with factors of k columns, k being any number: nothing is filled up to whole
// vectors along k. Lanes are columns of X, in sums that become one at the end, or for themselves.
#include "nmf/products.inl.h"

constexpr int dot_rows = FML_TILE_ROWS == 8 ? 5 : 3, dot_cols = FML_TILE_ROWS == 8 ? 5 : 4;
// Columns whose part of dot_rows + dot_cols rows stays in L1.
template <class T> constexpr std::ptrdiff_t dot_slice = 3072 / sizeof(T);

// Values beyond the n that there are become zero.
template <class T>
FML_INLINE typename Simd<T>::Vec load_some(const T* p, std::ptrdiff_t n) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    if (n >= lanes) return load<Vec>(p);
#if FML_X86_REGIONS && FML_VECTOR_BYTES == 64
    const unsigned there = (1u << n) - 1;
    if constexpr (sizeof(T) == 4)
        return (Vec)_mm512_maskz_loadu_ps(static_cast<__mmask16>(there), p);
    else
        return (Vec)_mm512_maskz_loadu_pd(static_cast<__mmask8>(there), p);
#else
    T some[lanes] = {};
    for (std::ptrdiff_t l = 0; l < n; ++l) some[l] = p[l];
    return load<Vec>(some);
#endif
}

// B (n, ld) as flat (ld, ld_flat), for columns [j, j + cols) of it, cols whole vectors; those beyond n
// are zero.
template <class T>
void flatten_strip(const Factor<T>& B, std::ptrdiff_t j, std::ptrdiff_t cols, T* flat,
                   std::ptrdiff_t ld_flat) {
    for (std::ptrdiff_t c = j; c < j + cols; c += Simd<T>::lanes)
        flip_in<T, 1>(B.at + c * B.ld, B.n - c, B.ld, flat + c, ld_flat);
}

// The reverse, of a strip (ld, ld_strip) to rows [j, j + cols) of B.
template <class T>
void raise_strip(const T* strip, std::ptrdiff_t ld_strip, std::ptrdiff_t j, std::ptrdiff_t cols,
                 const Factor<T>& B) {
    for (std::ptrdiff_t c = 0; c < cols; c += Simd<T>::lanes)
        flip_out<T, 1>(strip + c, ld_strip, B.n - j - c, B.ld, B.at + (j + c) * B.ld);
}

template <class T> constexpr std::ptrdiff_t in_vectors(std::ptrdiff_t n) {
    return (n + Simd<T>::lanes - 1) / Simd<T>::lanes * Simd<T>::lanes;
}

// out (rows, cols) = or += A·Hᵀ over `depth` columns, for up to dot_rows rows of A that are lda apart. Rows
// of H have zeros up to a whole vector. next: the rows after these are on their way meanwhile.
template <class T, int cols, bool next>
FML_INLINE void dot_tile(const T* A, std::ptrdiff_t lda, std::ptrdiff_t rows, const T* H,
                         std::ptrdiff_t ldh, std::ptrdiff_t depth, bool add, T* out,
                         std::ptrdiff_t rs, std::ptrdiff_t cs) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    constexpr int sums = (dot_rows * cols + lanes - 1) / lanes * lanes;
    const T* a[dot_rows];
    FML_UNROLL
    for (int r = 0; r < dot_rows; ++r) a[r] = A + (r < rows ? r : rows - 1) * lda;
    Vec sum[sums] = {};
    std::ptrdiff_t p = 0;
    for (; p + lanes <= depth; p += lanes) {
        Vec ap[dot_rows];
        FML_UNROLL
        for (int r = 0; r < dot_rows; ++r) {
            ap[r] = load<Vec>(a[r] + p);
            in_register(ap[r]);
            if constexpr (next) FML_PREFETCH(a[r] + dot_rows * lda + p);
        }
        FML_UNROLL
        for (int c = 0; c < cols; ++c) {
            const Vec h = load<Vec>(H + c * ldh + p);
            FML_UNROLL
            for (int r = 0; r < dot_rows; ++r) sum[r * cols + c] += ap[r] * h;
        }
    }
    if (p < depth) {
        Vec ap[dot_rows];
        for (int r = 0; r < dot_rows; ++r) ap[r] = load_some(a[r] + p, depth - p);
        FML_UNROLL
        for (int c = 0; c < cols; ++c) {
            const Vec h = load<Vec>(H + c * ldh + p);
            FML_UNROLL
            for (int r = 0; r < dot_rows; ++r) sum[r * cols + c] += ap[r] * h;
        }
    }
    T each[sums];
    FML_UNROLL
    for (int s = 0; s < sums; s += lanes) store(each + s, sums_of<T>(sum + s));
    for (std::ptrdiff_t r = 0; r < dot_rows && r < rows; ++r) {
        FML_UNROLL
        for (int c = 0; c < cols; ++c)
            out[r * rs + c * cs] = (add ? out[r * rs + c * cs] : T(0)) + each[r * cols + c];
    }
}

template <class T, bool next, int cols = dot_cols>
FML_INLINE void dot_strip(std::ptrdiff_t wanted, const T* A, std::ptrdiff_t lda, std::ptrdiff_t m,
                          const T* H, std::ptrdiff_t ldh, std::ptrdiff_t depth, bool add, T* out,
                          std::ptrdiff_t rs, std::ptrdiff_t cs) {
    if constexpr (cols > 1) {
        if (wanted < cols) {
            dot_strip<T, next, cols - 1>(wanted, A, lda, m, H, ldh, depth, add, out, rs, cs);
            return;
        }
    }
    for (std::ptrdiff_t i = 0; i < m; i += dot_rows)
        dot_tile<T, cols, next>(A + i * lda, lda, m - i, H, ldh, depth, add, out + i * rs, rs, cs);
}

// out[i rs + t cs] = A·Hᵀ, or that is added to it, for m rows of A and k of H, of `depth` columns; rows of H
// have zeros up to a whole vector.
template <class T>
void dots(const T* A, std::ptrdiff_t lda, std::ptrdiff_t m, const T* H, std::ptrdiff_t ldh,
          std::ptrdiff_t k, std::ptrdiff_t depth, bool add, T* out, std::ptrdiff_t rs,
          std::ptrdiff_t cs) {
    constexpr std::ptrdiff_t lanes = Simd<T>::lanes;
    const std::ptrdiff_t slices = (depth + dot_slice<T> - 1) / dot_slice<T>;
    const std::ptrdiff_t deep = (depth + slices * lanes - 1) / (slices * lanes) * lanes;
    const std::ptrdiff_t strips = (k + dot_cols - 1) / dot_cols;
    for (std::ptrdiff_t p = 0; p < depth; p += deep) {
        const std::ptrdiff_t here = depth - p < deep ? depth - p : deep;
        for (std::ptrdiff_t s = 0; s < strips; ++s) {
            const std::ptrdiff_t t = k * s / strips, cols = k * (s + 1) / strips - t;
            const T* h = H + t * ldh + p;
            T* to = out + t * cs;
            if (s == 0)
                dot_strip<T, true>(cols, A + p, lda, m, h, ldh, here, add || p > 0, to, rs, cs);
            else
                dot_strip<T, false>(cols, A + p, lda, m, h, ldh, here, add || p > 0, to, rs, cs);
        }
    }
}

// out (rows, vecs vectors) += WᵀA over m rows, W[i, r] = W[i ldw + r], or W[r ldw + i] if it is flat. Not
// inlined: of all heights in one function GCC keeps some sums in memory.
template <class T, bool flat, int rows, int vecs>
void outer_tile(const T* W, std::ptrdiff_t ldw, const T* A, std::ptrdiff_t lda, std::ptrdiff_t m,
                T* out, std::ptrdiff_t ldo) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    Vec sum[rows][vecs];
    FML_UNROLL
    for (int r = 0; r < rows; ++r) {
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) sum[r][v] = load<Vec>(out + r * ldo + v * lanes);
    }
    for (std::ptrdiff_t i = 0; i < m; ++i, W += flat ? 1 : ldw, A += lda) {
        Vec a[vecs];
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) a[v] = load<Vec>(A + v * lanes);
        FML_UNROLL
        for (int r = 0; r < rows; ++r) {
            FML_UNROLL
            for (int v = 0; v < vecs; ++v) sum[r][v] += a[v] * W[flat ? r * ldw : r];
        }
    }
    FML_UNROLL
    for (int r = 0; r < rows; ++r) {
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) store(out + r * ldo + v * lanes, sum[r][v]);
    }
}

template <class T, bool flat, int vecs, int rows = tile_rows>
FML_INLINE void outer_rows(std::ptrdiff_t wanted, const T* W, std::ptrdiff_t ldw, const T* A,
                           std::ptrdiff_t lda, std::ptrdiff_t m, T* out, std::ptrdiff_t ldo) {
    if constexpr (rows > 1) {
        if (wanted < rows) {
            outer_rows<T, flat, vecs, rows - 1>(wanted, W, ldw, A, lda, m, out, ldo);
            return;
        }
    }
    outer_tile<T, flat, rows, vecs>(W, ldw, A, lda, m, out, ldo);
}

template <class T, bool flat, int vecs>
void outer_strip(const T* W, std::ptrdiff_t ldw, std::ptrdiff_t k, const T* A, std::ptrdiff_t lda,
                 std::ptrdiff_t m, T* out, std::ptrdiff_t ldo) {
    const std::ptrdiff_t strips = (k + tile_rows - 1) / tile_rows;
    for (std::ptrdiff_t s = 0; s < strips; ++s) {
        const std::ptrdiff_t t = k * s / strips, rows = k * (s + 1) / strips - t;
        outer_rows<T, flat, vecs>(rows, W + (flat ? t * ldw : t), ldw, A, lda, m, out + t * ldo,
                                  ldo);
    }
}

constexpr std::ptrdiff_t outer_depth = 128;  // rows whose strips of A stay in L1

// out (k, n) += WᵀA, for m rows of W, of k columns, and of A, of n; rows of out are whole vectors.
template <class T, bool flat = false>
void add_outer(const T* W, std::ptrdiff_t ldw, std::ptrdiff_t k, const T* A, std::ptrdiff_t lda,
               std::ptrdiff_t m, std::ptrdiff_t n, T* out, std::ptrdiff_t ldo) {
    constexpr int lanes = Simd<T>::lanes;
    for (std::ptrdiff_t i = 0; i < m; i += outer_depth) {
        const std::ptrdiff_t deep = m - i < outer_depth ? m - i : outer_depth;
        const T *w = W + (flat ? i : i * ldw), *a = A + i * lda;
        std::ptrdiff_t j = 0;
        for (; j + 3 * lanes <= n; j += 3 * lanes)
            outer_strip<T, flat, 3>(w, ldw, k, a + j, lda, deep, out + j, ldo);
        for (; j + lanes <= n; j += lanes)
            outer_strip<T, flat, 1>(w, ldw, k, a + j, lda, deep, out + j, ldo);
        if (j == n) continue;
        T rest[outer_depth * lanes];
        for (std::ptrdiff_t r = 0; r < deep; ++r)
            store(rest + r * lanes, load_some(a + r * lda + j, n - j));
        outer_strip<T, flat, 1>(w, ldw, k, rest, lanes, deep, out + j, ldo);
    }
}

// X·B of rows [i, i + m): `job` has X, B, flat and W. What zeros that fill up rows of B cost is less than
// what sums that become one do, up to an eighth.
template <class T, class Job>
void multiply_in(const Job& job, std::ptrdiff_t i, std::ptrdiff_t m, T* out) {
    const std::ptrdiff_t ld = job.W.ld, k = job.W.k, d = job.X.d;
    if (job.X.indptr || 8 * ld <= 9 * k) {
        rows_times(job.X, i, m, job.B.at, ld, out);
        return;
    }
    clear(out, m * ld);
    dots(job.X.data + i * d, d, m, job.flat, job.ld_flat, k, d, true, out, ld, std::ptrdiff_t(1));
}
