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

constexpr ptrdiff_t chunk = 256;  // rows that are walked at a time

// leaf[0, rows) = the packed leaves where rows of X (rows, d) end, at most a chunk.
//
// Rows reach their leaves after half the depth of an uneven tree, or after all of it: of 16 side by
// side one is late. Rows that have arrived therefore make room for others from time to time.
template <Missing missing, class Node>
void walk_rows(const PackedTree& tree, const float* X, ptrdiff_t rows, ptrdiff_t d,
               std::uint32_t* leaf) {
    constexpr int lanes = lanes_for(missing);
    const Node* const nodes = static_cast<const Node*>(tree.nodes);
    std::uint32_t at[chunk + lanes], row[chunk + lanes];
    for (ptrdiff_t i = 0; i < rows; ++i) {
        at[i] = 0;
        row[i] = static_cast<std::uint32_t>(i);
    }
    int left = tree.depth;
    for (int steps = left > 8 ? left / 2 : left; rows; steps = std::min(left, 6)) {
        left -= steps;
        std::fill_n(at + rows, lanes, at[rows - 1]);
        std::fill_n(row + rows, lanes, row[rows - 1]);
        ptrdiff_t on_the_way = 0;
        for (ptrdiff_t i = 0; i < rows; i += lanes) {
            std::uint32_t now[lanes];
            const float* x[lanes];
            for (int k = 0; k < lanes; ++k) {
                now[k] = at[i + k];
                x[k] = X + row[i + k] * d;
            }
            for (int s = 0; s < steps; ++s)
                for (int k = 0; k < lanes; ++k) now[k] = next_node<missing>(nodes[now[k]], x[k]);
            const ptrdiff_t count = std::min<ptrdiff_t>(lanes, rows - i);
            for (ptrdiff_t k = 0; k < count; ++k) leaf[row[i + k]] = now[k];
            for (ptrdiff_t k = 0; left && k < count; ++k) {
                at[on_the_way] = now[k];
                row[on_the_way] = row[i + k];
                on_the_way += !nodes[now[k]].is_leaf();
            }
        }
        rows = on_the_way;
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
