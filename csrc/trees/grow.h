#pragma once
#include "trees/tree.h"

namespace fastml {

// Grows n_trees trees, each from its seed and weights (either null, or `n_weights` arrays of n, 1
// for all trees or n_trees), on at most n_threads threads. The trees are scikit-learn 1.9's. With
// categorical features the criterion is Gini, entropy or squared error, there is one output and no
// constraint, splits are the best, and weights of classes are whole and sum to most_weight at most.
// Every row count n < 2^31.
Status grow(const Growth& growth, const double* real_weights, const std::int32_t* counts,
            std::ptrdiff_t n_weights, const std::uint32_t* seeds, std::ptrdiff_t n_trees,
            Grown* out, int n_threads) noexcept;

}  // namespace fastml
