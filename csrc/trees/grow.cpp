#include "trees/grow.h"

#include <algorithm>
#include <chrono>
#include <new>

#include "trees/bootstrap.h"
#include "trees/grower.h"

namespace fastml {

using std::ptrdiff_t;

namespace {

// After a round Ctrl-C is looked for, and the caller told of trees that have been taken. Rounds end
// on all threads at once, which wait for the last: they are long. A thread looks at the clock after
// so many values, or a node.
using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds round_time{10};
constexpr ptrdiff_t look_values = 1 << 14;

}  // namespace

// Where trees grow one after the other, with the same memory.
class Plot {
  public:
    void work(Garden& garden) {
        const Growth& growth = garden.growth_;
        const ptrdiff_t step = look_values / growth.max_features + 1;  // rows
        const auto until = Clock::now() + round_time;
        while (!garden.pause_ && Clock::now() < until) {
            if (!grower_) {
                number_ = garden.next_.fetch_add(1);
                if (number_ >= garden.n_trees_) return;
                sow(garden);
            }
            if (grower_->advance(step)) {
                hand_over(garden);
            } else if (grower_->status() != Status::ok) {
                break;
            }
        }
        garden.pause_ = true;
    }
    Status status() const { return grower_ ? grower_->status() : Status::ok; }
    bool is_free() const { return !grower_; }

  private:
    // The nodes are still in the cache.
    void hand_over(Garden& garden) {
        const Ripe ripe{number_,
                        nodes_.nodes.data(),
                        nodes_.nodes.size(),
                        grower_->max_depth(),
                        nodes_.values.data(),
                        garden.growth_.columns->levels ? nodes_.levels.data() : nullptr};
        grower_.reset();
        garden.has_taken_ = true;
        if (!garden.take_(garden.context_, ripe)) garden.pause_ = true;
        nodes_.nodes.clear();
        nodes_.values.clear();
        nodes_.levels.clear();
    }
    void sow(const Garden& garden) {
        const Growth& growth = garden.growth_;
        const Weights weights = weights_of(garden);
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
        splitter_->plant(weights, garden.seeds_[number_]);
        grower_ = std::make_unique<Grower>(growth, *splitter_, nodes_);
    }

    Weights weights_of(const Garden& garden) {
        const WeightsOfTrees& all = garden.weights_;
        const ptrdiff_t n = garden.growth_.columns->n;
        if (all.bootstraps) {
            counts_.resize(n);
            draw_bootstrap(all.bootstraps[number_], n, all.draws, counts_.data());
            return {nullptr, counts_.data()};
        }
        const ptrdiff_t at = (all.n == 1 ? 0 : number_) * n;
        return {all.real ? all.real + at : nullptr, all.counts ? all.counts + at : nullptr};
    }

    std::vector<std::int32_t> counts_;  // of a bootstrap
    std::unique_ptr<Splitter> splitter_;
    bool is_exact_ = false;
    std::unique_ptr<Grower> grower_;
    ptrdiff_t number_ = -1;
    Nodes nodes_;
};

Garden::Garden(const Growth& growth, const WeightsOfTrees& weights, const std::uint32_t* seeds,
               ptrdiff_t n_trees, int n_threads)
    : growth_(growth), weights_(weights), seeds_(seeds), n_trees_(n_trees), n_threads_(n_threads),
      plots_(std::min<ptrdiff_t>(n_trees, n_threads)) {
    growth_.n_threads = n_trees == 1 ? n_threads : 1;
    growth_.grid = grid_of_targets(growth);
}
Garden::~Garden() = default;

Status Garden::work(Take take, void* context) noexcept try {
    take_ = take;
    context_ = context;
    has_taken_ = false;
    auto round = [&](ptrdiff_t p, int) {
        try {
            plots_[p].work(*this);
        } catch (const std::bad_alloc&) {
            failed_ = true;
        }
    };
    for (bool done = false; !has_taken_ && !done;) {
        pause_ = false;
        Status status;
        if (growth_.n_threads > 1) {  // a tree that takes threads itself
            round(0, 0);
            status = plots_[0].status();
            if (status == Status::ok) status = parallel(1, 1, [](ptrdiff_t, int) {});
        } else {
            status = parallel(static_cast<ptrdiff_t>(plots_.size()), n_threads_, round);
        }
        if (status != Status::ok) return status;
        if (failed_) return Status::no_memory;
        done = next_ >= n_trees_;
        for (const Plot& plot : plots_) done = done && plot.is_free();
    }
    return Status::ok;
} catch (const std::bad_alloc&) {
    return Status::no_memory;
}

}  // namespace fastml
