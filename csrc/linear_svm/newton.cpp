#include "linear_svm/line_search.h"
#include "linear_svm/merging.h"
#include "linear_svm/squared.h"

namespace fastml {
namespace {

template <class T> class Newton final : public SquaredSolver<T> {
    using Base = SquaredSolver<T>;
    using Base::converged, Base::done, Base::gap, Base::gram_, Base::limits_, Base::n_iter;
    using Base::now_, Base::passes_, Base::primal, Base::trial_;

  public:
    Newton(const Rows<T>& X, const Problem& problem, const Limits& limits)
        : Base(X, problem, limits), step_(passes_.width) {}
    bool ok() const override { return Base::ok() && step_; }

    Status advance(int n_threads) noexcept override {
        Status status = Status::ok;
        if (!started_) {
            started_ = true;
            status = this->measure(*now_, true, n_threads);
            if (status != Status::ok || judge()) return status;
        }
        ++n_iter;
        if ((status = this->update_gram(n_threads)) != Status::ok) return status;
        gram_.factorise(1);
        const ptrdiff_t width = passes_.width;
        for (ptrdiff_t p = 0; p < width; ++p) step_[p] = now_->u[p] - now_->w[p];
        gram_.solve(step_.get());
        for (ptrdiff_t p = 0; p < width; ++p) trial_->w[p] = now_->w[p] + step_[p];
        if ((status = this->measure(*trial_, false, n_threads)) != Status::ok) return status;
        const double first = derivative(*now_), last = derivative(*trial_);
        if (std::fabs(last) > flat_enough * std::fabs(first)) {
            if ((status = search(first, last, n_threads)) != Status::ok) return status;
        }
        const double before = primal;
        this->exchange();
        const bool stuck = !judge() && !(primal < before);
        if (stuck) {  // what is left is rounding, or all there is overflows
            done = true;
            converged = gap <= 1e6 * limits_.tol * primal;
        }
        return status;
    }

  private:
    double derivative(const Point& p) const {
        return dot(p.w.get(), step_.get(), passes_.width) -
               dot(p.u.get(), step_.get(), passes_.width);
    }

    // Ends where the gap is small enough, or nothing is left to try.
    bool judge() {
        const double norm = dot(now_->w.get(), now_->w.get(), passes_.width);
        primal = norm / 2 + now_->sums.loss;
        gap = primal - now_->sums.dual + dot(now_->u.get(), now_->u.get(), passes_.width) / 2;
        converged = gap <= limits_.tol * primal;
        // The look that finds it so counts, as it does in liblinear.
        if (converged && n_iter < limits_.max_iter) ++n_iter;
        done = converged || n_iter >= limits_.max_iter || !std::isfinite(gap);
        return done;
    }

    // Moves the trial to where the derivative along the step is about zero.
    Status search(double first, double last, int n_threads) {
        const ptrdiff_t n = passes_.n, width = passes_.width;
        for (ptrdiff_t i = 0; i < n; ++i) trial_->z[i] -= now_->z[i];
        const double along = dot(now_->w.get(), step_.get(), width);
        const double length = dot(step_.get(), step_.get(), width);
        double t;
        const auto slope = [&](double at, bool fresh, double* value) {
            if (fresh) {  // at 1, which is known
                *value = last;
                return Status::ok;
            }
            const Status status = this->slope(trial_->z.get(), at, value, n_threads);
            *value += along + at * length;
            return status;
        };
        const Status status = line_search(first, slope, &t);
        if (status != Status::ok) return status;
        for (ptrdiff_t p = 0; p < width; ++p) trial_->w[p] = now_->w[p] + t * step_[p];
        for (ptrdiff_t i = 0; i < n; ++i) trial_->z[i] = now_->z[i] + t * trial_->z[i];
        return this->measure(*trial_, true, n_threads);
    }

    Scratch<double> step_;
    bool started_ = false;
};

}  // namespace

template <class T>
Solver* newton_distinct(const Rows<T>& X, const Problem& problem, const Limits& limits) noexcept {
    return checked(new (std::nothrow) Newton<T>(X, problem, limits));
}
template <class T>
Solver* newton(const Rows<T>& X, const Problem& problem, const Limits& limits) noexcept {
    if (may_repeat(X, problem)) return merging(X, problem, limits, newton_distinct<T>);
    return newton_distinct(X, problem, limits);
}
template Solver* newton(const Rows<float>&, const Problem&, const Limits&) noexcept;
template Solver* newton(const Rows<double>&, const Problem&, const Limits&) noexcept;

}  // namespace fastml
