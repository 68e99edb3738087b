// Rows of a kernel matrix, by the engine of pairs of rows.
#include "common/sqdist.inl.h"
#include "common/math.inl.h"
#include "pairwise/ops.inl.h"
#include "pairwise/finish.inl.h"
#include "pairwise/sinks.inl.h"
#include "pairwise/dense.inl.h"
#include "pairwise/sparse.inl.h"

// A finished block goes to rows that are kept, and its rows, weighted, to the sums of its columns.
template <class C, class K> struct Spread {
    const Delivery<K>& to;
    void operator()(const Block<C>& block) const {
        K* const* keep = to.keep;
        for (std::ptrdiff_t i = 0; keep && i < block.rows; ++i) {
            const C* row = block.at + i * block.ld;
            if (!keep[block.i0 + i]) continue;
            K* kept = keep[block.i0 + i] + block.j0;
            for (std::ptrdiff_t j = 0; j < block.cols; ++j) kept[j] = static_cast<K>(row[j]);
        }
        if (!to.sums) return;
        std::ptrdiff_t j = 0;
        for (; j + strip <= block.cols; j += strip) add_strip(block, j);
        for (; j < block.cols; ++j) {
            double sum = 0;
            for (std::ptrdiff_t i = 0; i < block.rows; ++i)
                sum += to.coef[block.i0 + i] * static_cast<double>(block.at[i * block.ld + j]);
            to.sums[block.j0 + j] += sum;
        }
    }

    // As many columns as a tile of single precision has: their sums stay in registers.
    static constexpr int vecs = 6, strip = vecs * Simd<double>::lanes;
    FML_INLINE void add_strip(const Block<C>& block, std::ptrdiff_t j) const {
        using Vec = typename Simd<double>::Vec;
        constexpr int lanes = Simd<double>::lanes;
        double* sums = to.sums + block.j0 + j;
        Vec sum[vecs];
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) sum[v] = load<Vec>(sums + v * lanes);
        for (std::ptrdiff_t i = 0; i < block.rows; ++i) {
            const C* row = block.at + i * block.ld + j;
            const double w = to.coef[block.i0 + i];
            FML_UNROLL
            for (int v = 0; v < vecs; ++v) sum[v] += load_as<double>(row + v * lanes) * w;
        }
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) store(sums + v * lanes, sum[v]);
    }
};

// Squared distances by differences, in double and of the rows as they are given.
template <class C, class S> struct GivenPair {
    const Given<S>& rows;
    C operator()(std::ptrdiff_t i, std::ptrdiff_t j) const {
        const std::ptrdiff_t d = rows.d;
        const S *x = rows.X + rows.ids[i] * d, *y = rows.X + rows.columns[j] * d;
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::ptrdiff_t p = 0; p < d; ++p) {
            const double t = static_cast<double>(x[p]) - static_cast<double>(y[p]);
            sum += t * t;
        }
        return static_cast<C>(sum);
    }
};

template <class C, class S>
void rows_block(const Job<C>& job, const Chunk<C>& chunk, std::ptrdiff_t i0, std::ptrdiff_t rows,
                std::ptrdiff_t p0, std::ptrdiff_t p1, C* scratch, const Given<S>& given,
                const Delivery<C>& to) {
    dense_pass(job, chunk, i0, rows, p0, p1, scratch, GivenPair<C, S>{given}, Spread<C, C>{to});
}

template <class S> struct GivenSparsePair {
    SparsePair<S> pair;
    const std::ptrdiff_t *ids, *columns;
    double operator()(std::ptrdiff_t i, std::ptrdiff_t j) const { return pair(ids[i], columns[j]); }
};

// Rows `ids` (count) of X against a chunk of columns sorted into lists. at: chunk.stride.
template <class S, class K>
void sparse_rows_block(const Job<S>& job, const Chunk<double>& chunk, const std::ptrdiff_t* ids,
                       std::ptrdiff_t count, const std::ptrdiff_t* columns, double* at,
                       const Delivery<K>& to) {
    const Spread<double, K> spread{to};
    const GivenSparsePair<S> exact{{job.X, job.X}, ids, columns};
    for (std::ptrdiff_t i = 0; i < count; ++i) {
        if (job.plan.gather == Gather::product)
            gather_lists<false>(job.X, ids[i], chunk, at);
        else
            gather_lists<true>(job.X, ids[i], chunk, at);
        const double norm = sparse_norm_of(job.plan.norm, job.X, ids[i]);
        const Block<double> block{at,      nullptr,      i,     1,          chunk.first,
                                  chunk.n, chunk.stride, &norm, chunk.norms};
        finish(job, block, exact);
        spread(block);
    }
}

// out (count, d) = rows `ids` of X less shift.
template <class C, class S>
void take_rows_block(const S* X, std::ptrdiff_t d, const std::ptrdiff_t* ids, std::ptrdiff_t count,
                     const double* shift, C* out) {
    for (std::ptrdiff_t i = 0; i < count; ++i, out += d) {
        const S* x = X + ids[i] * d;
        if (shift)
            for (std::ptrdiff_t p = 0; p < d; ++p)
                out[p] = static_cast<C>(static_cast<double>(x[p]) - shift[p]);
        else
            for (std::ptrdiff_t p = 0; p < d; ++p) out[p] = static_cast<C>(x[p]);
    }
}

// w += coef x, and sums[j] += w x_j: a linear kernel in two steps.
template <class S>
void combine_block(const S* X, std::ptrdiff_t d, const std::ptrdiff_t* ids, std::ptrdiff_t count,
                   const double* coef, double* w) {
    for (std::ptrdiff_t i = 0; i < count; ++i) {
        const S* x = X + ids[i] * d;
        for (std::ptrdiff_t p = 0; p < d; ++p) w[p] += coef[i] * static_cast<double>(x[p]);
    }
}
template <class S>
void project_block(const S* X, std::ptrdiff_t d, const std::ptrdiff_t* columns, std::ptrdiff_t n,
                   const double* w, double* sums) {
    for (std::ptrdiff_t j = 0; j < n; ++j) {
        const S* x = X + columns[j] * d;
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::ptrdiff_t p = 0; p < d; ++p) sum += w[p] * static_cast<double>(x[p]);
        sums[j] += sum;
    }
}
