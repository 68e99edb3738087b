// std headers come before any target region
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "linear_svm/augmented.h"
#include "linear_svm/costs.h"
#include "linear_svm/deferring.h"
#include "linear_svm/part.h"
#include "linear_svm/passes.h"

namespace fastml {
namespace {

// How much more the frequent class costs than is needed to make up for the rare one.
constexpr double least_room = 16;
// Of the frequent class so many times what is needed is taken; of rows by a solution for some, which
// tells better.
constexpr double times_guessed = 4, times_known = 2;
// How much more like the rare rows than these themselves the most alike of the others may be: beyond,
// many choices of them make up for the rare ones, and w may be zero but for its constant.
constexpr double most_alike = 1.2;
// Such a solution is so good, relative to the objective, which is so far from that of a constant.
constexpr double rough = 1e-2, apart = 0.995;
// Rows, at least, and rows a column.
constexpr ptrdiff_t least_rows = 1000, least_each = 50;
// Rows of the frequent class whose moments are taken, at least and a column; and the ridge,
// relative to the largest of them.
constexpr ptrdiff_t sampled = 512, sampled_each = 64;
constexpr double ridge = 1e-6;
// More rows than that part of all, or more problems, are left to another solver.
constexpr double largest_part = 0.5;
constexpr int most_problems = 4;
// Multiply-adds of a round: some ten milliseconds.
constexpr double round_work = 1e8;

// Where a class is rare few rows of the other have a part in the solution: those that are most like
// the rare ones, whose multipliers make up for theirs. They are guessed by the direction that tells
// the classes apart by least squares. The problem without the others is a part of the whole, so that
// its dual objective is a bound; where some of them are on the wrong side of their hinges, they are
// taken too. Of a w that has only a constant the objective is known, and no solver comes to it exactly.
template <class T> class RareFirst final : public Deferring {
  public:
    RareFirst(const Rows<T>& X, const Problem& problem, const Limits& limits)
        : problem_(problem), limits_(limits), passes_(X, problem.bias), n_(passes_.n),
          width_(passes_.width), costs_(costs(problem, n_)), z_(n_), a_(n_), w_(width_),
          start_(width_), taken_(n_) {
        if (!ok()) return;
        std::fill_n(w_.get(), width_, 0.0);
        w = w_.get();
    }
    bool ok() const { return passes_ && z_ && a_ && w_ && start_ && taken_; }

    Status advance(int n_threads) noexcept override {
        if (other_) return follow(n_threads);
        Status status = inner_ ? Status::ok : begin(n_threads);
        if (status != Status::ok || other_) return status;
        for (double work = 0; status == Status::ok && work < round_work && !enough();
             work += each_) {
            status = inner_->advance(n_threads);
            n_iter = before_ + inner_->n_iter;
        }
        return status == Status::ok && enough() ? look(n_threads) : status;
    }

  private:
    bool is_rare(ptrdiff_t i) const { return (problem_.b[i] > 0) != costs_.positive_is_frequent(); }

    // The constant w, and the first problem.
    Status begin(int n_threads) {
        const double rare = costs_.rare().sum;
        w_[width_ - 1] = (costs_.positive_is_frequent() ? 1 : -1) / problem_.bias;
        primal = gap = constant_ = unit(problem_) / 2 + 2 * rare;
        Status status = score(n_threads);
        if (status != Status::ok) return status;
        if (!told_apart()) return give_up();
        // As margins, of which those are least that are most like the rare rows.
        for (ptrdiff_t i = 0; i < n_; ++i) z_[i] *= -problem_.b[i];
        take(times_guessed);
        return solve(Settled{});
    }

    // Whether the most alike rows of the frequent class, as many as make up for the rare ones, are
    // hardly more like those than they are themselves: by z, from the mean of the class on.
    bool told_apart() {
        double rare = 0, mean = 0, top = 0;
        ptrdiff_t m = 0;
        for (ptrdiff_t i = 0; i < n_; ++i) {
            if (is_rare(i))
                rare += problem_.C[i] * z_[i];
            else
                mean += a_[m++] = z_[i];
        }
        mean /= static_cast<double>(m);
        if (!std::isfinite(mean + rare)) return false;
        const ptrdiff_t count = needed(1);
        std::nth_element(a_.get(), a_.get() + m - count, a_.get() + m);
        for (ptrdiff_t t = m - count; t < m; ++t) top += a_[t] / static_cast<double>(count);
        const double target = rare / (costs_.rare().sum + unit(problem_));
        return top - mean <= most_alike * (target - mean);
    }

    // Rows of the frequent class, so many times what makes up for the rare ones.
    ptrdiff_t needed(double times) const {
        const Cost& frequent = costs_.frequent();
        const double each = frequent.sum / static_cast<double>(frequent.rows),
                     count = times * (costs_.rare().sum + unit(problem_)) / each;
        return std::min(frequent.rows, static_cast<ptrdiff_t>(count) + 1);
    }

    // The rare rows, and those of the other class that lose most at z, so many times what makes up for
    // the rare ones.
    void take(double times) {
        const ptrdiff_t count = std::min(costs_.frequent().rows, needed(times) + width_);
        ptrdiff_t m = 0;
        for (ptrdiff_t i = 0; i < n_; ++i)
            if (!is_rare(i)) a_[m++] = lost(i);
        std::nth_element(a_.get(), a_.get() + m - count, a_.get() + m);
        const double least = a_[m - count];
        for (ptrdiff_t i = 0; i < n_; ++i) taken_[i] = is_rare(i) || lost(i) >= least;
    }

    // z = X v: how much rows are like the rare ones.
    Status score(int n_threads) {
        Gram<T> gram(passes_);
        const Cost frequent = costs_.frequent();
        const ptrdiff_t wanted = std::max(sampled, sampled_each * width_),
                        stride = std::max<ptrdiff_t>(1, frequent.rows / wanted);
        const auto of_all = static_cast<double>(n_);
        const ptrdiff_t most = costs_.rare().rows + ceil_div(frequent.rows, stride);
        Scratch<std::int32_t> rows(most);
        Scratch<double> kappa(most), v(width_);
        if (!gram || !rows || !kappa || !v) return Status::no_memory;
        ptrdiff_t m = 0, met = 0;
        for (ptrdiff_t i = 0; i < n_; ++i) {
            const bool rare = is_rare(i);
            a_[i] = rare ? 1 / static_cast<double>(costs_.rare().rows) : 0;
            if (!rare && met++ % stride != 0) continue;
            rows[m] = static_cast<std::int32_t>(i);
            kappa[m++] = (rare ? 1 : static_cast<double>(stride)) / of_all;
        }
        const auto nothing = [](ptrdiff_t, ptrdiff_t, ptrdiff_t) {};
        Status status = passes_.sweep(nullptr, nullptr, a_.get(), v.get(), n_threads, nothing);
        if (status == Status::ok) status = gram.add(rows.get(), kappa.get(), m, n_threads);
        if (status != Status::ok) return status;
        double largest = 0;
        for (ptrdiff_t p = 0; p < width_; ++p)
            largest = std::max(largest, gram.H[p * (gram.ld + 1)]);
        gram.factorise(ridge * largest);
        gram.solve(v.get());
        v[width_ - 1] = 0;
        return passes_.sweep(v.get(), z_.get(), nullptr, nullptr, n_threads, nothing);
    }

    // The problem of the rows that are taken.
    Status solve(const Settled& settled) {
        ptrdiff_t count = 0, entries = 0;
        for (ptrdiff_t i = 0; i < n_; ++i) {
            count += taken_[i];
            if (taken_[i]) entries += Part<T>::entries(passes_.X, i);
        }
        if (static_cast<double>(count) > largest_part * static_cast<double>(n_) ||
            ++problems_ > most_problems)
            return give_up();
        part_.reset(new (std::nothrow) Part<T>(passes_.X, count, entries));
        if (!part_ || !*part_) return Status::no_memory;
        for (ptrdiff_t i = 0; i < n_; ++i)
            if (taken_[i]) part_->add(passes_.X, problem_, i, 1);
        each_ = static_cast<double>(count) * static_cast<double>(width_ * width_);
        before_ = n_iter;
        Limits limits = limits_;
        limits.tol /= 2;
        limits.max_iter -= n_iter;
        const Rows<T> rows = part_->rows(passes_.X);
        const Problem problem = part_->problem(problem_);
        inner_.reset(settled.w ? augmented_within(rows, problem, limits, settled)
                               : augmented_anyway(rows, problem, limits));
        return inner_ ? Status::ok : Status::no_memory;
    }

    // Solved, or well enough to tell better which rows matter.
    bool enough() const {
        const Solver& part = *inner_;
        return part.done || (problems_ == 1 && part.n_iter > 0 && part.gap < rough * part.primal &&
                             part.primal < apart * constant_);
    }

    Status give_up() {
        Limits limits = limits_;
        limits.max_iter -= n_iter;
        part_.reset();
        inner_.reset();
        return choose(augmented_anyway(passes_.X, problem_, limits));
    }

    // All rows at the solution for some, and which are missing.
    Status look(int n_threads) {
        double losses[summed_blocks] = {};
        const Status status = passes_.sweep(inner_->w, z_.get(), nullptr, nullptr, n_threads,
                                            [&](ptrdiff_t begin, ptrdiff_t end, ptrdiff_t b) {
                                                for (ptrdiff_t i = begin; i < end; ++i)
                                                    losses[b] +=
                                                        problem_.C[i] * std::max(0.0, lost(i));
                                            });
        if (status != Status::ok) return status;
        double value = dot(inner_->w, inner_->w, width_) / 2;
        for (const double loss : losses) value += loss;
        if (!std::isfinite(value)) return give_up();
        dual_ = std::max(dual_, inner_->primal - inner_->gap);
        if (value < primal) {
            primal = value;
            std::copy_n(inner_->w, width_, w_.get());
        }
        gap = primal - dual_;
        converged = gap <= limits_.tol * primal;
        done = converged || n_iter >= limits_.max_iter;
        return done ? status : take_more();
    }

    Status take_more() {
        Settled from{start_.get(), nullptr, 0, 0};
        std::copy_n(inner_->w, width_, start_.get());
        if (!inner_->done) {
            take(times_known);
            return solve(from);
        }
        // What rows lose that are left is half of the gap, at most.
        const double least = limits_.tol / 2 * primal / costs_.frequent().sum;
        for (ptrdiff_t i = 0; i < n_; ++i) {
            if (taken_[i] || !(lost(i) > least)) continue;
            taken_[i] = true;
            from.wide = std::max(from.wide, lost(i));
        }
        return from.wide > 0 ? solve(from) : give_up();
    }

    double lost(ptrdiff_t i) const { return problem_.b[i] * (problem_.b[i] - z_[i]); }

    const Problem problem_;
    const Limits limits_;
    Passes<T> passes_;
    const ptrdiff_t n_, width_;
    const Costs costs_;
    Scratch<double> z_, a_, w_, start_;
    Scratch<bool> taken_;
    std::unique_ptr<Part<T>> part_;
    std::unique_ptr<Solver> inner_;
    double constant_ = 0;  // the primal objective of the constant w
    double dual_ = 0, each_ = 0;
    int before_ = 0, problems_ = 0;
};

}  // namespace

template <class T> bool may_be_rare(const Rows<T>& X, const Problem& problem) {
    if (problem.regression || !(problem.bias > 0) ||
        X.n < std::max(least_rows, least_each * (X.d + 1)))
        return false;
    const Costs all = costs(problem, X.n);
    const double rare = all.rare().sum;
    const double most = all.frequent().sum;
    return rare > 0 && std::isfinite(most) && most >= least_room * (rare + unit(problem));
}

template <class T>
Solver* rare_first(const Rows<T>& X, const Problem& problem, const Limits& limits) noexcept {
    return checked(new (std::nothrow) RareFirst<T>(X, problem, limits));
}
#define FML_INSTANTIATE(T)                                     \
    template bool may_be_rare(const Rows<T>&, const Problem&); \
    template Solver* rare_first(const Rows<T>&, const Problem&, const Limits&) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
