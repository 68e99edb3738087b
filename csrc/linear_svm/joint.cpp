#include "linear_svm/joint.h"

// std headers come before any target region
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/isa.h"
#include "linear_svm/line_search.h"
#include "linear_svm/passes.h"

#define FML_KERNEL "linear_svm/joint.inl.h"
#include "common/foreach_isa.h"

namespace fastml {
namespace {

// The method of multipliers of augmented.cpp for Crammer and Singer's loss: a row's multipliers are
// its shares of classes, and its part of the Hessian has a block for each two classes that share it.
// Scores of all classes may be raised by the same, so those of the last class are taken off: the
// Hessian has k - 1 blocks.
template <class T> class JointMultipliers final : public Solver {
  public:
    JointMultipliers(const Rows<T>& X, double bias, const std::int32_t* codes, const double* C,
                     ptrdiff_t k, const Limits& limits)
        : limits_(limits), passes_(X, bias, k), gram_(passes_), n_(passes_.n), k_(k),
          width_(passes_.width), size_((k - 1) * width_), ld_(ceil_div(size_, 8) * 8),
          center_(k * n_), z_(k * n_), dz_(k * n_), a_(k * n_), kappa_(n_), w_(k * width_),
          step_(k * width_), u_(k * width_), pairs_(k * (k - 1) / 2 * gram_.ld * gram_.ld),
          H_(ld_ * ld_), factor_(ld_ * ld_), members_(n_), held_(n_), rows_(n_), changed_(n_) {
        if (!ok()) return;
        s_ = {codes, C, n_, k, center_.get(), stiffness_at_first};
        std::fill_n(w_.get(), k * width_, 0.0);
        std::fill_n(z_.get(), k * n_, 0.0);
        std::fill_n(dz_.get(), k * n_, 0.0);
        std::fill_n(center_.get(), k * n_, 1 / static_cast<double>(k));
        clear();
        w = w_.get();
    }
    bool ok() const {
        return passes_ && gram_ && center_ && z_ && dz_ && a_ && kappa_ && w_ && step_ && u_ &&
               pairs_ && H_ && factor_ && members_ && held_ && rows_ && changed_;
    }

    Status advance(int n_threads) noexcept override {
        n_threads_ = n_threads;
        Status status = Status::ok;
        if (n_iter == 0 && ((status = measure(0)) != Status::ok || judge())) return status;
        ++n_iter;
        if (apart_ <= gap - apart_) {
            stiffen();
            if ((status = measure(0)) != Status::ok) return status;
        }
        if ((status = update_pairs()) != Status::ok) return status;
        find_step();
        double t;
        if ((status = search(&t)) != Status::ok) return status;
        for (ptrdiff_t p = 0; p < k_ * width_; ++p) w_[p] += t * step_[p];
        if ((status = measure(t)) != Status::ok) return status;
        judge();
        return status;
    }

  private:
    // As those of augmented.cpp.
    static constexpr double stiffness_at_first = 1.0 / 3, stiffer = 3,
                            stiffest = stiffness_at_first * 1e10;
    static constexpr int patience = 200;

    void clear() {
        std::fill_n(pairs_.get(), k_ * (k_ - 1) / 2 * gram_.ld * gram_.ld, 0.0);
        std::fill_n(held_.get(), n_, std::uint64_t{0});
    }

    // From the shares at the solution on, with more weight.
    void stiffen() {
        for (ptrdiff_t m = 0; m < k_; ++m) {
            for (ptrdiff_t i = 0; i < n_; ++i)
                center_[m * n_ + i] = (s_.codes[i] == m ? 1.0 : 0.0) - a_[m * n_ + i] / s_.C[i];
        }
        s_.stiffness = std::min(s_.stiffness * stiffer, stiffest);
    }

    // z += t dz, a and u there, and the objectives.
    Status measure(double t) {
        const auto rows = FML_PICK(joint_rows);
        JointSums parts[summed_blocks] = {};
        const Status status = passes_.sweep(nullptr, nullptr, a_.get(), u_.get(), n_threads_,
                                            [&](ptrdiff_t begin, ptrdiff_t end, ptrdiff_t b) {
                                                rows(s_, begin, end, z_.get(), dz_.get(), t,
                                                     a_.get(), members_.get(), parts + b);
                                            });
        primal = dot(w_.get(), w_.get(), k_ * width_) / 2;
        double dual = -dot(u_.get(), u_.get(), k_ * width_) / 2;
        for (const JointSums& part : parts) {
            primal += part.loss;
            dual += part.dual;
        }
        gap = primal - dual;
        apart_ = 0;
        for (ptrdiff_t p = 0; p < k_ * width_; ++p) {
            const double off = w_[p] - u_[p];
            apart_ += off * off / 2;
        }
        return status;
    }

    bool judge() {
        converged = gap <= limits_.tol * primal;
        if (gap < best_)
            best_ = gap, waited_ = 0;
        else
            ++waited_;
        done =
            converged || waited_ == patience || n_iter >= limits_.max_iter || !std::isfinite(gap);
        return done;
    }

    // What a row adds to the block of two classes.
    static double shared(std::uint64_t members, std::uint64_t both) {
        return (members & both) == both ? 1.0 / __builtin_popcountll(members) : 0.0;
    }

    // Of the sums of C x x' / (classes that share x) over the rows that two classes share, what has
    // changed.
    Status update_pairs() {
        ptrdiff_t changed = differences(), many = 0;
        for (ptrdiff_t i = 0; i < n_; ++i) many += members_[i] != 0;
        if (many < changed) {
            clear();
            changed = differences();
        }
        double* H = pairs_.get();
        for (ptrdiff_t p = 1; p < k_; ++p) {
            for (ptrdiff_t q = 0; q < p; ++q, H += gram_.ld * gram_.ld) {
                const std::uint64_t both = std::uint64_t{1} << p | std::uint64_t{1} << q;
                ptrdiff_t m = 0;
                for (ptrdiff_t c = 0; c < changed; ++c) {
                    const std::int32_t i = changed_[c];
                    rows_[m] = i;
                    kappa_[m] = s_.C[i] * (shared(members_[i], both) - shared(held_[i], both));
                    m += kappa_[m] != 0;
                }
                const Status status = gram_.add(rows_.get(), kappa_.get(), m, n_threads_, H);
                if (status != Status::ok) return status;
            }
        }
        std::copy_n(members_.get(), n_, held_.get());
        return Status::ok;
    }

    ptrdiff_t differences() {
        ptrdiff_t changed = 0;
        for (ptrdiff_t i = 0; i < n_; ++i) {
            changed_[changed] = static_cast<std::int32_t>(i);
            changed += members_[i] != held_[i];
        }
        return changed;
    }

    // Newton's step s: ridge s + L s = ridge (u - w), where L is the sum over pairs of classes. It
    // adds up to zero over classes, and L leaves out what they have in common: of s less that of the
    // last class, s', the first k - 1 equations are (ridge (I - 11'/k) + L) s' = ridge (u - w).
    void find_step() {
        const double ridge = 1 / s_.stiffness, common = ridge / static_cast<double>(k_);
        std::fill_n(H_.get(), ld_ * ld_, 0.0);
        const double* H = pairs_.get();
        for (ptrdiff_t p = 1; p < k_; ++p) {
            for (ptrdiff_t q = 0; q < p; ++q, H += gram_.ld * gram_.ld) {
                add_block(q, q, 1, H);
                if (p == k_ - 1) continue;
                add_block(p, p, 1, H);
                add_block(p, q, -1, H);
                for (ptrdiff_t e = 0; e < width_; ++e)
                    H_[(p * width_ + e) * ld_ + q * width_ + e] -= common;
            }
        }
        for (ptrdiff_t e = 0; e < size_; ++e) H_[e * ld_ + e] -= common;
        factor(H_.get(), size_, ld_, ridge, factor_.get());
        double* last = step_.get() + size_;
        for (ptrdiff_t e = 0; e < size_; ++e) step_[e] = (u_[e] - w_[e]) * ridge;
        solve(factor_.get(), size_, ld_, step_.get());
        for (ptrdiff_t e = 0; e < width_; ++e) {
            double sum = 0;
            for (ptrdiff_t m = 0; m < k_ - 1; ++m) sum += step_[m * width_ + e];
            last[e] = -sum / static_cast<double>(k_);
            for (ptrdiff_t m = 0; m < k_ - 1; ++m) step_[m * width_ + e] += last[e];
        }
    }

    // The lower triangle of a pair's sum to a block of the Hessian, all of it off the diagonal.
    void add_block(ptrdiff_t p, ptrdiff_t q, double sign, const double* H) {
        double* to = H_.get() + p * width_ * ld_ + q * width_;
        for (ptrdiff_t i = 0; i < width_; ++i) {
            for (ptrdiff_t j = 0; j <= i; ++j) {
                const double value = sign * H[i * gram_.ld + j];
                to[i * ld_ + j] += value;
                if (p != q && i != j) to[j * ld_ + i] += value;
            }
        }
    }

    // How far to go along the step.
    Status search(double* result) {
        const auto slope_of = FML_PICK(joint_slope);
        const ptrdiff_t size = k_ * width_;
        const double along = dot(w_.get(), step_.get(), size),
                     length = dot(step_.get(), step_.get(), size);
        const double first = along - dot(u_.get(), step_.get(), size);
        const auto slope = [&](double t, bool fresh, double* value) {
            double parts[summed_blocks] = {};
            const Status status =
                passes_.sweep(fresh ? step_.get() : nullptr, dz_.get(), nullptr, nullptr,
                              n_threads_, [&](ptrdiff_t begin, ptrdiff_t end, ptrdiff_t b) {
                                  parts[b] += slope_of(s_, begin, end, z_.get(), dz_.get(), t);
                              });
            *value = along + t * length;
            for (const double part : parts) *value += part;
            return status;
        };
        return line_search(first, slope, result);
    }

    const Limits limits_;
    Passes<T> passes_;
    Gram<T> gram_;
    const ptrdiff_t n_, k_, width_, size_, ld_;
    Scratch<double> center_, z_, dz_, a_, kappa_, w_, step_, u_;
    Scratch<double> pairs_, H_, factor_;  // of each two classes; of all but the last one
    Scratch<std::uint64_t> members_, held_;
    Scratch<std::int32_t> rows_, changed_;
    Joint s_{};
    double apart_ = 0;  // |w - u|² / 2: the part of the gap that Newton's method brings to zero
    double best_ = std::numeric_limits<double>::max();
    int waited_ = 0, n_threads_ = 1;
};

}  // namespace

template <class T>
Solver* joint_augmented(const Rows<T>& X, double bias, const std::int32_t* codes, const double* C,
                        ptrdiff_t n_classes, const Limits& limits) noexcept {
    return checked(new (std::nothrow) JointMultipliers<T>(X, bias, codes, C, n_classes, limits));
}
template Solver* joint_augmented(const Rows<float>&, double, const std::int32_t*, const double*,
                                 ptrdiff_t, const Limits&) noexcept;
template Solver* joint_augmented(const Rows<double>&, double, const std::int32_t*, const double*,
                                 ptrdiff_t, const Limits&) noexcept;

}  // namespace fastml
