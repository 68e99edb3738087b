// std headers come before any target region
#include "smo/smo.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>

#include "common/isa.h"
#include "smo/solver.h"

#define FML_KERNEL "smo/steps.inl.h"
#include "common/foreach_isa.h"

namespace fastml {
namespace {

// Problems of at most whole_set variables are one working set. Others begin with sets that stay in L2
// and, as long as it takes, go on with larger ones: most of the variables that still move together.
constexpr ptrdiff_t whole_set = 768, first_set = 512, last_set = 2048, last_precise_set = 1024,
                    most_newton = 512;
constexpr int rounds_of_size = 24;

// Everything of a working set but its variables.
template <class T> struct SetMemory {
    ptrdiff_t ld;
    Scratch<T> K, diagonal;
    Scratch<double> values;
    Scratch<float> gain;
    Scratch<T*> rows;
    Scratch<ptrdiff_t> ids;
    ptrdiff_t newton;
    Scratch<double> A, vectors;
    Scratch<ptrdiff_t> free;

    explicit SetMemory(ptrdiff_t most)
        : ld(aligned(most)), K(ld * ld), diagonal(ld), values(7 * ld), gain(ld), rows(most),
          ids(most), newton(std::min(most, most_newton)), A(newton * newton), vectors(3 * newton),
          free(newton) {
        if (!*this) return;
        std::fill_n(K.get(), ld * ld, T(0));
        for (ptrdiff_t k = 0; k < most; ++k) rows[k] = K.get() + k * ld;
    }
    explicit operator bool() const {
        return K && diagonal && values && gain && rows && ids && A && vectors && free;
    }
    NewtonMemory for_newton() const {
        double* x = vectors.get();
        return {newton, A.get(), x, x + newton, x + 2 * newton, free.get()};
    }
    WorkingSet<T> set(ptrdiff_t n, ptrdiff_t split) const {
        double* at = values.get();
        return {n,           split,       ld,          K.get(),     diagonal.get(),
                at,          at + ld,     at + 2 * ld, at + 3 * ld, at + 4 * ld,
                at + 5 * ld, at + 6 * ld, gain.get()};
    }
};

// Rows of a small problem are rounded to single precision only when they are done, as libsvm's are:
// every kind of rows gives the same steps then.
Status rounded_rows(View& view, const ptrdiff_t* ids, ptrdiff_t n, float* const* out,
                    int n_threads) {
    constexpr ptrdiff_t some = 64;
    Scratch<double> values(some * n);
    if (!values) return Status::no_memory;
    double* rows[some];
    for (ptrdiff_t i = 0; i < some; ++i) rows[i] = values.get() + i * n;
    for (ptrdiff_t i0 = 0; i0 < n; i0 += some) {
        const ptrdiff_t here = std::min(some, n - i0);
        const Status status = view.add_exact(ids + i0, here, nullptr, rows, nullptr, n_threads);
        if (status != Status::ok) return status;
        for (ptrdiff_t i = 0; i < here; ++i)
            for (ptrdiff_t j = 0; j < n; ++j) out[i0 + i][j] = static_cast<float>(rows[i][j]);
    }
    return Status::ok;
}

class Solver {
  public:
    Solver(const Kernel& kernel, View& view, const SvmProblem& problem, const SvmOptions& options,
           double cache_bytes, SvmWatch& watch, int n_threads, ptrdiff_t n_distinct)
        : kernel_(kernel), view_(view), problem_(problem), options_(options), watch_(watch),
          n_threads_(n_threads), x_(problem.m, n_distinct),
          most_(std::min(problem.m, problem.m <= whole_set ? whole_set : last_set)),
          size_(problem.m <= whole_set ? problem.m : std::min(most_, first_set)),
          selector_(problem.m, most_),
          cache_(n_distinct, n_distinct, keeps() ? cache_bytes : 0, view.thrift() > 1),
          delta_(n_distinct), moved_(2 * most_), ids_(most_), coef_(2 * most_), places_(2 * most_) {
    }
    explicit operator bool() const {
        return x_ && selector_ && cache_ && delta_ && moved_ && ids_ && coef_ && places_;
    }

    Status run(const std::int32_t* local, SvmSolution* solution) noexcept;

  private:
    bool whole() const { return problem_.m <= whole_set; }
    bool keeps() const { return view_.thrift() && !whole(); }
    void load(const std::int32_t* local);
    Status refresh();
    Status round(const Extremes& ends, bool* moved);
    template <class T> Status tile(SetMemory<T>& memory);
    template <class T> Status optimise(SetMemory<T>& memory, double gap, bool* moved);
    Status apply();
    void finish(SvmSolution* solution) const;

    const Kernel& kernel_;
    View& view_;
    const SvmProblem& problem_;
    const SvmOptions& options_;
    SvmWatch& watch_;
    const int n_threads_;
    Variables x_;
    const ptrdiff_t most_;
    ptrdiff_t size_;  // of working sets now
    int rounds_ = 0;  // of that size
    Selector selector_;
    RowCache cache_;
    std::unique_ptr<SetMemory<float>> single_;
    std::unique_ptr<SetMemory<double>> wide_;
    Scratch<double> delta_;
    Scratch<ptrdiff_t> moved_, ids_;  // rows whose delta is not 0
    Scratch<double> coef_;
    Scratch<float*> places_;
    ptrdiff_t n_moved_ = 0;
    std::int64_t steps_ = 0;
    bool fresh_ = true;  // sums are as in double
    bool precise_ = false;
    bool settled_ = false;  // as far as the last working set could tell
    ptrdiff_t tiled_ = 0;   // variables whose tile is there to stay
};

void Solver::load(const std::int32_t* local) {
    for (ptrdiff_t i = 0; i < kernel_.n; ++i)
        if (local[i] >= 0) x_.ids[local[i]] = i;
    for (ptrdiff_t s = 0; s < x_.m; ++s) {
        const double sign = problem_.signs[s], upper = problem_.upper[s];
        x_.row[s] = local[problem_.rows[s]];
        x_.beta[s] = problem_.start ? sign * problem_.start[s] : 0;
        x_.lower[s] = sign < 0 ? -upper : 0;
        x_.upper[s] = sign < 0 ? 0 : upper;
        x_.offset[s] = sign * problem_.linear[s];
    }
    std::fill_n(x_.sums.get(), x_.n, 0.0);
    std::fill_n(delta_.get(), x_.n, 0.0);
}

// The sums again, from beta and in double.
Status Solver::refresh() {
    Scratch<ptrdiff_t> ids(x_.n);
    Scratch<double> coef(x_.n);
    if (!ids || !coef) return Status::no_memory;
    std::fill_n(coef.get(), x_.n, 0.0);
    for (ptrdiff_t s = 0; s < x_.m; ++s) coef[x_.row[s]] += x_.beta[s];
    ptrdiff_t count = 0;
    for (ptrdiff_t r = 0; r < x_.n; ++r)
        if (coef[r] != 0) {
            ids[count] = x_.ids[r];
            coef[count++] = coef[r];
        }
    std::fill_n(x_.sums.get(), x_.n, 0.0);
    fresh_ = true;
    return view_.add_exact(ids.get(), count, coef.get(), nullptr, x_.sums.get(), n_threads_);
}

template <class T> Status Solver::tile(SetMemory<T>& memory) {
    const ptrdiff_t q = selector_.n;
    if (q == x_.m && tiled_ == q) return Status::ok;
    const ptrdiff_t* ids = memory.ids.get();
    for (ptrdiff_t k = 0; k < q; ++k) memory.ids[k] = x_.ids[x_.row[selector_.chosen[k]]];
    const std::unique_ptr<View> view = kernel_.view();
    if (!view) return Status::no_memory;
    Status status = view->set_columns(ids, q, n_threads_);
    if (status != Status::ok) return status;
    if constexpr (sizeof(T) == 8) {
        status = view->add_exact(ids, q, nullptr, memory.rows.get(), nullptr, n_threads_);
    } else if (whole()) {
        status = rounded_rows(*view, ids, q, memory.rows.get(), n_threads_);
    } else {
        status = view->add(ids, q, nullptr, memory.rows.get(), nullptr, n_threads_);
    }
    for (ptrdiff_t k = 0; k < q; ++k) memory.diagonal[k] = memory.K[k * memory.ld + k];
    tiled_ = q;
    return status;
}

// Steps inside the working set; what they moved is left in delta_.
template <class T> Status Solver::optimise(SetMemory<T>& memory, double gap, bool* any) {
    const Status status = tile(memory);
    if (status != Status::ok) return status;
    const ptrdiff_t q = selector_.n;
    WorkingSet<T> set = memory.set(q, options_.nu ? selector_.split : q);
    double *lower = memory.values.get() + 2 * memory.ld, *upper = lower + memory.ld;
    for (ptrdiff_t k = 0; k < q; ++k) {
        const ptrdiff_t s = selector_.chosen[k];
        set.beta[k] = x_.beta[s];
        set.v[k] = x_.force(s);
        lower[k] = x_.lower[s];
        upper[k] = x_.upper[s];
    }
    const double stop = q == x_.m ? options_.tol : std::max(0.1 * gap, 0.5 * options_.tol);
    std::int64_t most = 100 * static_cast<std::int64_t>(std::max<ptrdiff_t>(q, 100));
    if (options_.max_iter >= 0) most = std::min(most, options_.max_iter - steps_);
    const auto run = options_.bias ? FML_PICK(pair_steps<T>) : FML_PICK(single_steps<T>);
    const std::int64_t steps = run(set, memory.for_newton(), stop, most);
    steps_ += steps;
    settled_ = steps < most;
    n_moved_ = 0;
    *any = false;
    for (ptrdiff_t k = 0; k < q; ++k) {
        const ptrdiff_t s = selector_.chosen[k], r = x_.row[s];
        const double moved = set.beta[k] - x_.beta[s];
        if (moved == 0) continue;
        *any = true;
        x_.beta[s] = set.beta[k];
        if (delta_[r] == 0) moved_[n_moved_++] = r;
        delta_[r] += moved;
    }
    return Status::ok;
}

// Adds what moved to the sums: rows that are kept as they are, others as they are made.
Status Solver::apply() {
    ptrdiff_t kept = 0, made = most_;
    cache_.begin();
    if (!precise_)
        for (ptrdiff_t k = 0; k < n_moved_; ++k) {
            float* row = cache_.find(moved_[k]);
            if (!row) continue;
            coef_[kept] = delta_[moved_[k]];
            delta_[moved_[k]] = 0;
            places_[kept++] = row;
        }
    for (ptrdiff_t k = 0; k < n_moved_; ++k) {
        const ptrdiff_t r = moved_[k];
        if (delta_[r] == 0) continue;
        ids_[made - most_] = x_.ids[r];
        coef_[made] = delta_[r];
        delta_[r] = 0;
        places_[made] = precise_ ? nullptr : cache_.claim(r);
        ++made;
    }
    const auto add = FML_PICK(add_rows_block);
    constexpr ptrdiff_t columns = 1024;
    Status status = Status::ok;
    if (kept)
        status = parallel(ceil_div(x_.n, columns), threads_for(4.0 * kept * x_.n, n_threads_),
                          [&](ptrdiff_t b, int) {
                              add(places_.get(), kept, coef_.get(), b * columns,
                                  std::min(x_.n, (b + 1) * columns), x_.sums.get());
                          });
    if (status != Status::ok || made == most_) return status;
    fresh_ = fresh_ && (precise_ || view_.exact());
    const ptrdiff_t count = made - most_;
    if (precise_)
        return view_.add_exact(ids_.get(), count, coef_.get() + most_, nullptr, x_.sums.get(),
                               n_threads_);
    return view_.add(ids_.get(), count, coef_.get() + most_,
                     view_.thrift() ? places_.get() + most_ : nullptr, x_.sums.get(), n_threads_);
}

// Between two bounds, of which either may be missing.
double middle(double a, double b) {
    if (!std::isfinite(a)) a = b;
    if (!std::isfinite(b)) b = a;
    return std::isfinite(a) ? (a + b) / 2 : 0;
}

void Solver::finish(SvmSolution* solution) const {
    const Extremes ends = extremes(x_, problem_, options_);
    double rho[2] = {};
    for (int part = 0; part < ends.parts && options_.bias; ++part) {
        double sum = 0;
        ptrdiff_t free = 0;
        for (ptrdiff_t s = 0; s < x_.m; ++s) {
            if (ends.parts == 2 && (problem_.signs[s] > 0) != (part == 0)) continue;
            if (!x_.may_rise(s) || !x_.may_fall(s)) continue;
            sum -= x_.force(s);
            ++free;
        }
        rho[part] = free ? sum / free : -middle(ends.top[part], ends.bottom[part]);
    }
    solution->rho = options_.nu ? (rho[0] + rho[1]) / 2 : rho[0];
    solution->r = options_.nu ? (rho[0] - rho[1]) / 2 : 0;
    solution->gap = ends.gap() < 0 ? 0 : ends.gap();
    solution->objective = x_.objective();
    solution->n_iter = steps_;
    for (ptrdiff_t s = 0; s < x_.m; ++s) {
        const bool minus = problem_.signs[s] < 0;
        problem_.alpha[s] = minus ? 0 - x_.beta[s] : x_.beta[s];
        problem_.gradient[s] = minus ? x_.force(s) : -x_.force(s);
    }
}

template <class T> bool renew(std::unique_ptr<SetMemory<T>>& memory, ptrdiff_t size) {
    memory.reset();  // first, so that there are never two
    memory.reset(new (std::nothrow) SetMemory<T>(size));
    return memory && *memory;
}

// Chooses a working set, makes steps in it and tells the gradient.
Status Solver::round(const Extremes& ends, bool* moved) {
    const ptrdiff_t most = precise_ && !whole() ? std::min(most_, last_precise_set) : most_;
    const bool grows = ++rounds_ > rounds_of_size && size_ < most;
    if (grows) size_ = std::min(2 * size_, most);
    if (grows || !(precise_ ? static_cast<bool>(wide_) : static_cast<bool>(single_))) {
        rounds_ = 0;
        size_ = std::min(size_, most);
        if (precise_) single_.reset();
        if (!(precise_ ? renew(wide_, size_) : renew(single_, size_))) return Status::no_memory;
    }
    selector_.choose(x_, problem_, ends, options_.nu, size_);
    const double gap = ends.gap();
    const std::int64_t before = steps_;
    Status status = precise_ ? optimise(*wide_, gap, moved) : optimise(*single_, gap, moved);
    if (status == Status::ok && *moved) status = whole() ? refresh() : apply();
    if (status == Status::ok) status = watch_.look(static_cast<double>(steps_ - before), gap);
    return status;
}

Status Solver::run(const std::int32_t* local, SvmSolution* solution) noexcept {
    const double infinity = std::numeric_limits<double>::infinity();
    load(local);
    Status status = view_.set_columns(x_.ids.get(), x_.n, n_threads_);
    if (status == Status::ok && problem_.start) status = refresh();
    double last_objective = infinity, last_fresh = infinity;
    solution->end = SvmEnd::converged;
    while (status == Status::ok) {
        const Extremes ends = extremes(x_, problem_, options_);
        const double gap = ends.gap(), now = x_.objective();
        const bool done = gap <= (fresh_ ? 1.05 : 1) * options_.tol;
        const bool spent = options_.max_iter >= 0 && steps_ >= options_.max_iter;
        bool stalled = !(now < last_objective) || !std::isfinite(gap);
        last_objective = now;
        if (!fresh_ && (done || spent || stalled)) {
            status = refresh();
            last_objective = infinity;
            continue;
        }
        if (done) break;
        if (spent || (stalled && precise_)) {
            solution->end = spent ? SvmEnd::max_iter : SvmEnd::stuck;
            break;
        }
        if (fresh_ &&
            (whole() ? settled_ : !view_.exact())) {  // single precision does not bring it down
            stalled = stalled || gap > 0.5 * last_fresh;
            last_fresh = gap;
        }
        if (stalled) {
            precise_ = true;
            tiled_ = 0;
        }
        bool moved = false;
        status = round(ends, &moved);
    }
    if (status == Status::ok) finish(solution);
    return status;
}

// Numbers the rows of a problem in ascending order: local[i] is -1 or the number of row i.
ptrdiff_t number_rows(const SvmProblem& problem, ptrdiff_t n, std::int32_t* local) {
    std::fill_n(local, n, -1);
    for (ptrdiff_t s = 0; s < problem.m; ++s) local[problem.rows[s]] = 0;
    std::int32_t count = 0;
    for (ptrdiff_t i = 0; i < n; ++i)
        if (local[i] == 0) local[i] = count++;
    return count;
}

Status solve_one(const Kernel& kernel, const SvmProblem& problem, const SvmOptions& options,
                 double cache_bytes, SvmWatch& watch, SvmSolution* solution, int n_threads) {
    Scratch<std::int32_t> local(kernel.n);
    const std::unique_ptr<View> view = kernel.view();
    if (!local || !view) return Status::no_memory;
    const ptrdiff_t n = number_rows(problem, kernel.n, local.get());
    const std::unique_ptr<Solver> solver(new (std::nothrow) Solver(
        kernel, *view, problem, options, cache_bytes, watch, n_threads, n));
    if (!solver || !*solver) return Status::no_memory;
    return solver->run(local.get(), solution);
}

}  // namespace

Status solve_svm(const Kernel& kernel, const SvmProblem* problems, ptrdiff_t n_problems,
                 const SvmOptions& options, SvmWatch& watch, SvmSolution* solutions,
                 int n_threads) noexcept {
    const std::unique_ptr<View> view = kernel.view();
    if (!view) return Status::no_memory;
    const double n = static_cast<double>(kernel.n), bytes = n * n * sizeof(float);
    std::unique_ptr<Kernel> shared;
    if (n_problems > 1 && view->thrift() && bytes <= options.cache_bytes) {
        shared = shared_kernel(kernel);
        if (!shared) return Status::no_memory;
        const Status status = shared->prepare(n_threads);
        if (status != Status::ok) return status;
    }
    const Kernel& rows = shared ? *shared : kernel;
    ptrdiff_t largest = 0;
    for (ptrdiff_t p = 0; p < n_problems; ++p) largest = std::max(largest, problems[p].m);
    // Of problems that need no memory of rows, one a thread; unless one may take long, and Ctrl-C
    // with it.
    const bool together =
        n_problems > 1 && largest <= 20000 && kernel.anywhere() && (shared || !view->thrift());
    std::atomic<int> failed{0};
    const auto solve = [&](ptrdiff_t p, int threads) {
        if (failed.load()) return;
        const Status status = solve_one(rows, problems[p], options, options.cache_bytes, watch,
                                        solutions + p, threads);
        if (status != Status::ok) failed.store(static_cast<int>(status));
    };
    Status status = Status::ok;
    if (together)
        status = parallel(n_problems, n_threads, [&](ptrdiff_t p, int) { solve(p, 1); });
    else
        for (ptrdiff_t p = 0; p < n_problems; ++p) solve(p, n_threads);
    return failed.load() ? static_cast<Status>(failed.load()) : status;
}

}  // namespace fastml
