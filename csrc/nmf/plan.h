#pragma once
// How rows are cut: into parts that are summed apart, and these into blocks that stay in cache.
#include <cstring>

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
    ptrdiff_t rows;
};

// The same of a factor's turn in dense X (n, d), of which `step` rows, or columns, stay in L2. Factors are
// flat, and the lower halves of grams (ldg, ldg) are made.
template <class T> struct Flat {
    T* at;
    ptrdiff_t ld;
};
template <class T> struct Turn {
    const T* X;
    ptrdiff_t n, d, k, ldg;
    bool columns;
    ptrdiff_t step, ldp;  // products are (k, ldp)
    Flat<T> own, other;
    Sweep<T> sweep;
};

// Columns of X at a time, as even as can be, of which some rows stay in L2: whole cache lines.
template <class T> constexpr ptrdiff_t widest_panel = 4096 / sizeof(T);
template <class T> ptrdiff_t panel_columns(ptrdiff_t d) {
    constexpr ptrdiff_t line = 64 / sizeof(T);
    const ptrdiff_t panels = d > widest_panel<T> ? ceil_div(d, widest_panel<T>) : 1;
    return ceil_div(ceil_div(d, panels), line) * line;
}

// So many values apart, an odd number of cache lines, rows lie that are read along a column: they do
// not share the few places that a cache has for an address.
template <class T> ptrdiff_t row_length(ptrdiff_t d) {
    constexpr ptrdiff_t line = 64 / sizeof(T);
    return (ceil_div(d, line) | 1) * line;
}

template <class T> struct Multiply {
    Rows<T> X;
    Factor<T> B, W;
    const T* flat;  // H (k, ld_flat)
    ptrdiff_t ld_flat, panel, ld_panel;
    const T *num, *den;
    bool one_den, update;
    T beta;
    Update<T> how;
    ptrdiff_t rows;
};

// Rows of X that stay in L2 beside what is made of them.
template <class T> ptrdiff_t block_rows(const Rows<T>& X) {
    constexpr ptrdiff_t most = 1024 / sizeof(T), cache = 1 << 20;
    if (!X.data || X.indptr) return most;
    const ptrdiff_t fit = cache / static_cast<ptrdiff_t>(sizeof(T)) / X.d / 16 * 16;
    return fit < 16 ? 16 : fit > most ? most : fit;
}

// A sum over rows of the size of a factor of the columns is worth its memory, and the time that adding
// it up takes, where the part has more rows than it has columns. Powers of two: threads are even. Two are
// worth more than four, of which each thread reads twice as much that another has made.
inline ptrdiff_t wide_parts(ptrdiff_t n, ptrdiff_t ld) {
    constexpr ptrdiff_t most = 32;
    ptrdiff_t parts = 1;
    for (ptrdiff_t fewest = 96; parts < most; parts *= 2, fewest = 192)
        if (n < 2 * parts * (ld < fewest ? fewest : ld)) break;
    return parts;
}

// Row at which part b of `parts` begins.
inline ptrdiff_t part_begin(ptrdiff_t n, ptrdiff_t b, ptrdiff_t parts) { return n * b / parts; }

template <class T>
double work_of(const Rows<T>& X, const Factor<T>& W) {
    const double entries = X.indptr ? X.indptr[X.n] : X.data ? 1.0 * X.n * X.d : 0;
    return (entries + 1.0 * W.n * W.k) * W.ld;
}

// flat (ld, ld_flat) = the transpose of B, and zeros; by `strip`s, a task each.
template <class T, class Strip>
Status flatten(const Factor<T>& B, T* flat, ptrdiff_t ld_flat, Strip strip,
               int n_threads) noexcept {
    constexpr ptrdiff_t columns = 128;
    n_threads = threads_awake(1.0 * ld_flat * B.ld, n_threads);
    return parallel(ceil_div(ld_flat, columns), n_threads, [&](ptrdiff_t s, int) {
        const ptrdiff_t first = s * columns, left = ld_flat - first;
        strip(B, first, left < columns ? left : columns, flat, ld_flat);
    });
}

// out (n, ld) = the transpose of the sum of parts (k, ld_flat) that are `apart`: a strip a task, which
// `raise` turns over.
template <class T, class Raise>
Status sum_parts(const T* parts, ptrdiff_t n_parts, ptrdiff_t apart, ptrdiff_t ld_flat, Raise raise,
                 const Factor<T>& out, int n_threads) noexcept {
    constexpr ptrdiff_t strip = 64;  // whole vectors
    n_threads = threads_awake(static_cast<double>(n_parts) * out.k * ld_flat, n_threads);
    Scratch<T> sums(n_threads * out.ld * strip);
    if (!sums) return Status::no_memory;
    std::memset(sums.get(), 0, n_threads * out.ld * strip * sizeof(T));  // rows from k on stay zero
    return parallel(ceil_div(out.n, strip), n_threads, [&](ptrdiff_t s, int worker) {
        const ptrdiff_t first = s * strip, left = ld_flat - first;
        T* sum = sums.get() + worker * out.ld * strip;
        for (ptrdiff_t t = 0; t < out.k; ++t)
            add_parts(parts + t * ld_flat + first, n_parts, left < strip ? left : strip,
                      sum + t * strip, apart);
        raise(sum, strip, first, strip, out);
    });
}

}  // namespace fastml
