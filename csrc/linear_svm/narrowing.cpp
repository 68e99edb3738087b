#include "linear_svm/narrowing.h"

// std headers come before any target region
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>

#include "common/isa.h"
#include "linear_svm/augmented.h"
#include "linear_svm/part.h"
#include "linear_svm/passes.h"

#define FML_KERNEL "linear_svm/narrowing.inl.h"
#include "common/foreach_isa.h"

namespace fastml {
namespace {

// Rows that are asked how far a step went, and how far they are from their hinges.
constexpr ptrdiff_t n_probes = 512;
// The first sample, and the most rows that stand for others: parts of all, but so many a column.
constexpr ptrdiff_t sample_part = 32, sample_each = 32, most_part = 16, most_each = 64;
// After the sample so large a part of the rows is open; then those at most so much of a step from
// their hinges, a step being the root of the mean square of what rows were moved by. The next one is
// a smaller one: by the square where all open rows were taken, else by the error of sums over some,
// whose `spreads` many make sure.
constexpr double open_after_sample = 0.4, open_after_all = 0.35, spreads = 4;
// Where the open rows of the first sample are so much nearer than they moved, most lie on their
// hinges, and all are taken.
constexpr double piled_up = 0.15;
// And where that was not enough.
constexpr double further = 2, much_further = 4;
// Of the way to a solution that is no better, how close to its best point.
constexpr double way_searched = 1e-3;
// Gaps relative to the objective, of rows that stand for others, and of the first that do not.
constexpr double rough = 1e-3, fair = 1e-4;
constexpr int most_problems = 10;
// Rows stepped with, a row, beyond which all are taken: a third of what those may need. A part is
// expected to need so many steps.
constexpr double most_steps = 15, expected_steps = 12;
// Multiply-adds of a round: some ten milliseconds.
constexpr double round_work = 1e8;
// So many rows a column are open, or there may be nothing to hold w.
constexpr ptrdiff_t fewest_each = 8;
// From so many rows on, and rows a column.
constexpr ptrdiff_t least_rows = 2000, least_each = 100;

// Of most rows the optimum needs no more than the side of its hinge that they are on: there they are
// linear, and all of them together one vector. So the problem is solved on a sample; then on the
// rows that are near their hinges at its solution, where the others stay on their sides. Where that
// is many, the farther ones are fewer and stand for all, by their differences from where they are:
// the solution is better by as much as sums over some are like sums over all, and in a few such
// steps so few rows are left near their hinges that they are taken whole. All rows are looked at
// after every step: the gap is that of the whole problem. A solution that is no better, since rows
// change sides that should stay, is gone to as far as is best for all rows.
template <class T> class Narrowing final : public Solver {
  public:
    Narrowing(const Rows<T>& X, const Problem& problem, const Limits& limits)
        : problem_(problem), limits_(limits), passes_(X, problem.bias), n_(passes_.n),
          width_(passes_.width), most_(std::max(most_each * width_, n_ / most_part)),
          n_probes_(std::min(n_probes, n_)), zs_(2 * n_), a_(n_), w_(width_), u_(width_),
          probed_(2 * n_probes_), away_(n_probes_), chosen_(n_), order_(n_), z_(zs_.get()),
          best_z_(z_ + n_) {
        if (!ok()) return;
        std::fill_n(w_.get(), width_, 0.0);
        std::fill_n(probed_.get(), n_probes_, 0.0);
        w = w_.get();
    }
    bool ok() const {
        return passes_ && zs_ && a_ && w_ && u_ && probed_ && away_ && chosen_ && order_;
    }

    Status advance(int n_threads) noexcept override {
        Status status = inner_ ? Status::ok : begin();
        for (double work = 0; status == Status::ok && work < round_work && !inner_->done;
             work += each_) {
            status = inner_->advance(n_threads);
            n_iter = before_ + inner_->n_iter;
            spent_ += each_;
        }
        return status == Status::ok && inner_->done ? look(n_threads) : status;
    }

  private:
    Status begin() {
        by_class();
        std::fill_n(best_z_, n_, 0.0);
        for (ptrdiff_t i = 0; i < n_; ++i)
            primal += problem_.C[i] * std::max(0.0, baseline::beyond(problem_, i, 0));
        gap = primal;
        Status status = sample(n_probes_ * n_first_ / n_, n_probes_, &probes_);
        if (status != Status::ok) return status;
        const ptrdiff_t count = std::min(n_, std::max(n_ / sample_part, sample_each * width_));
        // Half of each class, if it has so many: a rare one matters as much as the other.
        const ptrdiff_t half = std::max(count / 2, count - (n_ - n_first_));
        status = sample(std::min(half, n_first_), count, &part_);
        if (status != Status::ok) return status;
        return solve(count, rough, {});
    }

    // Positive rows first; in regression as they are.
    void by_class() {
        const auto first = [&](ptrdiff_t i) { return problem_.regression || problem_.b[i] > 0; };
        for (ptrdiff_t i = 0; i < n_; ++i) n_first_ += first(i);
        ptrdiff_t to[2] = {n_first_, 0};
        for (ptrdiff_t i = 0; i < n_; ++i) order_[to[first(i)]++] = static_cast<std::int32_t>(i);
    }

    // A row of each of so many stretches, of which `firsts` are among those that come first.
    Status sample(ptrdiff_t firsts, ptrdiff_t count, std::unique_ptr<Part<T>>* part) {
        const ptrdiff_t counts[2] = {firsts, count - firsts}, sizes[2] = {n_first_, n_ - n_first_};
        const auto row = [&](ptrdiff_t t) {
            const bool later = t >= firsts;
            const ptrdiff_t at = later ? t - firsts : t;
            const ptrdiff_t each = sizes[later] / counts[later],
                            more = sizes[later] % counts[later];
            const ptrdiff_t begin = each * at + std::min(at, more), size = each + (at < more);
            const std::uint64_t number = baseline::draw(static_cast<std::uint32_t>(t));
            const auto r = static_cast<ptrdiff_t>(number * static_cast<std::uint64_t>(size) >> 32);
            return ptrdiff_t{order_[(later ? n_first_ : 0) + begin + r]};
        };
        ptrdiff_t entries = 0;
        for (ptrdiff_t t = 0; t < count; ++t) entries += Part<T>::entries(passes_.X, row(t));
        part->reset(new (std::nothrow) Part<T>(passes_.X, count, entries));
        if (!*part || !**part) return Status::no_memory;
        for (ptrdiff_t t = 0; t < count; ++t) {
            const bool later = t >= firsts;
            const double scale =
                static_cast<double>(sizes[later]) / static_cast<double>(counts[later]);
            (*part)->add(passes_.X, problem_, row(t), scale);
        }
        return Status::ok;
    }

    // The problem of the part, or, where there is none, of all.
    Status solve(ptrdiff_t rows, double tol, const Settled& settled) {
        each_ = static_cast<double>(rows) * static_cast<double>(width_ * width_);
        Limits limits = limits_;
        limits.tol = std::max(tol, limits_.tol);
        limits.max_iter -= n_iter;
        before_ = n_iter;
        inner_.reset(part_ ? augmented_within(part_->rows(passes_.X), part_->problem(problem_),
                                              limits, settled)
                           : augmented_within(passes_.X, problem_, limits, settled));
        return inner_ ? Status::ok : Status::no_memory;
    }

    // All rows at the solution for some, and which to go on with.
    Status look(int n_threads) {
        const bool all = !part_, sampled = near_ == 0;
        const double moved = probe(inner_->w);
        Choice by = choice(sampled          ? quantile()
                           : moved <= near_ ? shrink_ * moved
                                            : further * moved);
        double value;
        Status status = survey(inner_->w, by, n_threads, &value);
        if (status != Status::ok) return status;
        if (exact_) dual_ = std::max(dual_, inner_->primal - inner_->gap);
        const bool better = value < primal;
        if (better) {
            std::copy_n(inner_->w, width_, w_.get());
            std::copy_n(probed_.get() + n_probes_, n_probes_, probed_.get());
            std::swap(z_, best_z_);
            primal = value;
        }
        gap = primal - dual_;
        converged = gap <= limits_.tol * primal;
        done = converged || all || n_iter >= limits_.max_iter || !std::isfinite(value);
        if (done) return status;
        if (!better) {
            most_ = std::min(2 * most_, n_ / 2);
            if ((status = search(n_threads)) != Status::ok) return status;
            probe(w_.get());
            std::copy_n(probed_.get() + n_probes_, n_probes_, probed_.get());
            by = choice(sampled ? quantile() : much_further * near_);
            status = settle(nullptr, best_z_, by, w_.get(), n_threads, &primal);
            if (status != Status::ok) return status;
        }
        return go_on(by, sampled && by.near < piled_up * moved);
    }

    // The best point on the way to where the part is solved, which goes too far.
    Status search(int n_threads) {
        const auto slope_of = FML_PICK(hinges_slope);
        const double* to = inner_->w;
        double low = 0, high = 1, along = 0, length = 0;
        for (ptrdiff_t p = 0; p < width_; ++p) {
            const double step = to[p] - w_[p];
            along += w_[p] * step;
            length += step * step;
        }
        while (high - low > way_searched) {
            const double t = (low + high) / 2;
            double slope = along + t * length, parts[summed_blocks] = {};
            const Status status =
                passes_.sweep(nullptr, nullptr, nullptr, nullptr, n_threads,
                              [&](ptrdiff_t begin, ptrdiff_t end, ptrdiff_t b) {
                                  parts[b] += slope_of(problem_, begin, end, best_z_, z_, t);
                              });
            if (status != Status::ok) return status;
            for (const double part : parts) slope += part;
            (slope < 0 ? low : high) = t;
        }
        for (ptrdiff_t p = 0; p < width_; ++p) w_[p] += low * (to[p] - w_[p]);
        for (ptrdiff_t i = 0; i < n_; ++i) best_z_[i] += low * (z_[i] - best_z_[i]);
        return Status::ok;
    }

    Status go_on(const Choice& by, bool piled) {
        const Rows<T>& X = passes_.X;
        ptrdiff_t count = 0, entries = 0;
        for (ptrdiff_t i = 0; i < n_; ++i) {
            if (chosen_[i] == 0) continue;
            ++count;
            entries += Part<T>::entries(X, i);
        }
        const bool fine = exact_ || count <= most_ / 4;
        exact_ = by.whole == by.near;
        near_ = by.near;
        const double spread =
            spreads * std::sqrt(static_cast<double>(width_) / static_cast<double>(most_));
        shrink_ = exact_ ? open_after_all : std::min(1.0, spread);
        part_.reset();
        const double square = static_cast<double>(width_ * width_),
                     most_spent = most_steps * static_cast<double>(n_) * square,
                     next = expected_steps * static_cast<double>(count) * square;
        if (count == 0 || piled || ++problems_ == most_problems || spent_ + next > most_spent) {
            exact_ = true;
            return solve(n_, 0, Settled{w_.get(), nullptr, 0, by.near});
        }
        part_.reset(new (std::nothrow) Part<T>(X, count, entries));
        if (!part_ || !*part_) return Status::no_memory;
        for (ptrdiff_t i = 0; i < n_; ++i)
            if (chosen_[i] > 0) part_->add(X, problem_, i, chosen_[i]);
        const double tol = !exact_ ? rough : fine ? 0 : fair;
        return solve(count, tol, Settled{w_.get(), u_.get(), linear_, by.near / (exact_ ? 1 : 2)});
    }

    // How far probes are from their hinges at w, and by how much they moved to get there.
    double probe(const double* at) {
        const Rows<T> rows = probes_->rows(passes_.X);
        const Problem problem = probes_->problem(problem_);
        double *last = probed_.get(), *z = last + n_probes_, sum = 0;
        passes_.bodies.margins(rows, 0, n_probes_, at, passes_.bias * at[rows.d], z);
        for (ptrdiff_t t = 0; t < n_probes_; ++t) {
            const double v = std::fabs(baseline::beyond(problem, t, z[t]));
            away_[t] = std::isfinite(v) ? v : std::numeric_limits<double>::max();
            sum += (z[t] - last[t]) * (z[t] - last[t]);
        }
        std::sort(away_.get(), away_.get() + n_probes_);
        return std::sqrt(sum / static_cast<double>(n_probes_));
    }
    double quantile() const {
        return away_[static_cast<ptrdiff_t>(open_after_sample * static_cast<double>(n_probes_))];
    }

    // Of the rows that are so near, and a few at least, the nearest and some others, if they are too
    // many. One of the probes is among them.
    Choice choice(double near) {
        const ptrdiff_t fewest = std::min(n_probes_, 1 + fewest_each * width_ * n_probes_ / n_) - 1;
        near = std::max({near, away_[fewest], std::numeric_limits<double>::min()}) * (1 + 1e-9);
        const auto seed = static_cast<std::uint32_t>(problems_) << 28;
        ptrdiff_t t = std::upper_bound(away_.get(), away_.get() + n_probes_, near) - away_.get();
        const double enough =
            static_cast<double>(most_) * static_cast<double>(n_probes_) / static_cast<double>(n_);
        double whole = near, others = 0;  // the sum of 1 / distance of probes that are not whole
        while (static_cast<double>(t) + whole * others > enough && t > 1) {
            whole = away_[--t];
            others += 1 / whole;
        }
        return {near, whole, seed};
    }

    Status survey(const double* at, const Choice& by, int n_threads, double* value) {
        return settle(at, z_, by, at, n_threads, value);
    }

    // The objective at w, whose z is known if `at` is null, and what `by` settles there.
    Status settle(const double* at, double* z, const Choice& by, const double* weights,
                  int n_threads, double* value) {
        const auto rows = FML_PICK(settle_block);
        NarrowSums parts[summed_blocks] = {};
        const Status status = passes_.sweep(
            at, z, a_.get(), u_.get(), n_threads, [&](ptrdiff_t begin, ptrdiff_t end, ptrdiff_t b) {
                rows(problem_, begin, end, z, by, a_.get(), chosen_.get(), parts + b);
            });
        *value = dot(weights, weights, width_) / 2;
        linear_ = 0;
        for (const NarrowSums& part : parts) {
            *value += part.loss;
            linear_ += part.linear;
        }
        return status;
    }

    const Problem problem_;
    const Limits limits_;
    Passes<T> passes_;
    const ptrdiff_t n_, width_;
    ptrdiff_t most_;  // rows of a part that stand for others
    const ptrdiff_t n_probes_;
    Scratch<double> zs_, a_, w_, u_;
    Scratch<double> probed_, away_;  // z of probes at w and at the solution; distances, in order
    Scratch<double> chosen_;         // how often rows count in the next part
    Scratch<std::int32_t> order_;    // rows, by class
    ptrdiff_t n_first_ = 0;          // of the first class
    double *z_, *best_z_;            // (n), of the last solution and of w
    std::unique_ptr<Part<T>> probes_, part_;
    std::unique_ptr<Solver> inner_;
    bool exact_ = false;  // whether the part's rows stand for themselves alone
    double near_ = 0;     // what was open; 0: the sample
    double shrink_ = 1;   // from a step to what is open next
    double linear_ = 0, dual_ = 0, each_ = 0, spent_ = 0;
    int before_ = 0, problems_ = 0;
};

}  // namespace

template <class T> bool worth_narrowing(const Rows<T>& X) {
    return X.n >= std::max(least_rows, least_each * (X.d + 1));
}
template bool worth_narrowing(const Rows<float>&);
template bool worth_narrowing(const Rows<double>&);

template <class T>
Solver* narrowing(const Rows<T>& X, const Problem& problem, const Limits& limits) noexcept {
    return checked(new (std::nothrow) Narrowing<T>(X, problem, limits));
}
template Solver* narrowing(const Rows<float>&, const Problem&, const Limits&) noexcept;
template Solver* narrowing(const Rows<double>&, const Problem&, const Limits&) noexcept;

}  // namespace fastml
