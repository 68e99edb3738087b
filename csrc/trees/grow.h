#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "trees/tree.h"

namespace fastml {

class Plot;

// A tree that is complete.
struct Ripe {
    std::ptrdiff_t number;
    const Node* nodes;
    std::ptrdiff_t n_nodes, max_depth;
    const double* values;
    const LevelSet* levels;  // null without categorical features
};
// Takes it on the thread that has grown it, while others grow; its arrays are good during the call.
// Whether there is to be another one.
using Take = bool (*)(void* context, const Ripe& ripe);

// The weights of trees: either of the first two, `n` arrays, 1 for all trees or one for each; or
// counts of `draws` rows each, which a tree draws by its seed; see bootstrap.h. Or none.
struct WeightsOfTrees {
    const double* real = nullptr;
    const std::int32_t* counts = nullptr;
    std::ptrdiff_t n = 1;
    const std::uint32_t* bootstraps = nullptr;
    std::ptrdiff_t draws = 0;
};

// Grows trees side by side, on at most n_threads threads: n_trees of them. The trees are
// scikit-learn 1.9's. With categorical features the criterion is Gini, entropy or squared error,
// there is one output and no constraint, splits are the best, and weights of classes are whole and
// sum to most_weight at most. Every row count n < 2^31. All that is given stays the caller's.
class Garden {
  public:
    // May throw std::bad_alloc.
    Garden(const Growth& growth, const WeightsOfTrees& weights, const std::uint32_t* seeds,
           std::ptrdiff_t n_trees, int n_threads);
    ~Garden();
    // Works until some trees have been taken, in any order, or all have been. Not to be called again
    // when it has not been ok.
    Status work(Take take, void* context) noexcept;

  private:
    friend class Plot;
    Growth growth_;
    const WeightsOfTrees weights_;
    const std::uint32_t* seeds_;
    const std::ptrdiff_t n_trees_;
    const int n_threads_;
    std::vector<Plot> plots_;
    Take take_ = nullptr;
    void* context_ = nullptr;
    std::atomic<std::ptrdiff_t> next_{0};  // tree to be sown
    std::atomic<bool> has_taken_{false};
    std::atomic<bool> pause_{false}, failed_{false};
};

}  // namespace fastml
