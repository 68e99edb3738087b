#pragma once
#include <algorithm>
#include <cstddef>

#include "forest/forest.h"
#include "forest/nodes.h"

namespace fastml {

// Where NaN goes: there is none; where the node says; right (in sparse data).
enum class Missing { absent, learned, right };

template <Missing missing, class Node>
inline std::uint32_t next_node(const Node& node, const float* x) {
    const float value = x[node.feature()];
    std::uint32_t right = value > node.threshold;
    if (missing == Missing::learned) right |= (value != value) & !node.missing_goes_left();
    if (missing == Missing::right) right |= (value != value) & !node.is_leaf();
    return node.child() + right;
}

// A step waits for two loads, the node's and then the value's. So many walks side by side keep the
// processor busy meanwhile, and their cache misses overlap. On Zen 5, 4 to 32 lanes take 7.6, 5.4,
// 4.6 and 6.4 ns a tree of depth 8, gathers of AVX-512 at best 5.8; with NaN to look for there are
// registers for 8 only.
constexpr int lanes_for(Missing missing) { return missing == Missing::absent ? 16 : 8; }

// leaf[0, rows) = the packed leaves where rows of X (rows, d) end.
template <Missing missing, class Node>
void walk_rows(const PackedTree& tree, const float* X, ptrdiff_t rows, ptrdiff_t d,
               std::uint32_t* leaf) {
    constexpr int lanes = lanes_for(missing);
    const Node* const nodes = static_cast<const Node*>(tree.nodes);
    for (ptrdiff_t i = 0; i < rows; i += lanes) {
        std::uint32_t at[lanes] = {};
        const float* x[lanes];
        for (int k = 0; k < lanes; ++k) x[k] = X + std::min(i + k, rows - 1) * d;
        for (int depth = 0; depth < tree.depth; depth += 4) {
            for (int s = 0; s < 3; ++s)
                for (int k = 0; k < lanes; ++k) at[k] = next_node<missing>(nodes[at[k]], x[k]);
            std::uint32_t moved = 0;
            for (int k = 0; k < lanes; ++k) {
                const std::uint32_t from = at[k];
                at[k] = next_node<missing>(nodes[from], x[k]);
                moved |= from ^ at[k];
            }
            if (!moved) break;
        }
        for (int k = 0; k < lanes && i + k < rows; ++k) leaf[i + k] = at[k];
    }
}

// leaf[0, count) = where the row x ends in trees[0, count), side by side.
template <Missing missing, class Node>
void walk_trees(const PackedTree* trees, ptrdiff_t count, const float* x, std::uint32_t* leaf) {
    constexpr int lanes = lanes_for(missing);
    for (ptrdiff_t t = 0; t < count; t += lanes) {
        std::uint32_t at[lanes] = {};
        const Node* nodes[lanes];
        int deepest = 0;
        for (int k = 0; k < lanes; ++k) {
            const PackedTree& tree = trees[std::min(t + k, count - 1)];
            nodes[k] = static_cast<const Node*>(tree.nodes);
            deepest = std::max(deepest, tree.depth);
        }
        for (int depth = 0; depth < deepest; ++depth)
            for (int k = 0; k < lanes; ++k) at[k] = next_node<missing>(nodes[k][at[k]], x);
        for (int k = 0; k < lanes && t + k < count; ++k) leaf[t + k] = at[k];
    }
}

}  // namespace fastml
