#include "trees/grow.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <vector>

#include "trees/grower.h"

namespace fastml {

using std::ptrdiff_t;

namespace {

// About 20 ms of one thread's work: then a look for Ctrl-C.
constexpr ptrdiff_t step_values = 1 << 21;

struct Forest {
    const Growth& growth;
    const double* real_weights;
    const std::int32_t* counts;
    ptrdiff_t n_weights;
    const std::uint32_t* seeds;

    Weights weights(ptrdiff_t tree) const {
        const ptrdiff_t at = (n_weights == 1 ? 0 : tree) * growth.columns->n;
        return {real_weights ? real_weights + at : nullptr, counts ? counts + at : nullptr};
    }
};

// Where trees grow one after the other, with the same memory.
class Plot {
  public:
    void sow(const Forest& forest, ptrdiff_t tree) {
        const Growth& growth = forest.growth;
        const Weights weights = forest.weights(tree);
        const Columns& columns = *growth.columns;
        const bool exact = columns.levels || (columns.by_row && !columns.mostly_zero &&
                                              sums_are_exact(growth, weights));
        if (!splitter_ || exact != is_exact_) {
            const auto make =
                exact ? growth.random_splits ? exact_random_splitter : exact_best_splitter
                : growth.random_splits ? random_splitter
                                       : best_splitter;
            splitter_ = make(growth);
            is_exact_ = exact;
        }
        splitter_->plant(weights, forest.seeds[tree]);
        grower_ = std::make_unique<Grower>(growth, *splitter_);
        tree_ = tree;
    }
    bool is_free() const { return !grower_; }
    Status status() const { return grower_ ? grower_->status() : Status::ok; }
    // Works on for a while; a tree that is complete goes to its place in `out`.
    void advance(ptrdiff_t step, Grown* out) {
        if (!grower_->advance(step)) return;
        out[tree_] = std::move(grower_->tree());
        grower_.reset();
    }

  private:
    std::unique_ptr<Splitter> splitter_;
    bool is_exact_ = false;
    std::unique_ptr<Grower> grower_;
    ptrdiff_t tree_ = -1;
};

}  // namespace

Status grow(const Growth& growth, const double* real_weights, const std::int32_t* counts,
            ptrdiff_t n_weights, const std::uint32_t* seeds, ptrdiff_t n_trees, Grown* out,
            int n_threads) noexcept try {
    Growth shared = growth;
    shared.n_threads = n_trees == 1 ? n_threads : 1;
    const Forest forest{shared, real_weights, counts, n_weights, seeds};
    const ptrdiff_t step = std::max<ptrdiff_t>(1, step_values / growth.max_features);
    std::vector<Plot> plots(std::min<ptrdiff_t>(n_trees, n_threads));
    std::atomic<ptrdiff_t> next{0};
    std::atomic<bool> failed{false};
    auto work = [&](ptrdiff_t p, int) {
        try {
            if (plots[p].is_free()) {
                const ptrdiff_t tree = next.fetch_add(1);
                if (tree >= n_trees) return;
                plots[p].sow(forest, tree);
            }
            plots[p].advance(step, out);
        } catch (const std::bad_alloc&) {
            failed = true;
        }
    };
    // In a round each plot is worked on for a step, and sown anew whenever it is free.
    for (bool done = false; !done;) {
        Status status = Status::ok;
        if (shared.n_threads > 1) {  // a tree that takes threads itself
            work(0, 0);
            status = plots[0].status();
            if (status == Status::ok) status = parallel(1, 1, [](ptrdiff_t, int) {});
        } else {
            status = parallel(static_cast<ptrdiff_t>(plots.size()), n_threads, work);
        }
        if (status != Status::ok) return status;
        if (failed) return Status::no_memory;
        done = next >= n_trees;
        for (const Plot& plot : plots) done = done && plot.is_free();
    }
    return Status::ok;
} catch (const std::bad_alloc&) {
    return Status::no_memory;
}

}  // namespace fastml
