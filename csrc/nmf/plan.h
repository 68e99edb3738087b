#pragma once
// How rows are cut: into parts that are summed apart, and these into blocks that stay in cache.
#include "common/blocks.h"
#include "common/scratch.h"
#include "nmf/nmf.h"

namespace fastml {

// What a block's kernel needs to know.
template <class T> struct Descent {
    Rows<T> X;
    Factor<T> B, W;
    const T* products;  // or null
    Sweep<T> sweep;
    ptrdiff_t rows;  // so many of X stay in L2
};

constexpr ptrdiff_t strip_columns = 96;  // of X at a time: whole tiles of any instruction set

template <class T> struct Multiply {
    Rows<T> X;
    Factor<T> B, W;
    const T* flat;  // H (k, ld_flat), ld_flat being whole strips
    ptrdiff_t ld_flat;
    const T *num, *den;
    bool one_den, update;
    T beta;
    Update<T> how;
    ptrdiff_t rows;
};

// Rows of X that stay in L2 beside what is made of them.
template <class T> ptrdiff_t block_rows(const Rows<T>& X) {
    constexpr ptrdiff_t most = 1024 / sizeof(T), cache = 1 << 19;
    if (!X.data || X.indptr) return most;
    const ptrdiff_t fit = cache / static_cast<ptrdiff_t>(sizeof(T)) / X.d / 16 * 16;
    return fit < 16 ? 16 : fit > most ? most : fit;
}

// A sum over rows of the size of a factor of the columns is worth its memory where the part has
// some more rows than it has columns.
inline ptrdiff_t wide_parts(ptrdiff_t n, ptrdiff_t ld) {
    const ptrdiff_t parts = n / (2 * ld);
    return parts < 1 ? 1 : parts < 32 ? parts : 32;
}

template <class T>
double work_of(const Rows<T>& X, const Factor<T>& W) {
    const double entries = X.indptr ? X.indptr[X.n] : X.data ? 1.0 * X.n * X.d : 0;
    return (entries + 1.0 * W.n * W.k) * W.ld;
}

// Adds parts of `size` values that are `apart`, a strip of them a task.
template <class T>
Status sum_parts(const T* parts, ptrdiff_t n_parts, ptrdiff_t size, ptrdiff_t apart, T* total,
                 int n_threads) noexcept {
    constexpr ptrdiff_t strip = 4096;
    n_threads = threads_for(static_cast<double>(n_parts) * size * 4, n_threads);
    return parallel(ceil_div(size, strip), n_threads, [&](ptrdiff_t s, int) {
        const ptrdiff_t first = s * strip, here = size - first < strip ? size - first : strip;
        add_parts(parts + first, n_parts, here, total + first, apart);
    });
}

}  // namespace fastml
