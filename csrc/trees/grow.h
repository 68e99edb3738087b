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

// Grows trees side by side, on at most n_threads threads: n_trees of them, each from its seed and
// weights (either null, or `n_weights` arrays of n, 1 for all trees or n_trees). The trees are
// scikit-learn 1.9's. With categorical features the criterion is Gini, entropy or squared error,
// there is one output and no constraint, splits are the best, and weights of classes are whole and
// sum to most_weight at most. Every row count n < 2^31. All that is given stays the caller's.
class Garden {
  public:
    // May throw std::bad_alloc.
    Garden(const Growth& growth, const double* real_weights, const std::int32_t* counts,
           std::ptrdiff_t n_weights, const std::uint32_t* seeds, std::ptrdiff_t n_trees,
           int n_threads);
    ~Garden();
    // Works until some trees have been taken, in any order, or all have been. Not to be called again
    // when it has not been ok.
    Status work(Take take, void* context) noexcept;

  private:
    friend class Plot;
    Weights weights(std::ptrdiff_t tree) const;

    Growth growth_;
    const double* real_weights_;
    const std::int32_t* counts_;
    const std::ptrdiff_t n_weights_;
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
