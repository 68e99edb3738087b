#include "als/als.h"

// std headers come before any target region
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "als/equations.h"
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

// The kernels of one instruction set, each of which has a Bench of its own, all alike.
template <class T, class Bench> struct Kernels {
    void (*solve)(const Ratings<T>&, const Regressors<T>&, const Ridge&, const Bench&, ptrdiff_t,
                  ptrdiff_t, T*, T*, double*, double*);
    void (*collect)(const Ratings<T>&, const Regressors<T>&, const Ridge&, const Bench&, ptrdiff_t,
                    ptrdiff_t, ptrdiff_t, bool, const Equations<T>&);
    void (*finish)(const Ratings<T>&, const Regressors<T>&, const Ridge&, const Bench&, ptrdiff_t,
                   const Equations<T>&, T*, T*, double*);
    double (*squares)(const Ratings<T>&, const Regressors<T>&, const Ridge&, const Bench&,
                      ptrdiff_t, ptrdiff_t, ptrdiff_t, T*, T*);
};

template <class T, class Bench> class Solving {
  public:
    Solving(const Ratings<T>& ratings, const Regressors<T>& columns, const Ridge& ridge,
            const Kernels<T, Bench>& kernels, T* x, T* bias, int n_threads) noexcept
        : ratings_(ratings), columns_(columns), ridge_(ridge), kernels_(kernels), x_(x),
          bias_(bias), tasks_(ratings.indptr, ratings.n,
                              cg() ? 4 * f() * (ridge.steps + 2) : f() * (f() + 8) / 2,
                              cg() ? 4 * f() : f() * f() * f() / 4),
          n_threads_(threads_for(tasks_.work, n_threads)), scratch_(size_ * n_threads_) {}

    Status run(double* error, double* penalty) noexcept {
        Scratch<double> sums(2 * tasks_.count);
        if (!tasks_.begin || !scratch_ || !sums) return Status::no_memory;
        std::fill(sums.get(), sums.get() + 2 * tasks_.count, 0.0);
        Status status = parallel(tasks_.count, n_threads_, [&](ptrdiff_t t, int worker) {
            double* sum = sums.get() + 2 * t;
            kernels_.solve(ratings_, columns_, ridge_, bench(worker), tasks_.begin[t],
                           tasks_.begin[t + 1], x_, bias_, error ? sum : nullptr, sum + 1);
        });
        if (error) *error = 0;
        *penalty = 0;
        for (ptrdiff_t t = 0; t < tasks_.count; ++t) {
            if (error) *error += sums[2 * t];
            *penalty += sums[2 * t + 1];
        }
        for (ptrdiff_t i = 0; status == Status::ok && i < ratings_.n; ++i)
            if (is_long(ratings_.indptr[i + 1] - ratings_.indptr[i], ridge_))
                status = run_long(i, error, penalty);
        return status;
    }

  private:
    bool cg() const { return ridge_.method == Method::cg && !ridge_.nonnegative; }
    double f() const { return static_cast<double>(columns_.f); }
    Bench bench(int worker) const {
        return bench_at<Bench>(scratch_.get() + worker * size_, capacity_, ld_);
    }

    // A row of which every thread takes parts; those are added up in their order.
    Status run_long(ptrdiff_t i, double* error, double* penalty) noexcept {
        const ptrdiff_t n = ratings_.indptr[i + 1] - ratings_.indptr[i];
        // Not more of them than there is room for.
        const ptrdiff_t room = std::max<ptrdiff_t>(2, (1 << 24) / (ld_ * ld_));
        const ptrdiff_t part = std::max(long_part, ceil_div(n, room)), parts = ceil_div(n, part);
        const ptrdiff_t own = ld_ * ld_ + 2 * ld_;
        Scratch<T> equations(own * parts);
        Scratch<double> totals(parts);
        if (!equations || !totals) return Status::no_memory;
        const auto of = [&](ptrdiff_t p) {
            T* A = equations.get() + p * own;
            return Equations<T>{A, A + ld_ * ld_, A + ld_ * ld_ + ld_, totals.get() + p};
        };
        Status status = parallel(parts, n_threads_, [&](ptrdiff_t p, int worker) {
            kernels_.collect(ratings_, columns_, ridge_, bench(worker), i, p * part,
                             std::min((p + 1) * part, n), bias_ != nullptr, of(p));
        });
        if (status != Status::ok) return status;
        T* all = equations.get();
        for (ptrdiff_t p = 1; p < parts; ++p) {
            for (ptrdiff_t e = 0; e < own; ++e) all[e] += all[p * own + e];
            totals[0] += totals[p];
        }
        T *x = x_ + i * ld_, *bias = bias_ ? bias_ + i : nullptr;
        kernels_.finish(ratings_, columns_, ridge_, bench(0), i, of(0), x, bias, penalty);
        if (!error) return status;
        status = parallel(parts, n_threads_, [&](ptrdiff_t p, int worker) {
            totals[p] = kernels_.squares(ratings_, columns_, ridge_, bench(worker), i, p * part,
                                         std::min((p + 1) * part, n), x, bias);
        });
        for (ptrdiff_t p = 0; p < parts; ++p) *error += totals[p];
        return status;
    }

    const Ratings<T>& ratings_;
    const Regressors<T>& columns_;
    const Ridge& ridge_;
    const Kernels<T, Bench>& kernels_;
    T *x_, *bias_;
    ptrdiff_t ld_ = columns_.ld, capacity_ = panel_rows<T>(ld_);
    ptrdiff_t size_ = capacity_ * (ld_ + 4) + 2 * ld_ * ld_ + 6 * ld_;
    Tasks tasks_;
    int n_threads_;
    Scratch<T> scratch_;
};

}  // namespace

template <class T>
Status solve_rows(const Ratings<T>& ratings, const Regressors<T>& columns, const Ridge& ridge, T* x,
                  T* bias, double* error, double* penalty, int n_threads) noexcept {
#define FML_SOLVE(ISA)                                                                         \
    {                                                                                          \
        const Kernels<T, ISA::Bench<T>> kernels{&ISA::solve_block<T>, &ISA::collect_block<T>,  \
                                                &ISA::finish_row<T>, &ISA::squares_block<T>};  \
        return Solving<T, ISA::Bench<T>>(ratings, columns, ridge, kernels, x, bias, n_threads) \
            .run(error, penalty);                                                              \
    }
#if FML_X86_REGIONS
    if (isa() == Isa::avx512) FML_SOLVE(avx512)
    if (isa() == Isa::avx2) FML_SOLVE(avx2)
#endif
    FML_SOLVE(baseline)
#undef FML_SOLVE
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
