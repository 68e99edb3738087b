#include "common/simd.inl.h"

// counts[s] = how many eigenvalues are below x[s], by Sturm's sequences, few_shifts at a time. Pivots
// below `least` in size count as negative ones of that size.
template <class T>
void count_each(const T* d, const T* squares, std::ptrdiff_t n, T least, const T* x, T* counts) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes, vecs = static_cast<int>(few_shifts<T>) / lanes;
    const Vec one = broadcast<Vec>(T(1)), floor = broadcast<Vec>(least), under = Vec{} - floor;
    Vec at[vecs], q[vecs], count[vecs] = {};
    FML_UNROLL
    for (int v = 0; v < vecs; ++v) {
        at[v] = load<Vec>(x + v * lanes);
        q[v] = one;
    }
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const Vec here = broadcast<Vec>(d[i]), square = broadcast<Vec>(i ? squares[i - 1] : T(0));
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) {
            q[v] = here - at[v] - square / q[v];
            q[v] = select(absolute<T>(q[v]) < floor, under, q[v]);
            count[v] = count[v] + select(q[v] < Vec{}, one, Vec{});
        }
    }
    FML_UNROLL
    for (int v = 0; v < vecs; ++v) store(counts + v * lanes, count[v]);
}

// Takes from x (n) its part in each of `count` orthonormal rows of V, one after the other.
template <class T>
void leave_rest(const T* V, std::ptrdiff_t stride, std::ptrdiff_t count, std::ptrdiff_t n, T* x) {
    for (std::ptrdiff_t r = 0; r < count; ++r) {
        const T* v = V + r * stride;
        T dot = 0;
#pragma omp simd reduction(+ : dot)
        for (std::ptrdiff_t i = 0; i < n; ++i) dot += v[i] * x[i];
#pragma omp simd
        for (std::ptrdiff_t i = 0; i < n; ++i) x[i] -= dot * v[i];
    }
}

// Turns the columns of a panel (n, few_columns) by the reflectors in the rows of A, the last first.
template <class T>
void turn_columns(const T* A, std::ptrdiff_t ld, const T* tau, std::ptrdiff_t n, T* panel) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes, cols = static_cast<int>(few_columns<T>),
                  vecs = cols / lanes, rows = vecs < 4 ? 4 / vecs : 1;
    for (std::ptrdiff_t j = n - 2; j >= 0; --j) {
        const T* v = A + j * ld + j + 1;
        T* at = panel + (j + 1) * cols;
        const std::ptrdiff_t m = n - 1 - j;
        Vec sum[rows][vecs] = {};
        std::ptrdiff_t i = 0;
        for (; i + rows <= m; i += rows) {
            FML_UNROLL
            for (int r = 0; r < rows; ++r) {
                const Vec here = broadcast<Vec>(v[i + r]);
                FML_UNROLL
                for (int s = 0; s < vecs; ++s)
                    sum[r][s] = sum[r][s] + here * load<Vec>(at + (i + r) * cols + s * lanes);
            }
        }
        for (; i < m; ++i)
            for (int s = 0; s < vecs; ++s)
                sum[0][s] = sum[0][s] + broadcast<Vec>(v[i]) * load<Vec>(at + i * cols + s * lanes);
        FML_UNROLL
        for (int s = 0; s < vecs; ++s) {
            for (int r = 1; r < rows; ++r) sum[0][s] = sum[0][s] + sum[r][s];
            sum[0][s] = sum[0][s] * broadcast<Vec>(tau[j]);
        }
        for (i = 0; i < m; ++i) {
            const Vec here = broadcast<Vec>(v[i]);
            FML_UNROLL
            for (int s = 0; s < vecs; ++s) {
                T* to = at + i * cols + s * lanes;
                store(to, load<Vec>(to) - here * sum[0][s]);
            }
        }
    }
}
