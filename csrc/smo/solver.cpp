// std headers come before any target region
#include "smo/solver.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>

#include "common/isa.h"

#define FML_KERNEL "smo/steps.inl.h"
#include "common/foreach_isa.h"

namespace fastml {
namespace {

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

// Between two bounds, of which either may be missing.
double middle(double a, double b) {
    if (!std::isfinite(a)) a = b;
    if (!std::isfinite(b)) b = a;
    return std::isfinite(a) ? (a + b) / 2 : 0;
}

template <class T> bool renew(std::unique_ptr<SetMemory<T>>& memory, ptrdiff_t size) {
    memory.reset();  // first, so that there are never two
    memory.reset(new (std::nothrow) SetMemory<T>(size));
    return memory && *memory;
}

}  // namespace

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
    most = std::min(most, limit_ - steps_);
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

// Chooses a working set, makes steps in it and tells the gradient.
Status Solver::round(const Extremes& ends, bool* moved) {
    const ptrdiff_t most = precise_ && !whole() ? std::min(most_, last_precise_set) : most_;
    const bool grows = ++rounds_ * first_set > rounds_of_size * size_ && size_ < most;
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
        const bool spent = steps_ >= limit_ || watch_.enough();
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

}  // namespace fastml
