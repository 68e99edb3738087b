#include "linear_svm/augmented.h"

// std headers come before any target region
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "common/isa.h"
#include "linear_svm/line_search.h"
#include "linear_svm/merging.h"
#include "linear_svm/passes.h"

#define FML_KERNEL "linear_svm/augmented.inl.h"
#include "common/foreach_isa.h"

namespace fastml {
namespace {

// The dual with a term that keeps multipliers near their centers is, as a problem in w, a smooth one
// with quadratic pieces: Newton's method solves it in few steps, whose Hessian has only the rows near
// their hinges. From its solution on the multipliers are the centers, and the term has less weight.
template <class T> class MethodOfMultipliers final : public Solver {
  public:
    MethodOfMultipliers(const Rows<T>& X, const Problem& problem, const Limits& limits,
                        const Settled& settled)
        : limits_(limits), settled_(settled), passes_(X, problem.bias), gram_(passes_),
          n_(passes_.n), width_(passes_.width), center_(n_), z_(n_), dz_(n_), a_(n_), kappa_(n_),
          w_(width_), step_(width_), u_(width_), inside_(n_), held_(n_), rows_(n_) {
        if (!ok()) return;
        s_ = {problem, center_.get(), 0};
        std::fill_n(dz_.get(), n_, 0.0);
        std::fill_n(held_.get(), n_, 0.0);
        if (settled.w)
            std::copy_n(settled.w, width_, w_.get());
        else
            std::fill_n(w_.get(), width_, 0.0);
        w = w_.get();
    }
    bool ok() const {
        return passes_ && gram_ && center_ && z_ && dz_ && a_ && kappa_ && w_ && step_ && u_ &&
               rows_ && inside_ && held_;
    }

    Status advance(int n_threads) noexcept override {
        n_threads_ = n_threads;
        Status status = Status::ok;
        if (n_iter == 0 && ((status = start()) != Status::ok || judge())) return status;
        ++n_iter;
        if (apart_ <= gap - apart_) {
            std::copy_n(a_.get(), n_, center_.get());
            s_.stiffness = std::min(s_.stiffness * stiffer, stiffest_);
            if ((status = measure(0)) != Status::ok) return status;
        }
        if ((status = update_gram()) != Status::ok) return status;
        const double ridge = 1 / s_.stiffness;
        gram_.factorise(ridge);
        for (ptrdiff_t p = 0; p < width_; ++p) step_[p] = (u_[p] - w_[p]) * ridge;
        gram_.solve(step_.get());
        double t;
        if ((status = search(&t)) != Status::ok) return status;
        for (ptrdiff_t p = 0; p < width_; ++p) w_[p] += t * step_[p];
        if ((status = measure(t)) != Status::ok) return status;
        judge();
        return status;
    }

  private:
    // At first rows within so much of their hinges, if more is not known, count as near.
    static constexpr double first_wide = 1.5;
    static constexpr double stiffer = 3;        // from one problem to the next
    static constexpr double most_stiff = 1e10;  // of the first: beyond, rounding is larger
    // Steps without a better gap: rows that come near and leave again may take many.
    static constexpr int patience = 200;

    Status start() {
        const Problem& p = s_.problem;
        double wide = settled_.wide;
        if (wide == 0 && p.regression) {
            for (ptrdiff_t i = 0; i < n_; ++i) wide += std::fabs(p.b[i]) / static_cast<double>(n_);
        }
        if (wide == 0) wide = first_wide;
        // Targets may nearly all be within epsilon: to hold the others too firmly takes many steps.
        s_.stiffness = (p.regression ? 0.1 : 0.5) / wide;
        stiffest_ = s_.stiffness * most_stiff;
        for (ptrdiff_t i = 0; i < n_; ++i) center_[i] = p.regression ? 0 : p.b[i] * p.C[i] / 2;
        const Status status = passes_.sweep(w_.get(), z_.get(), nullptr, nullptr, n_threads_,
                                            [](ptrdiff_t, ptrdiff_t, ptrdiff_t) {});
        return status == Status::ok ? measure(0) : status;
    }

    // z += t dz, a and u there, and the objectives.
    Status measure(double t) {
        const auto rows = FML_PICK(augmented_rows);
        AugmentedSums parts[summed_blocks] = {};
        const Status status = passes_.sweep(nullptr, nullptr, a_.get(), u_.get(), n_threads_,
                                            [&](ptrdiff_t begin, ptrdiff_t end, ptrdiff_t b) {
                                                rows(s_, begin, end, z_.get(), dz_.get(), t,
                                                     a_.get(), inside_.get(), parts + b);
                                            });
        for (ptrdiff_t p = 0; settled_.u && p < width_; ++p) u_[p] += settled_.u[p];
        primal = dot(w_.get(), w_.get(), width_) / 2 + settled_.loss;
        if (settled_.u) primal -= dot(settled_.u, w_.get(), width_);
        double dual = settled_.loss - dot(u_.get(), u_.get(), width_) / 2;
        for (const AugmentedSums& part : parts) {
            primal += part.loss;
            dual += part.dual;
        }
        gap = primal - dual;
        apart_ = 0;
        for (ptrdiff_t p = 0; p < width_; ++p) {
            const double off = w_[p] - u_[p];
            apart_ += off * off / 2;
        }
        return status;
    }

    bool judge() {
        // What settled rows add may make the objective of the part negative.
        converged = gap <= limits_.tol * std::fabs(primal);
        if (gap < best_)
            best_ = gap, waited_ = 0;
        else
            ++waited_;
        done =
            converged || waited_ == patience || n_iter >= limits_.max_iter || !std::isfinite(gap);
        return done;
    }

    // Of the sum of C x x' over the rows inside, what has changed.
    Status update_gram() {
        ptrdiff_t m = differences();
        ptrdiff_t near = 0;
        for (ptrdiff_t i = 0; i < n_; ++i) near += inside_[i] != 0;
        if (near < m) {
            gram_.clear();
            std::fill_n(held_.get(), n_, 0.0);
            m = differences();
        }
        std::copy_n(inside_.get(), n_, held_.get());
        return gram_.add(rows_.get(), kappa_.get(), m, n_threads_);
    }

    ptrdiff_t differences() {
        ptrdiff_t m = 0;
        for (ptrdiff_t i = 0; i < n_; ++i) {
            rows_[m] = static_cast<std::int32_t>(i);
            kappa_[m] = inside_[i] - held_[i];
            m += kappa_[m] != 0;
        }
        return m;
    }

    // How far to go along the step.
    Status search(double* result) {
        const auto slope_of = FML_PICK(augmented_slope);
        const double along = dot(w_.get(), step_.get(), width_),
                     length = dot(step_.get(), step_.get(), width_),
                     settled = settled_.u ? dot(settled_.u, step_.get(), width_) : 0;
        const double first = along - dot(u_.get(), step_.get(), width_);
        const auto slope = [&](double t, bool fresh, double* value) {
            double parts[summed_blocks] = {};
            const Status status =
                passes_.sweep(fresh ? step_.get() : nullptr, dz_.get(), nullptr, nullptr,
                              n_threads_, [&](ptrdiff_t begin, ptrdiff_t end, ptrdiff_t b) {
                                  parts[b] += slope_of(s_, begin, end, z_.get(), dz_.get(), t);
                              });
            *value = along + t * length - settled;
            for (const double part : parts) *value += part;
            return status;
        };
        return line_search(first, slope, result);
    }

    const Limits limits_;
    const Settled settled_;
    Passes<T> passes_;
    Gram<T> gram_;
    const ptrdiff_t n_, width_;
    Scratch<double> center_, z_, dz_, a_, kappa_, w_, step_, u_;
    Scratch<double> inside_, held_;  // C of rows near their hinges; of those in the Gram matrix
    Scratch<std::int32_t> rows_;
    Augmented s_{};
    double stiffest_ = 0;
    double apart_ = 0;  // |w - u|² / 2: the part of the gap that Newton's method brings to zero
    double best_ = std::numeric_limits<double>::max();
    int waited_ = 0, n_threads_ = 1;
};

}  // namespace

template <class T>
Solver* augmented_within(const Rows<T>& X, const Problem& problem, const Limits& limits,
                         const Settled& settled) noexcept {
    return checked(new (std::nothrow) MethodOfMultipliers<T>(X, problem, limits, settled));
}
template <class T>
Solver* augmented_distinct(const Rows<T>& X, const Problem& problem,
                           const Limits& limits) noexcept {
    if (may_be_constant(X, problem)) return constant_first(X, problem, limits);
    return augmented_varied(X, problem, limits);
}
template <class T>
Solver* augmented_varied(const Rows<T>& X, const Problem& problem, const Limits& limits) noexcept {
    if (may_be_rare(X, problem)) return rare_first(X, problem, limits);
    return augmented_anyway(X, problem, limits);
}
template <class T>
Solver* augmented(const Rows<T>& X, const Problem& problem, const Limits& limits) noexcept {
    if (may_repeat(X, problem)) return merging(X, problem, limits, augmented_distinct<T>);
    return augmented_distinct(X, problem, limits);
}
template <class T>
Solver* augmented_anyway(const Rows<T>& X, const Problem& problem, const Limits& limits) noexcept {
    if (worth_narrowing(X)) return narrowing(X, problem, limits);
    return augmented_within(X, problem, limits, Settled{});
}
#define FML_INSTANTIATE(T)                                                                     \
    template Solver* augmented_within(const Rows<T>&, const Problem&, const Limits&,           \
                                      const Settled&) noexcept;                                \
    template Solver* augmented(const Rows<T>&, const Problem&, const Limits&) noexcept;        \
    template Solver* augmented_varied(const Rows<T>&, const Problem&, const Limits&) noexcept; \
    template Solver* augmented_anyway(const Rows<T>&, const Problem&, const Limits&) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
