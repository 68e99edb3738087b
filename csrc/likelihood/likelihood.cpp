#include "likelihood/likelihood.h"

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

#define FML_KERNEL "likelihood/likelihood.inl.h"
#include "common/foreach_isa.h"

namespace fastml {

// In multiply-adds.
constexpr double likelihood_cost = 50;

template <class T> Likelihood<T> likelihood_of(Family family) noexcept {
    if (family == Family::bernoulli) return FML_PICK(bernoulli_block<T>);
    if (family == Family::poisson) return FML_PICK(poisson_block<T>);
    return FML_PICK(gaussian_block<T>);
}

template <class T>
Status evaluate(Likelihood<T> likelihood, const T* ratings, const T* scores, ptrdiff_t n, T* value,
                T* first, T* second, int n_threads) noexcept {
    constexpr ptrdiff_t size = 1 << 14;
    n_threads = threads_for(static_cast<double>(n) * likelihood_cost, n_threads);
    return parallel(ceil_div(n, size), n_threads, [&](ptrdiff_t b, int) {
        const ptrdiff_t e = b * size;
        likelihood(ratings + e, scores + e, std::min(size, n - e), value + e, first + e,
                   second + e);
    });
}

// What an entry costs: its product, and a likelihood.
static double entry_cost(ptrdiff_t ld) { return static_cast<double>(ld) + likelihood_cost; }

template <class T>
Status linearise(const Scored<T>& rows, Likelihood<T> likelihood, const T* x, T* scores, T* target,
                 T* scale, double* loss, int n_threads) noexcept {
    const Tasks tasks(rows.indptr, rows.n, entry_cost(rows.ld), 1);
    if (!tasks.begin) return Status::no_memory;
    const auto block = FML_PICK(linearise_block<T>);
    return parallel(tasks.count, threads_for(tasks.work, n_threads), [&](ptrdiff_t t, int) {
        block(rows, likelihood, tasks.begin[t], tasks.begin[t + 1], x, scores, target, scale, loss);
    });
}

template <class T>
Status damp(const Scored<T>& rows, Likelihood<T> likelihood, const double* penalty, const T* step,
            T* x, T* scores, T* moves, const double* loss, double* total, int n_threads) noexcept {
    const Tasks tasks(rows.indptr, rows.n, entry_cost(rows.ld), 1);
    Scratch<double> sums(tasks.count);
    if (!tasks.begin || !sums) return Status::no_memory;
    std::fill(sums.get(), sums.get() + tasks.count, 0.0);
    const auto block = FML_PICK(damp_block<T>);
    const Status status =
        parallel(tasks.count, threads_for(tasks.work, n_threads), [&](ptrdiff_t t, int) {
            block(rows, likelihood, tasks.begin[t], tasks.begin[t + 1], penalty, step, x, scores,
                  moves, loss, sums.get() + t);
        });
    *total = 0;
    for (ptrdiff_t t = 0; t < tasks.count; ++t) *total += sums[t];
    return status;
}

#define FML_INSTANTIATE(T)                                                                     \
    template Likelihood<T> likelihood_of<T>(Family) noexcept;                                  \
    template Status evaluate(Likelihood<T>, const T*, const T*, ptrdiff_t, T*, T*, T*,         \
                             int) noexcept;                                                    \
    template Status linearise(const Scored<T>&, Likelihood<T>, const T*, T*, T*, T*, double*,  \
                              int) noexcept;                                                   \
    template Status damp(const Scored<T>&, Likelihood<T>, const double*, const T*, T*, T*, T*, \
                         const double*, double*, int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
