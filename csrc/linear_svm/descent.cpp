#include "linear_svm/descent.h"

// std headers come before any target region
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/isa.h"
#include "linear_svm/momentum.h"

#define FML_KERNEL "linear_svm/descent.inl.h"
#include "common/foreach_isa.h"

namespace fastml {
namespace {

// Sweeps of bounded multipliers, at first, that momentum does not follow: most of them are still on
// their way to a bound, beyond which it would carry them, and to hold each there costs a row.
constexpr int bounded_first = 6;
// Multiply-adds of a round: some milliseconds.
constexpr double round_work = 1e7;
// Of the objective, and of tol: where the duality gap ends it.
// liblinear leaves more of targets' than of classes'.
constexpr double small_gap = 5e-2, small_target_gap = 0.9, small_squared_gap = 1e-2;
// The same, where it also takes small violations; and what is small enough for any tol, since sums
// over rows are rounded.
constexpr double fair_gap = 0.2, least_fair_gap = 1e-5;
// Of the objective: the gap that a sweep guesses at which all rows are looked at first; and how many
// sweeps of all rows, or so small ones, take as long as is worth a look, and four times as many
// where no row is set aside, since a guess may stay above the gap.
constexpr double first_gap = 1e-3, looks_apart = 2, least_swept = 1.0 / 16;
// Of the worst violation: rows so far on the right side are set aside. Some come back, which a look
// at all of them tells; fewest where most rows end at a bound. Where only sweeps look, that has to
// be rare.
constexpr double set_aside_hinges = 0.1, set_aside_others = 0.3, set_aside_by_gram = 1;
// At what the Gram matrix has rounded away.
constexpr int most_looks = 6;

// Stored entries from which on halves of the rows are worth a thread each: sweeps that take a tenth
// of a millisecond and more. Rows, at least; and how much of a row may be the mean of all, or halves
// undo what they both do.
constexpr double worth_halves = 1e5, most_common = 0.1;
constexpr ptrdiff_t least_halves = 64;
// Sweeps by halves: what has not converged by then asks for more than they can tell.
constexpr int most_halved = 32;

template <class T> class CoordinateDescent final : public Solver {
  public:
    // K: the Gram matrix, or null.
    CoordinateDescent(const Rows<T>& X, const float* K, const Problem& problem,
                      const Limits& limits)
        : problem_(problem), limits_(limits), passes_(X, problem.bias), momentum_(passes_, problem),
          K_(K), n_(passes_.n), rows_(n_), a_(n_), z_(n_), w_(passes_.width),
          other_(K ? 0 : passes_.width), order_(n_) {
        if (!ok()) return;
        std::fill_n(a_.get(), n_, 0.0);
        std::fill_n(z_.get(), n_, 0.0);
        std::fill_n(w_.get(), passes_.width, 0.0);
        s_ = {n_,
              rows_.get(),
              K ? z_.get() : w_.get(),
              order_.get(),
              n_,
              problem.epsilon,
              problem.bias,
              0x9e3779b97f4a7c15ull + limits.seed,
              1e300,
              K ? set_aside_by_gram : set_aside(),
              0,
              0,
              0};
        w = w_.get();
    }
    bool ok() const { return passes_ && momentum_ && rows_ && a_ && z_ && w_ && other_ && order_; }

    Status advance(int n_threads) noexcept override {
        if (n_iter == 0) {
            const Status status = start(n_threads);
            if (status != Status::ok) return status;
        }
        const auto by_rows = FML_PICK(sweep_rows<T>);
        const auto by_gram = FML_PICK(sweep_gram<float>);
        const double each = K_ ? static_cast<double>(n_) * n_ : 2 * passes_.entries;
        for (double work = 0; work < round_work && !done && n_iter < limits_.max_iter;
             work += each) {
            const bool all = s_.active == n_;
            const bool split = !K_ && worth_splitting();
            swept_ += passes_.entries * static_cast<double>(s_.active) / static_cast<double>(n_);
            Status status = Status::ok;
            if (K_)
                by_gram(K_, s_);
            else if (split)
                status = sweep_halves(n_threads);
            else
                by_rows(passes_.X, s_);
            level_ = evaluated_ = false;
            if (status != Status::ok) return status;
            if (++n_iter == 1) first_ = s_.sum;
            const bool calm = small(s_.sum, s_.worst, K_ ? 0.25 : 0.5) && (K_ || may_be_near());
            if (K_) {
                if (calm) look_at_all();
                if (calm && all) status = look_at_rows(n_threads);
            } else {
                status = go_on(split, calm, n_threads);
            }
            if (n_iter == most_halved && !common_) halves = false;
            if (status != Status::ok) return status;
        }
        done = done || n_iter >= limits_.max_iter;
        if (!done || evaluated_) return Status::ok;
        const Status status = refresh(n_threads);
        evaluate();
        return status;
    }

  private:
    bool small(double sum, double worst, double part) const {
        return problem_.regression ? sum <= 2 * part * limits_.tol * first_
                                   : worst <= part * limits_.tol;
    }

    // Small violations of many rows, each times a large C, may still be a large gap.
    double fair() const { return std::max(fair_gap * limits_.tol, least_fair_gap); }
    // By what the last sweep met, beside the last dual objective that is known.
    bool may_be_near() const {
        const double dual = momentum_.dual;
        return !(dual > 0) || s_.gap <= fair() * dual;
    }

    double set_aside() const {
        return problem_.squared || problem_.regression ? set_aside_others : set_aside_hinges;
    }
    void look_at_all() {
        s_.active = n_;
        s_.shrinks = 1e300;
    }

    double moves() const {
        return 32 * static_cast<double>(passes_.width) + 16 * static_cast<double>(n_);
    }
    // Rows that have much in common go by halves once a sweep has found what that is, while they are
    // many: to join halves takes as long for few.
    bool worth_splitting() const {
        if (!halves || !common_) return halves;
        const double active = static_cast<double>(s_.active) / static_cast<double>(n_);
        return n_iter > 0 && passes_.entries * active > moves();
    }

    // Each half of the rows on its own copy of w, side by side; who is in which half changes.
    Status sweep_halves(int n_threads) {
        const auto by_rows = FML_PICK(sweep_rows<T>);
        const ptrdiff_t middle = s_.active / 2;
        if (!level_) std::copy_n(w_.get(), passes_.width, other_.get());
        Descent half[2] = {s_, s_};
        half[0].active = middle;
        half[1].active = s_.active - middle;
        half[1].order += middle;
        half[1].at = other_.get();
        half[1].state *= 0x9e3779b97f4a7c15ull;
        const Status status =
            parallel(2, n_threads, [&](ptrdiff_t h, int) { by_rows(passes_.X, half[h]); });
        s_.state = half[0].state;
        s_.worst = std::max(half[0].worst, half[1].worst);
        s_.sum = half[0].sum + half[1].sum;
        s_.gap = half[0].gap + half[1].gap;
        s_.shrinks = s_.worst > 0 ? s_.part * s_.worst : 1e300;
        // Those still looked at come first again, and a quarter of them changes sides.
        ptrdiff_t low = half[0].active, high = middle + half[1].active;
        s_.active = half[0].active + half[1].active;
        while (low < middle && high > middle) std::swap(order_[low++], order_[--high]);
        const ptrdiff_t quarter = s_.active / 4;
        std::swap_ranges(order_.get() + quarter, order_.get() + 2 * quarter,
                         order_.get() + s_.active / 2);
        return status;
    }

    // Between sweeps: on from here, and a look at all rows where that may be the end, or where those
    // set aside have not been seen for long.
    Status go_on(bool split, bool calm, int n_threads) {
        if (calm && split && common_) halves = calm = false;  // they are further than they see
        const bool still = calm && s_.gap <= calm_gap_;
        // Momentum is linear in columns and rows: where rows have few entries, or few of them are
        // still looked at, it is for some sweeps at a time.
        Status status = Status::ok;
        const bool early = !problem_.squared && n_iter <= bounded_first;
        if (split || (!still && !early && swept_ > moves())) {
            swept_ = 0;
            status =
                momentum_.move(rows_.get(), w_.get(), split ? other_.get() : nullptr, n_threads);
            level_ = split;
        }
        if (status != Status::ok) return status;
        const double active = static_cast<double>(s_.active) / static_cast<double>(n_);
        unseen_ += std::max(active, least_swept);
        const bool near = s_.gap <= std::min(next_gap_, first_gap * momentum_.dual);
        const bool late = unseen_ > (calm || s_.active < n_ ? 1 : 4) * looks_apart;
        return near || late || still ? look(calm, n_threads) : status;
    }

    // The gap, and which rows sweeps go on with; or the end, where the gap is as small as other
    // methods leave it, or no row has a violation to speak of and it is fair.
    Status look(bool calm, int n_threads) {
        const Status status = refresh(n_threads);
        if (status != Status::ok) return status;
        evaluate();
        momentum_.dual = primal - gap;
        evaluated_ = true;
        unseen_ = 0;
        double sum = 0, worst = 0;
        ptrdiff_t high = n_;
        s_.active = 0;
        for (ptrdiff_t i = 0; i < n_; ++i) {
            const double violation = violation_at(i);
            sum += std::max(0.0, violation);
            worst = std::max(worst, violation);
            order_[violation < -s_.shrinks ? --high : s_.active++] = static_cast<std::int32_t>(i);
        }
        const double part = problem_.squared      ? small_squared_gap
                            : problem_.regression ? small_target_gap
                                                  : small_gap;
        const double enough = part * limits_.tol * primal;
        done = converged = gap <= enough || (small(sum, worst, 0.5) && gap <= fair() * primal);
        // What sweeps guess is below the gap about as much the next time.
        next_gap_ = s_.gap * std::max(0.1, std::min(0.7, 0.8 * enough / gap));
        if (calm) calm_gap_ = 0.7 * s_.gap;
        return status;
    }

    double violation_at(ptrdiff_t i) const {
        const Coordinate& row = rows_[i];
        return violation_of(row, z_[i] - row.b + row.curve * row.a, problem_.epsilon);
    }

    // What the rounding of K did to X w. Where that does not get small, rows take over.
    Status look_at_rows(int n_threads) {
        const Status status = refresh(n_threads);
        if (status != Status::ok) return status;
        double sum = 0, worst = 0;
        for (ptrdiff_t i = 0; i < n_; ++i) {
            const double violation = std::max(0.0, violation_at(i));
            sum += violation;
            worst = std::max(worst, violation);
        }
        if (small(sum, worst, 0.5)) {
            done = converged = true;
            evaluate();
        } else if (++looks_ == most_looks) {
            K_ = nullptr;
            s_.at = w_.get();
            s_.part = set_aside();
            momentum_.start(rows_.get(), w_.get());
        }
        return status;
    }

    Status start(int n_threads) {
        const Problem& p = problem_;
        if (!K_) passes_.bodies.norms(passes_.X, passes_.bias, 0, n_, z_.get());
        for (ptrdiff_t i = 0; i < n_; ++i) {
            const double most = p.squared ? 1e300 : p.C[i];
            const double curve = p.squared ? 1 / (2 * p.C[i]) : 0;
            const double norm = K_ ? K_[i * (n_ + 1)] : z_[i];
            const Rows<T>& X = passes_.X;
            const ptrdiff_t first = X.indptr ? X.indptr[i] : i * X.d;
            const ptrdiff_t size = X.indptr ? X.indptr[i + 1] - first : X.d;
            rows_[i] = {0,
                        p.b[i],
                        p.regression || p.b[i] < 0 ? -most : 0,
                        p.regression || p.b[i] > 0 ? most : 0,
                        curve,
                        norm + curve,
                        first,
                        size};
            order_[i] = static_cast<std::int32_t>(i);
        }
        Status status = Status::ok;
        if (!K_) {
            momentum_.start(rows_.get(), w_.get());
            status = compare(n_threads);
        }
        std::fill_n(z_.get(), n_, 0.0);
        return status;
    }

    // Whether rows, whose squared norms are z, have little in common: then halves of them hardly
    // meet, and have a copy of w each. Otherwise they take a third more sweeps, which is worth it
    // unless other problems are there for the other thread; but hinges keep such halves from seeing
    // which rows stay where they are.
    Status compare(int n_threads) {
        const Rows<T>& X = passes_.X;
        const double stored = X.indptr ? X.indptr[n_] : static_cast<double>(n_) * X.d;
        if (n_ < least_halves || stored < worth_halves) return Status::ok;
        std::fill_n(a_.get(), n_, 1.0);
        const Status status = passes_.sweep(nullptr, nullptr, a_.get(), other_.get(), n_threads,
                                            [](ptrdiff_t, ptrdiff_t, ptrdiff_t) {});
        double norms = 0;
        for (ptrdiff_t i = 0; i < n_; ++i) norms += z_[i];
        const double common = dot(other_.get(), other_.get(), passes_.width);
        common_ = !(common < most_common * static_cast<double>(n_) * norms);
        halves = !common_ || (limits_.alone && problem_.squared);
        std::fill_n(other_.get(), passes_.width, 0.0);
        std::fill_n(a_.get(), n_, 0.0);
        return status;
    }

    // a by itself, w = X'a (where it is not kept up to date), z = X w.
    Status refresh(int n_threads) {
        for (ptrdiff_t i = 0; i < n_; ++i) a_[i] = rows_[i].a;
        const auto nothing = [](ptrdiff_t, ptrdiff_t, ptrdiff_t) {};
        if (K_) {
            const Status status =
                passes_.sweep(nullptr, nullptr, a_.get(), w_.get(), n_threads, nothing);
            if (status != Status::ok) return status;
        }
        return passes_.sweep(w_.get(), z_.get(), nullptr, nullptr, n_threads, nothing);
    }

    // The objectives at w and a.
    void evaluate() {
        const Problem& p = problem_;
        const double norm = dot(w_.get(), w_.get(), passes_.width) / 2;
        double loss = 0, dual = 0;
        for (ptrdiff_t i = 0; i < n_; ++i) {
            const double e = p.b[i] - z_[i], a = std::fabs(a_[i]);
            const double v = std::max(0.0, p.regression ? std::fabs(e) - p.epsilon : p.b[i] * e);
            loss += p.C[i] * (p.squared ? v * v : v);
            dual += p.b[i] * a_[i] - p.epsilon * a - (p.squared ? a * a / (4 * p.C[i]) : 0);
        }
        primal = norm + loss;
        gap = primal - (dual - norm);
    }

    const Problem problem_;
    const Limits limits_;
    Passes<T> passes_;
    Momentum<T> momentum_;
    const float* K_;
    const ptrdiff_t n_;
    Scratch<Coordinate> rows_;
    Scratch<double> a_, z_, w_, other_;
    Scratch<std::int32_t> order_;
    Descent s_{};
    double swept_ = 0;         // entries since momentum was last taken
    double first_ = 0;         // the sum of violations in the first one
    double unseen_ = 0;        // sweeps of all rows since those set aside were looked at
    double next_gap_ = 1e300;  // by sweeps, to look at the true one again
    double calm_gap_ = 1e300;  // the same, where they meet only small violations
    int looks_ = 0;
    bool common_ = false;     // rows have much in common
    bool evaluated_ = false;  // what the last sweep left
    bool level_ = true;       // `other_` is w
};

}  // namespace

void gram_sweep(const double* K, Descent& s) { FML_PICK(sweep_gram<double>)(K, s); }

template <class T>
Solver* descent(const Rows<T>& X, const Problem& problem, const Limits& limits) noexcept {
    return checked(new (std::nothrow) CoordinateDescent<T>(X, nullptr, problem, limits));
}
template <class T>
Solver* gram_descent(const Rows<T>& X, const float* K, const Problem& problem,
                     const Limits& limits) noexcept {
    return checked(new (std::nothrow) CoordinateDescent<T>(X, K, problem, limits));
}
#define FML_INSTANTIATE(T)                                                            \
    template Solver* descent(const Rows<T>&, const Problem&, const Limits&) noexcept; \
    template Solver* gram_descent(const Rows<T>&, const float*, const Problem&,       \
                                  const Limits&) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
