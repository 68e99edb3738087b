#include "trees/grow.h"

#include <algorithm>
#include <new>

#include "trees/grower.h"

namespace fastml {

using std::ptrdiff_t;

namespace {

// About 2.5 ms of one thread's work. After a round, which is that or as much as a root, trees that
// are ripe are taken out, while their nodes are in the cache, and Ctrl-C is looked for. When a thread
// has done a round's work, the others see so within a sixteenth of it, or a node.
constexpr ptrdiff_t round_values = 1 << 18;
constexpr ptrdiff_t looks = 16;

}  // namespace

// Where trees grow one after the other, with the same memory.
class Plot {
  public:
    void work(Garden& garden) {
        const Growth& growth = garden.growth_;
        const ptrdiff_t step = round_values / growth.max_features / looks + 1;
        ptrdiff_t left = std::max(looks * step, growth.columns->n);  // rows to look at
        while (left > 0 && !garden.pause_) {
            if (!grower_) {
                number_ = garden.next_.fetch_add(1);
                if (number_ >= garden.n_trees_) return;
                sow(garden);
            }
            left += grower_->looked_at();
            const bool is_complete = grower_->advance(step);
            left -= grower_->looked_at();
            if (is_complete) {
                complete_.push_back({number_, grower_->root(), grower_->max_depth()});
                grower_.reset();
            } else if (grower_->status() != Status::ok) {
                break;
            }
        }
        garden.pause_ = true;
    }
    Status status() const { return grower_ ? grower_->status() : Status::ok; }
    bool is_free() const { return !grower_; }

    // Tells which trees are complete.
    void show(const Growth& growth, std::vector<Ripe>& ripe) const {
        for (std::size_t i = 0; i < complete_.size(); ++i) {
            const Complete& tree = complete_[i];
            const ptrdiff_t end = i + 1 < complete_.size() ? complete_[i + 1].root
                                  : grower_                ? grower_->root()
                                                           : nodes_.nodes.size();
            ripe.push_back({tree.number, nodes_.nodes.data() + tree.root, end - tree.root,
                            tree.max_depth,
                            nodes_.values.data() + tree.root * values_of_node(growth),
                            growth.columns->levels ? nodes_.levels.data() + tree.root : nullptr});
        }
    }
    // Takes back their memory.
    void clear(const Growth& growth) {
        const ptrdiff_t kept = grower_ ? grower_->root() : nodes_.nodes.size();
        nodes_.nodes.drop_front(kept);
        nodes_.values.drop_front(kept * values_of_node(growth));
        if (growth.columns->levels) nodes_.levels.drop_front(kept);
        if (grower_) grower_->moved(0);
        complete_.clear();
    }

  private:
    struct Complete {
        ptrdiff_t number, root, max_depth;
    };
    static ptrdiff_t values_of_node(const Growth& growth) {
        return growth.n_outputs * growth.max_n_classes;
    }
    void sow(const Garden& garden) {
        const Growth& growth = garden.growth_;
        const Weights weights = garden.weights(number_);
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

    std::unique_ptr<Splitter> splitter_;
    bool is_exact_ = false;
    std::unique_ptr<Grower> grower_;
    ptrdiff_t number_ = -1;
    Nodes nodes_;
    std::vector<Complete> complete_;
};

Garden::Garden(const Growth& growth, const double* real_weights, const std::int32_t* counts,
               ptrdiff_t n_weights, const std::uint32_t* seeds, ptrdiff_t n_trees, int n_threads)
    : growth_(growth), real_weights_(real_weights), counts_(counts), n_weights_(n_weights),
      seeds_(seeds), n_trees_(n_trees), n_threads_(n_threads),
      plots_(std::min<ptrdiff_t>(n_trees, n_threads)) {
    growth_.n_threads = n_trees == 1 ? n_threads : 1;
}
Garden::~Garden() = default;

Weights Garden::weights(ptrdiff_t tree) const {
    const ptrdiff_t at = (n_weights_ == 1 ? 0 : tree) * growth_.columns->n;
    return {real_weights_ ? real_weights_ + at : nullptr, counts_ ? counts_ + at : nullptr};
}

Status Garden::work() noexcept try {
    ripe_.clear();
    for (Plot& plot : plots_) plot.clear(growth_);
    auto round = [&](ptrdiff_t p, int) {
        try {
            plots_[p].work(*this);
        } catch (const std::bad_alloc&) {
            failed_ = true;
        }
    };
    for (bool done = false; ripe_.empty() && !done;) {
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
        for (const Plot& plot : plots_) {
            plot.show(growth_, ripe_);
            done = done && plot.is_free();
        }
    }
    return Status::ok;
} catch (const std::bad_alloc&) {
    return Status::no_memory;
}

}  // namespace fastml
