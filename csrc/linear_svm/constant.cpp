#include <limits>
#include <memory>

#include "linear_svm/augmented.h"
#include "linear_svm/costs.h"
#include "linear_svm/deferring.h"
#include "linear_svm/part.h"
#include "linear_svm/passes.h"

namespace fastml {
namespace {

// What a rare class costs, where its rows are on the wrong side, in units of what the constant
// costs: where it is more, the weights of columns are rarely zero.
constexpr double most_rare = 5;
// And how much more the other class may cost, so that its rows can make up for it.
constexpr double least_room = 8;
// Rows, at least, and rows a column.
constexpr ptrdiff_t least_rows = 1000, least_each = 50;
// One of so many rows of the frequent class are asked, for so many steps.
constexpr ptrdiff_t part_asked = 2;
constexpr int most_steps = 15;
// Distances from hinges at the solution are rounding errors; these are not.
constexpr double wide = 1e-7;

// Where a class is rare and C small, the best scores may be those of the other class for all rows:
// all of its rows lie on their hinges, which is hard to approach. But that w, which has only a
// constant, is known, and it is the best one if multipliers of some of those rows make up for the
// rare ones. If not, another solver begins.
template <class T> class ConstantFirst final : public Deferring {
  public:
    ConstantFirst(const Rows<T>& X, const Problem& problem, const Limits& limits)
        : problem_(problem), limits_(limits), passes_(X, problem.bias), a_(passes_.n),
          w_(passes_.width), u_(passes_.width) {
        if (!ok()) return;
        std::fill_n(w_.get(), passes_.width, 0.0);
        w = w_.get();
    }
    bool ok() const { return passes_ && a_ && w_ && u_; }

    Status advance(int n_threads) noexcept override {
        if (other_) return follow(n_threads);
        const Status status = attempt(n_threads);
        if (status != Status::ok || done) return status;
        Limits limits = limits_;
        limits.max_iter -= n_iter;
        return choose(augmented_varied(passes_.X, problem_, limits));
    }

  private:
    Status attempt(int n_threads) {
        const ptrdiff_t n = passes_.n, width = passes_.width;
        const Costs costs_of = costs(problem_, n);
        const bool frequent = costs_of.positive_is_frequent();
        const double side = frequent ? 1 : -1, rare = costs_of.rare().sum;
        const ptrdiff_t count = ceil_div(costs_of.frequent().rows, part_asked);
        ptrdiff_t entries = 0, met = 0;
        for (ptrdiff_t i = 0; i < n; ++i) {
            const bool mine = (problem_.b[i] > 0) == frequent;
            a_[i] = mine ? 0 : problem_.b[i] * problem_.C[i];
            if (mine && met++ % part_asked == 0) entries += Part<T>::entries(passes_.X, i);
        }
        Part<T> part(passes_.X, count, entries);
        if (!part) return Status::no_memory;
        met = 0;
        for (ptrdiff_t i = 0; i < n; ++i)
            if ((problem_.b[i] > 0) == frequent && met++ % part_asked == 0)
                part.add(passes_.X, problem_, i, 1);
        const Status status = passes_.sweep(nullptr, nullptr, a_.get(), u_.get(), n_threads,
                                            [](ptrdiff_t, ptrdiff_t, ptrdiff_t) {});
        if (status != Status::ok) return status;
        w_[width - 1] = side / problem_.bias;
        primal = 0.5 * w_[width - 1] * w_[width - 1] + 2 * rare;
        return certify(part, Settled{w_.get(), u_.get(), rare, wide}, n_threads);
    }

    // Multipliers of the part, those of the other rows of its class zero: the gap that they leave.
    Status certify(const Part<T>& part, const Settled& settled, int n_threads) {
        Limits limits = limits_;
        limits.tol /= 2;
        limits.max_iter = std::min(most_steps, limits.max_iter);
        const std::unique_ptr<Solver> solver(
            augmented_within(part.rows(passes_.X), part.problem(problem_), limits, settled));
        if (!solver) return Status::no_memory;
        while (!solver->done) {
            const Status status = solver->advance(n_threads);
            if (status != Status::ok) return status;
        }
        n_iter = solver->n_iter;
        gap = primal - (solver->primal - solver->gap);
        converged = gap <= limits_.tol * primal;
        done = converged || n_iter >= limits_.max_iter;
        return Status::ok;
    }

    const Problem problem_;
    const Limits limits_;
    Passes<T> passes_;
    Scratch<double> a_, w_, u_;
};

}  // namespace

template <class T> bool may_be_constant(const Rows<T>& X, const Problem& problem) {
    if (problem.regression || !(problem.bias > 0) ||
        X.n < std::max(least_rows, least_each * (X.d + 1)))
        return false;
    const Costs all = costs(problem, X.n);
    const double rare = all.rare().sum;
    return rare > 0 && rare <= most_rare * unit(problem) &&
           all.frequent().sum >= least_room * (rare + unit(problem));
}

template <class T>
Solver* constant_first(const Rows<T>& X, const Problem& problem, const Limits& limits) noexcept {
    return checked(new (std::nothrow) ConstantFirst<T>(X, problem, limits));
}
#define FML_INSTANTIATE(T)                                         \
    template bool may_be_constant(const Rows<T>&, const Problem&); \
    template Solver* constant_first(const Rows<T>&, const Problem&, const Limits&) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
