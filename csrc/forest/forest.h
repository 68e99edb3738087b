#pragma once
#include <cstddef>
#include <cstdint>

#include "common/pool.h"
#include "common/rows.h"

namespace fastml {

// Width of a packed node (nodes.h): 8 bytes for up to 2^8 or 2^14 features, else 16.
enum class Layout : int { narrow, middle, wide };

// The least layout that can hold trees of so many nodes over d features.
Layout layout_for(std::ptrdiff_t d, std::ptrdiff_t most_nodes) noexcept;
std::ptrdiff_t node_size(Layout layout) noexcept;

// A tree as it is given: the arrays of scikit-learn's Tree, contiguous, not trusted.
struct GivenTree {
    const std::ptrdiff_t *left, *right, *feature, *samples;
    const double* threshold;
    const unsigned char* missing_left;
    const std::ptrdiff_t*
        columns;                // feature f of the tree is column columns[f] of X; or null for f
    std::ptrdiff_t n_features;  // of the tree
    const double* values;       // (n, width)
    std::ptrdiff_t n;           // nodes, in [1, 2^31 - 2]
};

enum class Fault : int { none, one_child, child, twice, feature, threshold };

// A tree as it is walked. Node 0 is the root, the two children of a node are neighbours.
struct PackedTree {
    void* nodes;              // n + 1 at most, at the start of a cache line
    std::int32_t* origin;     // packed node -> given node; n + 1 at most
    std::int32_t* value_row;  // row of `values` -> given node; n / 2 + 1 at most
    const double* values;     // what the walk ends in: one row for all leaves that have equal ones
    std::ptrdiff_t n_nodes, n_rows;
    int depth;
    Fault fault;  // why the tree cannot be walked, and the node where that shows
    std::ptrdiff_t faulty;
};

// Packs trees[0, count) into packed[0, count), whose nodes, origin and value_row it fills. Every
// node that the root reaches is checked: two children or none, both behind their parent and no
// other node's, a feature of the tree, a threshold that is a number. Of two siblings the one with
// more samples is nearer, which is all that `samples` is for.
Status pack(const GivenTree* trees, PackedTree* packed, std::ptrdiff_t count, std::ptrdiff_t width,
            Layout layout, int n_threads) noexcept;

struct PackedForest {
    const PackedTree* trees;
    std::ptrdiff_t n_trees, d, width;
    std::ptrdiff_t steps;  // what one row takes, roughly
    Layout layout;
};

// Rows are dense, NaN going where the node says; or CSR with indices in [0, d), of equal ones the
// last counting and NaN going right, as scikit-learn has it. n, n_trees >= 1.

// out (n, width) = the leaves' values, added in the order of the trees from 0.0 on, times 1 or
// divided by the number of trees.
Status sum_values(const PackedForest& forest, const Rows<float>& X, bool average, double* out,
                  int n_threads) noexcept;

// out (n, outputs) = for each of `outputs` equal parts of that average the place of its maximum,
// the first of equal ones.
Status classify(const PackedForest& forest, const Rows<float>& X, std::ptrdiff_t outputs,
                std::ptrdiff_t* out, int n_threads) noexcept;

// out (n, n_trees, width) = the leaves' values.
Status each_values(const PackedForest& forest, const Rows<float>& X, double* out,
                   int n_threads) noexcept;

// out (n, n_trees) = the leaves, as given.
Status leaves(const PackedForest& forest, const Rows<float>& X, std::ptrdiff_t* out,
              int n_threads) noexcept;

// counts[i] = how many nodes row i passes through, all trees together.
Status count_passed(const PackedForest& forest, const Rows<float>& X, std::ptrdiff_t* counts,
                    int n_threads) noexcept;

// nodes[starts[i], starts[i + 1]) = those nodes, tree by tree from the root down; offsets[t] is
// added to those of tree t.
template <class Index>
Status list_passed(const PackedForest& forest, const Rows<float>& X, const std::ptrdiff_t* starts,
                   const std::ptrdiff_t* offsets, Index* nodes, int n_threads) noexcept;

}  // namespace fastml
