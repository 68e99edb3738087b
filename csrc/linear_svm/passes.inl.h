// What all solvers do with rows. Sums are in double, whatever X is.
#include "common/gemm.inl.h"

template <class T>
FML_INLINE double sparse_dot(const T* x, const std::int32_t* at, std::ptrdiff_t size,
                             const double* w) {
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    std::ptrdiff_t q = 0;
    for (; q + 4 <= size; q += 4) {
        s0 += x[q] * w[at[q]];
        s1 += x[q + 1] * w[at[q + 1]];
        s2 += x[q + 2] * w[at[q + 2]];
        s3 += x[q + 3] * w[at[q + 3]];
    }
    for (; q < size; ++q) s0 += x[q] * w[at[q]];
    return (s0 + s1) + (s2 + s3);
}
template <class T>
FML_INLINE double sparse_dot(const Rows<T>& X, std::ptrdiff_t i, const double* w) {
    const std::ptrdiff_t first = X.indptr[i];
    return sparse_dot(X.data + first, X.indices + first, X.indptr[i + 1] - first, w);
}

// One row; four sums, or each would wait for the one before.
template <class T>
FML_INLINE double dense_dot(const T* x, std::ptrdiff_t d, const double* w) {
    using Vec = Simd<double>::Vec;
    constexpr int lanes = Simd<double>::lanes;
    Vec s[4];
    FML_UNROLL
    for (int v = 0; v < 4; ++v) s[v] = broadcast<Vec>(0.0);
    std::ptrdiff_t p = 0;
    for (; p + 4 * lanes <= d; p += 4 * lanes) {
        FML_UNROLL
        for (int v = 0; v < 4; ++v)
            s[v] += load_as<double>(x + p + v * lanes) * load<Vec>(w + p + v * lanes);
    }
    const Vec all = (s[0] + s[1]) + (s[2] + s[3]);
    double sum = 0;
    for (int l = 0; l < lanes; ++l) sum += all[l];
    for (; p < d; ++p) sum += x[p] * w[p];
    return sum;
}

// Of so few columns the last ones of a row, less than a register, cost as much as all before. There
// rows are read by whole registers, into the next row, whose entries count nothing.
constexpr std::ptrdiff_t most_padded = 256;
template <class T> FML_INLINE std::ptrdiff_t padded(const Rows<T>& X) {
    constexpr int lanes = Simd<double>::lanes;
    return (X.d + lanes - 1) / lanes * lanes;
}
// Whether rows from i on, `count` of them, are followed by so much of X.
template <class T>
FML_INLINE bool followed(const Rows<T>& X, std::ptrdiff_t i, std::ptrdiff_t count) {
    return X.d <= most_padded && (i + count - 1) * X.d + padded(X) <= X.n * X.d;
}

// margins_block of dense rows, and the first that is left.
template <class T>
FML_INLINE std::ptrdiff_t padded_margins(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end,
                                         const double* w, double offset, double* z) {
    using Vec = Simd<double>::Vec;
    constexpr int lanes = Simd<double>::lanes;
    const std::ptrdiff_t d = X.d, whole = padded(X);
    if (d > most_padded) return begin;
    double v[most_padded];
    for (std::ptrdiff_t p = 0; p < d; ++p) v[p] = w[p];
    for (std::ptrdiff_t p = d; p < whole; ++p) v[p] = 0;
    std::ptrdiff_t i = begin;
    for (; i + lanes <= end && followed(X, i, lanes); i += lanes) {
        const T* x = X.data + i * d;
        Vec sums[lanes];
        FML_UNROLL
        for (int r = 0; r < lanes; ++r) sums[r] = broadcast<Vec>(offset / lanes);
        for (std::ptrdiff_t p = 0; p < whole; p += lanes) {
            const Vec by = load<Vec>(v + p);
            FML_UNROLL
            for (int r = 0; r < lanes; ++r) sums[r] += load_as<double>(x + r * d + p) * by;
        }
        store(z + i - begin, sums_of<double>(sums));
    }
    return i;
}

// combine_block of dense rows, but for the constant, and the first row that is left.
template <class T>
FML_INLINE std::ptrdiff_t padded_combine(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end,
                                         const double* a, double* u) {
    using Vec = Simd<double>::Vec;
    constexpr int lanes = Simd<double>::lanes, at_once = 8;
    const std::ptrdiff_t d = X.d, whole = padded(X);
    if (d > most_padded) return begin;
    double v[most_padded];
    for (std::ptrdiff_t p = 0; p < whole; ++p) v[p] = 0;
    std::ptrdiff_t i = begin;
    for (; i + at_once <= end && followed(X, i, at_once); i += at_once, a += at_once) {
        bool any = false;
        for (int r = 0; r < at_once; ++r) any |= a[r] != 0;
        if (!any) continue;
        const T* x = X.data + i * d;
        for (std::ptrdiff_t p = 0; p < whole; p += lanes) {
            Vec even = load<Vec>(v + p), odd = broadcast<Vec>(0.0);
            FML_UNROLL
            for (int r = 0; r < at_once; r += 2) {
                even += load_as<double>(x + r * d + p) * a[r];
                odd += load_as<double>(x + (r + 1) * d + p) * a[r + 1];
            }
            store(v + p, even + odd);
        }
    }
    for (std::ptrdiff_t p = 0; p < d; ++p) u[p] += v[p];
    return i;
}

// z[i - begin] = x_i w + offset for rows [begin, end).
template <class T>
void margins_block(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end, const double* w,
                   double offset, double* z) {
    std::ptrdiff_t i = begin;
    if (X.indptr) {
        for (; i < end; ++i) z[i - begin] = sparse_dot(X, i, w) + offset;
        return;
    }
    const std::ptrdiff_t d = X.d;
    i = padded_margins(X, begin, end, w, offset, z);
    for (; i + 4 <= end; i += 4) {
        const T *x0 = X.data + i * d, *x1 = x0 + d, *x2 = x1 + d, *x3 = x2 + d;
        double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
        for (std::ptrdiff_t p = 0; p < d; ++p) {
            s0 += x0[p] * w[p];
            s1 += x1[p] * w[p];
            s2 += x2[p] * w[p];
            s3 += x3[p] * w[p];
        }
        double* to = z + (i - begin);
        to[0] = s0 + offset;
        to[1] = s1 + offset;
        to[2] = s2 + offset;
        to[3] = s3 + offset;
    }
    for (; i < end; ++i) z[i - begin] = dense_dot(X.data + i * d, d, w) + offset;
}

template <class T>
FML_INLINE void sparse_add(const T* x, const std::int32_t* at, std::ptrdiff_t size, double a,
                           double* u) {
    std::ptrdiff_t q = 0;
    // No column comes twice: the next need not wait for the last to be stored.
    for (; q + 4 <= size; q += 4) {
        double *u0 = u + at[q], *u1 = u + at[q + 1], *u2 = u + at[q + 2], *u3 = u + at[q + 3];
        const double v0 = *u0 + a * x[q], v1 = *u1 + a * x[q + 1];
        const double v2 = *u2 + a * x[q + 2], v3 = *u3 + a * x[q + 3];
        *u0 = v0;
        *u1 = v1;
        *u2 = v2;
        *u3 = v3;
    }
    for (; q < size; ++q) u[at[q]] += a * x[q];
}
template <class T>
FML_INLINE void add_row(const Rows<T>& X, std::ptrdiff_t i, double a, double* u) {
    if (X.indptr) {
        const std::ptrdiff_t first = X.indptr[i];
        sparse_add(X.data + first, X.indices + first, X.indptr[i + 1] - first, a, u);
        return;
    }
    const T* x = X.data + i * X.d;
#pragma omp simd
    for (std::ptrdiff_t p = 0; p < X.d; ++p) u[p] += a * x[p];
}

// u (d + 1) += the sum of a[i - begin] x_i over rows [begin, end).
template <class T>
void combine_block(const Rows<T>& X, double bias, std::ptrdiff_t begin, std::ptrdiff_t end,
                   const double* a, double* u) {
    double sum = 0;
    for (std::ptrdiff_t i = 0; i < end - begin; ++i) sum += a[i];
    u[X.d] += bias * sum;
    std::ptrdiff_t i = begin;
    if (!X.indptr) {
        const std::ptrdiff_t d = X.d;
        i = padded_combine(X, begin, end, a, u);
        a += i - begin;
        for (; i + 4 <= end; i += 4, a += 4) {
            const double a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
            if (a0 == 0 && a1 == 0 && a2 == 0 && a3 == 0) continue;
            const T *x0 = X.data + i * d, *x1 = x0 + d, *x2 = x1 + d, *x3 = x2 + d;
#pragma omp simd
            for (std::ptrdiff_t p = 0; p < d; ++p)
                u[p] += (a0 * x0[p] + a1 * x1[p]) + (a2 * x2[p] + a3 * x3[p]);
        }
    }
    for (; i < end; ++i, ++a)
        if (*a != 0) add_row(X, i, *a, u);
}

// |x_i|² for rows [begin, end), the constant column included.
template <class T>
void norms_block(const Rows<T>& X, double bias, std::ptrdiff_t begin, std::ptrdiff_t end,
                 double* out) {
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        const T* x = X.indptr ? X.data + X.indptr[i] : X.data + i * X.d;
        const std::ptrdiff_t size = X.indptr ? X.indptr[i + 1] - X.indptr[i] : X.d;
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::ptrdiff_t p = 0; p < size; ++p) sum += static_cast<double>(x[p]) * x[p];
        out[i - begin] = sum + bias * bias;
    }
}
