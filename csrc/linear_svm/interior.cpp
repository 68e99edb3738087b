#include "linear_svm/interior.h"

// std headers come before any target region
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/isa.h"
#include "linear_svm/passes.h"

#define FML_KERNEL "linear_svm/interior.inl.h"
#include "common/foreach_isa.h"

namespace fastml {
namespace {

template <class T> class Interior final : public Solver {
  public:
    Interior(const Rows<T>& X, const Problem& problem, const Limits& limits, const Settled& settled)
        : limits_(limits), settled_(settled), passes_(X, problem.bias), gram_(passes_),
          n_(passes_.n), width_(passes_.width), hinges_(n_ * (1 + problem.regression)),
          each_(hinge * (1 + problem.regression)), memory_(6 * hinges_), rows_(n_), z_(n_), dz_(n_),
          a_(n_), kappa_(n_), w_(width_), step_(width_), u_(width_) {
        if (!ok()) return;
        double* at = memory_.get();
        h_ = {problem,
              n_,
              at,
              at + hinges_,
              at + 2 * hinges_,
              at + 3 * hinges_,
              at + 4 * hinges_,
              at + 5 * hinges_};
        for (ptrdiff_t i = 0; i < n_; ++i) rows_[i] = static_cast<std::int32_t>(i);
        if (settled.w)
            std::copy_n(settled.w, width_, w_.get());
        else
            std::fill_n(w_.get(), width_, 0.0);
        w = w_.get();
    }
    bool ok() const {
        return passes_ && gram_ && memory_ && rows_ && z_ && dz_ && a_ && kappa_ && w_ && step_ &&
               u_;
    }

    Status advance(int n_threads) noexcept override {
        n_threads_ = n_threads;
        Status status;
        if (n_iter == 0) {
            if ((status = start()) != Status::ok) return status;
            if (done) return status;
        }
        ++n_iter;
        if ((status = system(0, false)) != Status::ok) return status;
        gram_.clear();
        status = gram_.add(rows_.get(), kappa_.get(), n_, n_threads);
        if (status != Status::ok) return status;
        gram_.factorise(1);
        HingeSums sums;
        if ((status = direction(0, false, &sums)) != Status::ok) return status;
        const double t = longest_step(sums, 1);
        const double ratio = 1 + t * (sums.slope + t * sums.curve) / sums.product;
        const double mu = ratio * ratio * ratio * sums.product / (2 * hinges_);
        if ((status = system(mu, true)) != Status::ok) return status;
        if ((status = direction(mu, true, &sums)) != Status::ok) return status;
        return move(mu, longest_step(sums, reach));
    }

  private:
    static constexpr double reach = 0.995;  // of the way to the boundary
    static constexpr int patience = 8;      // steps without a better gap
    static constexpr double hinge = 100;    // multiply-adds that divisions take the time of

    // So much of the way to the boundary, but no more than a whole step.
    static double longest_step(const HingeSums& sums, double part) {
        return sums.fastest > part ? part / sums.fastest : 1.0;
    }

    Status start() {
        const auto first = FML_PICK(hinges_start);
        double wide = settled_.wide;
        for (ptrdiff_t i = 0; i < n_ && h_.problem.regression && settled_.wide == 0; ++i)
            wide += std::fabs(h_.problem.b[i]) / n_;
        if (wide == 0) wide = 1;
        Status status = passes_.sweep(w_.get(), z_.get(), nullptr, nullptr, n_threads_,
                                      [](ptrdiff_t, ptrdiff_t, ptrdiff_t) {});
        if (status != Status::ok) return status;
        status =
            value([&](ptrdiff_t begin, ptrdiff_t end) { first(h_, begin, end, z_.get(), wide); },
                  u_.get());
        best_ = gap;
        done = n_iter >= limits_.max_iter;
        return status;
    }

    // step = (I + X' kappa X)^-1 (X'a - w) needs its right-hand side, and kappa.
    Status system(double mu, bool corrected) {
        const auto rows = FML_PICK(hinges_system);
        const Status status = passes_.sweep(
            nullptr, nullptr, a_.get(), step_.get(), n_threads_,
            [&](ptrdiff_t begin, ptrdiff_t end, ptrdiff_t) {
                rows(h_, begin, end, z_.get(), mu, corrected, a_.get(), kappa_.get());
            },
            each_);
        add_settled(step_.get());
        return status;
    }

    Status direction(double mu, bool corrected, HingeSums* sums) {
        for (ptrdiff_t p = 0; p < width_; ++p) step_[p] -= w_[p];
        gram_.solve(step_.get());
        const auto rows = FML_PICK(hinges_try);
        HingeSums parts[summed_blocks] = {};
        const Status status = passes_.sweep(
            step_.get(), dz_.get(), nullptr, nullptr, n_threads_,
            [&](ptrdiff_t begin, ptrdiff_t end, ptrdiff_t b) {
                rows(h_, begin, end, z_.get(), dz_.get(), mu, corrected, parts + b);
            },
            each_);
        *sums = {};
        for (const HingeSums& part : parts) {
            sums->product += part.product;
            sums->slope += part.slope;
            sums->curve += part.curve;
            sums->fastest = std::max(sums->fastest, part.fastest);
        }
        return status;
    }

    Status move(double mu, double t) {
        for (ptrdiff_t p = 0; p < width_; ++p) {
            const double off = w_[p] - u_[p];
            w_[p] += t * step_[p];
            u_[p] = w_[p] - (1 - t) * off;
        }
        const auto rows = FML_PICK(hinges_move);
        Status status =
            value([&](ptrdiff_t begin,
                      ptrdiff_t end) { rows(h_, begin, end, z_.get(), dz_.get(), mu, t); },
                  nullptr);
        if (status != Status::ok) return status;
        if (gap < best_)
            best_ = gap, waited_ = 0;
        else
            ++waited_;
        const bool stuck = waited_ == patience || !std::isfinite(gap);
        if (gap <= limits_.tol * primal || stuck || n_iter >= limits_.max_iter) {
            // u was updated, not computed: the gap tells only now.
            status = value([](ptrdiff_t, ptrdiff_t) {}, u_.get());
            converged = gap <= limits_.tol * primal;
            done = converged || stuck || n_iter >= limits_.max_iter;
        }
        return status;
    }

    // The objectives, after update(begin, end) of rows; u = X'a where asked for.
    template <class Update> Status value(const Update& update, double* u) {
        const auto rows = FML_PICK(hinges_value);
        HingeSums parts[summed_blocks] = {};
        const Status status = passes_.sweep(
            nullptr, nullptr, a_.get(), u, n_threads_,
            [&](ptrdiff_t begin, ptrdiff_t end, ptrdiff_t b) {
                update(begin, end);
                rows(h_, begin, end, z_.get(), a_.get(), parts + b);
            },
            each_);
        if (u) add_settled(u);
        primal = dot(w_.get(), w_.get(), width_) / 2 + settled_.loss;
        if (settled_.u) primal -= dot(settled_.u, w_.get(), width_);
        double dual = settled_.loss - dot(u_.get(), u_.get(), width_) / 2;
        for (const HingeSums& part : parts) {
            primal += part.loss;
            dual += part.dual;
        }
        gap = primal - dual;
        return status;
    }

    void add_settled(double* u) const {
        for (ptrdiff_t p = 0; settled_.u && p < width_; ++p) u[p] += settled_.u[p];
    }

    const Limits limits_;
    const Settled settled_;
    Passes<T> passes_;
    Gram<T> gram_;
    const ptrdiff_t n_, width_, hinges_;
    const double each_;
    Scratch<double> memory_;
    Scratch<std::int32_t> rows_;
    Scratch<double> z_, dz_, a_, kappa_, w_, step_, u_;
    Hinges h_{};
    double best_ = 0;
    int waited_ = 0, n_threads_ = 1;
};

}  // namespace

template <class T>
Solver* interior_within(const Rows<T>& X, const Problem& problem, const Limits& limits,
                        const Settled& settled) noexcept {
    return checked(new (std::nothrow) Interior<T>(X, problem, limits, settled));
}
template <class T>
Solver* interior(const Rows<T>& X, const Problem& problem, const Limits& limits) noexcept {
    if (worth_narrowing(X)) return narrowing(X, problem, limits);
    return interior_within(X, problem, limits, Settled{});
}
#define FML_INSTANTIATE(T)                                                          \
    template Solver* interior_within(const Rows<T>&, const Problem&, const Limits&, \
                                     const Settled&) noexcept;                      \
    template Solver* interior(const Rows<T>&, const Problem&, const Limits&) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
