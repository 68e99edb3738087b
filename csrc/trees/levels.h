#pragma once
// Prediction by trees some of whose nodes split by levels.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/pool.h"
#include "trees/tree.h"

namespace fastml {

// 16 bytes instead of 64 and a set. A leaf is its own child.
struct LevelNode {
    std::uint32_t bound;  // the bits of the threshold in single precision; or the number of the set
    std::uint32_t feature;  // 4 times that, and 2 if it is categorical, and 1 if missing goes left
    std::int32_t children[2];  // left, right
};

struct LevelTree {
    std::vector<LevelNode> nodes;
    std::vector<LevelSet> sets;  // one at least
    const double* values;        // (nodes, width), the caller's
};

// Packs a tree of n_nodes, with a set each. Features of which `levels` (d) is not zero are
// categorical. False if it cannot be walked: children come behind their parent, two or none, and
// features are below d. Throws std::bad_alloc.
bool pack_levels(const Node* nodes, const LevelSet* sets, std::ptrdiff_t n_nodes,
                 const std::int32_t* levels, std::ptrdiff_t d, LevelTree& out);

// X (n, d) in C order. A level that is not from 0 to most_levels - 1 goes where missing ones go.
// Either sums (n, width) = the leaves' values, added in the order of the trees, or leaves
// (n, n_trees) = their numbers; the other is null.
Status walk_levels(const LevelTree* trees, std::ptrdiff_t n_trees, const float* X, std::ptrdiff_t n,
                   std::ptrdiff_t d, std::ptrdiff_t width, double* sums, std::int64_t* leaves,
                   int n_threads) noexcept;

}  // namespace fastml
