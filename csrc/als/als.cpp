#include "als/als.h"

// std headers come before any target region
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/blocks.h"
#include "common/isa.h"
#include "common/scratch.h"
#include "common/tasks.h"

#define FML_KERNEL "als/als.inl.h"
#include "common/foreach_isa.h"

namespace fastml {
namespace {

// Entries that are gathered at once: a part of L2, and at least what the dual needs.
template <class T> ptrdiff_t panel_rows(ptrdiff_t ld) {
    constexpr ptrdiff_t part = 1 << 18;
    return std::max(ld, part / static_cast<ptrdiff_t>(sizeof(T)) / ld / factor_unit * factor_unit);
}

template <class Bench, class T> Bench bench_at(T* at, ptrdiff_t capacity, ptrdiff_t ld) {
    Bench b;
    b.capacity = capacity;
    b.panel = at;
    T* next = at + capacity * ld;
    for (T** vector : {&b.target, &b.dots, &b.fit, &b.ones}) {
        *vector = next;
        next += capacity;
    }
    for (T** matrix : {&b.A, &b.flipped}) {
        *matrix = next;
        next += ld * ld;
    }
    for (T** vector : {&b.inverse, &b.sum, &b.rhs, &b.r, &b.p, &b.image}) {
        *vector = next;
        next += ld;
    }
    std::fill(b.ones, b.ones + capacity, T(1));
    return b;
}

template <class Bench, class T, class Block>
Status solve_tasks(const Ratings<T>& ratings, const Regressors<T>& columns, const Ridge& ridge,
                   Block block, T* x, T* bias, double* error, double* penalty,
                   int n_threads) noexcept {
    const ptrdiff_t ld = columns.ld, capacity = panel_rows<T>(ld);
    const double f = static_cast<double>(columns.f);
    const bool cg = ridge.method == Method::cg && !ridge.nonnegative;
    const double entry = cg ? 4 * f * (ridge.steps + 2) : f * (f + 8) / 2;
    const Tasks tasks(ratings.indptr, ratings.n, entry, cg ? 4 * f : f * f * f / 4);
    const ptrdiff_t size = capacity * (ld + 4) + 2 * ld * ld + 6 * ld;
    n_threads = threads_for(tasks.work, n_threads);
    Scratch<T> scratch(size * n_threads);
    Scratch<double> sums(2 * tasks.count);
    if (!tasks.begin || !scratch || !sums) return Status::no_memory;
    std::fill(sums.get(), sums.get() + 2 * tasks.count, 0.0);
    const Status status = parallel(tasks.count, n_threads, [&](ptrdiff_t t, int worker) {
        const Bench bench = bench_at<Bench>(scratch.get() + worker * size, capacity, ld);
        double* sum = sums.get() + 2 * t;
        block(ratings, columns, ridge, bench, tasks.begin[t], tasks.begin[t + 1], x, bias,
              error ? sum : nullptr, sum + 1);
    });
    if (error) *error = 0;
    *penalty = 0;
    for (ptrdiff_t t = 0; t < tasks.count; ++t) {
        if (error) *error += sums[2 * t];
        *penalty += sums[2 * t + 1];
    }
    return status;
}

}  // namespace

template <class T>
Status solve_rows(const Ratings<T>& ratings, const Regressors<T>& columns, const Ridge& ridge, T* x,
                  T* bias, double* error, double* penalty, int n_threads) noexcept {
#if FML_X86_REGIONS  // every instruction set has a Bench of its own, all alike
    if (isa() == Isa::avx512)
        return solve_tasks<avx512::Bench<T>>(ratings, columns, ridge, &avx512::solve_block<T>, x,
                                             bias, error, penalty, n_threads);
    if (isa() == Isa::avx2)
        return solve_tasks<avx2::Bench<T>>(ratings, columns, ridge, &avx2::solve_block<T>, x, bias,
                                           error, penalty, n_threads);
#endif
    return solve_tasks<baseline::Bench<T>>(ratings, columns, ridge, &baseline::solve_block<T>, x,
                                           bias, error, penalty, n_threads);
}

template <class T>
Status gram(const T* factors, ptrdiff_t n, ptrdiff_t f, ptrdiff_t ld, double* out,
            int n_threads) noexcept {
    const Grid grid(n, summed_blocks);
    n_threads = threads_for(static_cast<double>(n) * f * f / 2, n_threads);
    Scratch<double> parts(grid.blocks * f * f);
    Scratch<T> A(n_threads * ld * ld);
    if (!parts || !A) return Status::no_memory;
    const auto block = FML_PICK(gram_block<T>);
    const Status status = parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int worker) {
        double* part = parts.get() + b * f * f;
        std::fill(part, part + f * f, 0.0);
        block(factors + grid.begin(b) * ld, grid.end(b) - grid.begin(b), f, ld,
              A.get() + worker * ld * ld, part);
    });
    if (status != Status::ok) return status;
    add_parts(parts.get(), grid.blocks, f * f, out);
    for (ptrdiff_t i = 0; i < f; ++i)
        for (ptrdiff_t j = 0; j < i; ++j) out[i * f + j] = out[j * f + i];
    return Status::ok;
}

Status whitening(const double* gram, ptrdiff_t f, ptrdiff_t ld, double alpha, double* root,
                 double* inverse) noexcept {
    Scratch<double> pivots(ld);
    if (!pivots) return Status::no_memory;
    std::fill(root, root + ld * ld, 0.0);
    std::fill(inverse, inverse + ld * ld, 0.0);
    for (ptrdiff_t i = 0; i < f; ++i) {
        std::copy(gram + i * f, gram + (i + 1) * f, root + i * ld);
        root[i * (ld + 1)] += alpha;
    }
    FML_PICK(invert_root)(root, f, ld, pivots.get(), inverse);
    return Status::ok;
}

template <class T>
Status predict_pairs(const Model<T>& model, const std::int32_t* users, const std::int32_t* items,
                     ptrdiff_t n, T* out, int n_threads) noexcept {
    constexpr ptrdiff_t rows = 1 << 14;
    const auto block = FML_PICK(predict_block<T>);
    n_threads = threads_for(static_cast<double>(n) * model.f, n_threads);
    return parallel(ceil_div(n, rows), n_threads, [&](ptrdiff_t b, int) {
        const ptrdiff_t first = b * rows;
        block(model, users + first, items + first, std::min(rows, n - first), out + first);
    });
}

#define FML_INSTANTIATE(T)                                                                    \
    template Status solve_rows(const Ratings<T>&, const Regressors<T>&, const Ridge&, T*, T*, \
                               double*, double*, int) noexcept;                               \
    template Status gram(const T*, ptrdiff_t, ptrdiff_t, ptrdiff_t, double*, int) noexcept;   \
    template Status predict_pairs(const Model<T>&, const std::int32_t*, const std::int32_t*,  \
                                  ptrdiff_t, T*, int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
