#pragma once
// A grown tree, in the layout of scikit-learn's Tree, and what it is grown from.
#include <cstddef>
#include <cstdint>

#include "common/growing.h"
#include "trees/columns.h"

namespace fastml {

struct Node {  // scikit-learn's NODE_DTYPE
    std::int64_t left, right, feature;
    double threshold, impurity;
    std::int64_t rows;
    double weight;
    std::uint8_t missing_go_left;
    std::uint8_t padding[7];
};
static_assert(sizeof(Node) == 64, "scikit-learn's nodes have 64 bytes");

// Nodes of trees, one tree behind the other.
struct Nodes {
    Growing<Node> nodes;
    Growing<double> values;    // (nodes, n_outputs, max_n_classes)
    Growing<LevelSet> levels;  // (nodes) that go left, if there are categorical features
};

enum class CriterionName : int {
    gini,
    entropy,
    misclassification,
    squared_error,
    poisson,
    absolute_error,
    user
};

// A node's impurity from its statistics x (d), thread-safe; y is x. NaN where it failed. They are
// the classes' weights, or the sums of weights, of weighted targets and of their squares.
using Impurity = double (*)(const double* x, const double* y, std::ptrdiff_t d);

// What all trees of a forest share. Targets (n, n_outputs) are numbers, or classes 0, 1, ... as
// numbers. Sample weights are finite; see Weights.
struct Growth {
    const Columns* columns;
    const double* y;
    std::ptrdiff_t n_outputs;
    const std::int64_t* n_classes;  // (n_outputs), or null: regression
    std::ptrdiff_t max_n_classes;   // 1 for regression
    CriterionName criterion;
    Impurity impurity;  // the user's, for one output
    bool random_splits;
    std::ptrdiff_t max_features, max_depth, min_samples_split, min_samples_leaf;
    double min_weight_leaf, min_impurity_decrease;
    std::ptrdiff_t max_leaf_nodes;  // -1: no limit, depth first
    const std::int8_t* monotonic;   // (d), or null
    int n_threads = 1;              // on which a single tree may grow
    int grid = 0;                   // of the targets; see grid_of_targets
};

// A tree's weights (n): one of the two, or neither for ones. A row of weight zero is left out.
struct Weights {
    const double* real;
    const std::int32_t* counts;

    double operator[](std::ptrdiff_t i) const { return real ? real[i] : counts ? counts[i] : 1.0; }
};

}  // namespace fastml
