#include "forest/blocks.h"

namespace fastml {
namespace {

// visit(t, node) for the packed nodes on the way of row x through every tree.
template <Missing missing, class Node, class Visit>
void follow(const PackedForest& forest, const float* x, Visit&& visit) {
    for (ptrdiff_t t = 0; t < forest.n_trees; ++t) {
        const Node* const nodes = static_cast<const Node*>(forest.trees[t].nodes);
        std::uint32_t at = 0;
        visit(t, at);
        while (!nodes[at].is_leaf()) {
            at = next_node<missing>(nodes[at], x);
            visit(t, at);
        }
    }
}

struct Count {
    const PackedForest& forest;
    const Block& block;
    ptrdiff_t* counts;

    template <Missing missing, class Node> void run() const {
        for (ptrdiff_t i = 0; i < block.rows; ++i) {
            ptrdiff_t count = 0;
            follow<missing, Node>(forest, block.x + i * forest.d,
                                  [&](ptrdiff_t, std::uint32_t) { ++count; });
            counts[block.begin + i] = count;
        }
    }
};

template <class Index> struct List {
    const PackedForest& forest;
    const Block& block;
    const ptrdiff_t *starts, *offsets;
    Index* nodes;

    template <Missing missing, class Node> void run() const {
        for (ptrdiff_t i = 0; i < block.rows; ++i) {
            Index* next = nodes + starts[block.begin + i];
            follow<missing, Node>(
                forest, block.x + i * forest.d, [&](ptrdiff_t t, std::uint32_t at) {
                    *next++ = static_cast<Index>(offsets[t] + forest.trees[t].origin[at]);
                });
        }
    }
};

}  // namespace

Status count_passed(const PackedForest& forest, const Rows<float>& X, ptrdiff_t* counts,
                    int n_threads) noexcept {
    return for_blocks(forest, X, Cut(forest, X, n_threads), [&](const Block& block) {
        with_nodes(forest.layout, block.missing, Count{forest, block, counts});
    });
}

template <class Index>
Status list_passed(const PackedForest& forest, const Rows<float>& X, const ptrdiff_t* starts,
                   const ptrdiff_t* offsets, Index* nodes, int n_threads) noexcept {
    return for_blocks(forest, X, Cut(forest, X, n_threads), [&](const Block& block) {
        with_nodes(forest.layout, block.missing,
                   List<Index>{forest, block, starts, offsets, nodes});
    });
}

template Status list_passed(const PackedForest&, const Rows<float>&, const ptrdiff_t*,
                            const ptrdiff_t*, std::int32_t*, int) noexcept;
template Status list_passed(const PackedForest&, const Rows<float>&, const ptrdiff_t*,
                            const ptrdiff_t*, std::int64_t*, int) noexcept;

}  // namespace fastml
