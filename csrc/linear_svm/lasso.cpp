#include "linear_svm/descent.h"
#include "linear_svm/squared.h"

namespace fastml {
namespace {

template <class T> class Lasso final : public SquaredSolver<T> {
    using Base = SquaredSolver<T>;
    using Base::converged, Base::done, Base::gap, Base::gram_, Base::limits_, Base::n_iter;
    using Base::now_, Base::passes_, Base::primal, Base::trial_;

  public:
    Lasso(const Rows<T>& X, const Problem& problem, const Limits& limits)
        : Base(X, problem, limits), width_(passes_.width), hessian_(width_ * width_),
          gradient_(width_), rows_(width_), order_(width_) {
        if (!ok()) return;
        if (limits.start) std::copy_n(limits.start, width_, now_->w.get());
    }
    bool ok() const override { return Base::ok() && hessian_ && gradient_ && rows_ && order_; }

    Status advance(int n_threads) noexcept override {
        Status status = Status::ok;
        if (!started_) {
            started_ = true;
            status = this->measure(*now_, false, n_threads);
            if (status != Status::ok || judge()) return status;
        }
        ++n_iter;
        if ((status = this->update_gram(n_threads)) != Status::ok) return status;
        const double slope = model();
        if ((status = this->measure(*trial_, false, n_threads)) != Status::ok) return status;
        if ((status = shorten(slope, n_threads)) != Status::ok) return status;
        const double before = primal;
        if (value(*trial_) < before) {
            this->exchange();
            judge();
        } else {
            done = true;  // what is left is rounding, or all there is overflows
            converged = gap <= std::max(1e3 * limits_.tol, of_rounding) * primal;
        }
        return status;
    }

  private:
    // The part of the objective that the gap may be where rounding keeps that from falling: a point
    // is then as far from the optimum as the root of that rounding, and the gap goes with the point.
    static constexpr double of_rounding = 1e-7;
    static constexpr int sweeps = 300;
    static constexpr double enough = 1e-3;  // of the first sweep's violations

    double value(const Point& p) const {
        double sum = p.sums.loss;
        for (ptrdiff_t j = 0; j < width_; ++j) sum += std::fabs(p.w[j]);
        return sum;
    }

    bool judge() {
        double largest = 1;
        for (ptrdiff_t j = 0; j < width_; ++j) largest = std::max(largest, std::fabs(now_->u[j]));
        // a / largest is feasible.
        const SquaredSums& sums = now_->sums;
        primal = value(*now_);
        gap = primal - ((sums.dual + sums.loss) / largest - sums.loss / (largest * largest));
        converged = gap <= limits_.tol * primal;
        // The look that finds it so counts, as it does in liblinear.
        if (converged && n_iter < limits_.max_iter) ++n_iter;
        done = converged || n_iter >= limits_.max_iter || !std::isfinite(gap);
        return done;
    }

    // The trial's w minimises the quadratic model; returns how the objective falls to first order.
    double model() {
        for (ptrdiff_t i = 0; i < width_; ++i)
            for (ptrdiff_t j = 0; j <= i; ++j)
                hessian_[i * width_ + j] = hessian_[j * width_ + i] = gram_.H[i * gram_.ld + j];
        for (ptrdiff_t j = 0; j < width_; ++j) {
            rows_[j] = {now_->w[j], 0, -1e300, 1e300, 0, hessian_[j * (width_ + 1)], 0, 0};
            gradient_[j] = -now_->u[j];
            order_[j] = static_cast<std::int32_t>(j);
        }
        Descent s{width_, rows_.get(), gradient_.get(),     order_.get(), width_,
                  1,      0,           1ull + limits_.seed, 1e300,        0,
                  0};
        double first = 0;
        for (int k = 0; k < sweeps; ++k) {
            const bool all = s.active == width_;
            gram_sweep(hessian_.get(), s);
            if (k == 0) first = s.sum;
            if (s.sum > enough * first) continue;
            if (all) break;
            s.active = width_;
            s.shrinks = 1e300;
        }
        double slope = 0;
        for (ptrdiff_t j = 0; j < width_; ++j) {
            trial_->w[j] = rows_[j].a;
            slope += std::fabs(trial_->w[j]) - std::fabs(now_->w[j]) -
                     now_->u[j] * (trial_->w[j] - now_->w[j]);
        }
        return slope;
    }

    // Halves the step until the objective falls by a part of what the slope promises.
    Status shorten(double slope, int n_threads) {
        for (int k = 0; k < 40 && value(*trial_) > primal + 1e-4 * slope; ++k, slope /= 2) {
            for (ptrdiff_t j = 0; j < width_; ++j) trial_->w[j] = (trial_->w[j] + now_->w[j]) / 2;
            for (ptrdiff_t i = 0; i < passes_.n; ++i)
                trial_->z[i] = (trial_->z[i] + now_->z[i]) / 2;
            const Status status = this->measure(*trial_, true, n_threads);
            if (status != Status::ok) return status;
        }
        return Status::ok;
    }

    const ptrdiff_t width_;
    Scratch<double> hessian_, gradient_;
    Scratch<Coordinate> rows_;
    Scratch<std::int32_t> order_;
    bool started_ = false;
};

}  // namespace

template <class T>
Solver* lasso(const Rows<T>& X, const Problem& problem, const Limits& limits) noexcept {
    return checked(new (std::nothrow) Lasso<T>(X, problem, limits));
}
template Solver* lasso(const Rows<float>&, const Problem&, const Limits&) noexcept;
template Solver* lasso(const Rows<double>&, const Problem&, const Limits&) noexcept;

}  // namespace fastml
