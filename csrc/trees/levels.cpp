#include "trees/levels.h"

#include <algorithm>
#include <cstring>

#include "trees/splitter.h"

namespace fastml {

using std::ptrdiff_t;

namespace {

constexpr std::uint32_t goes_left = 1, is_categorical = 2;
constexpr ptrdiff_t block = 256;  // rows that a tree is walked for at a time
constexpr ptrdiff_t lanes = 8;    // walked side by side: their cache misses overlap

// Without branches, which would be guessed wrong every other time.
std::int32_t next(const LevelTree& tree, const LevelNode& node, const float* x) {
    const float value = x[node.feature >> 2];
    const bool missing_left = node.feature & goes_left, by_levels = node.feature & is_categorical;
    float threshold;
    std::memcpy(&threshold, &node.bound, sizeof threshold);
    const bool below = (value <= threshold) | ((value != value) & missing_left);
    const bool known = (value >= 0) & (value < most_levels);
    const auto level = static_cast<std::int32_t>(known ? value : 0.0f);
    const bool is_in = tree.sets[by_levels ? node.bound : 0].has(level);
    const bool among = (known & is_in) | (!known & missing_left);
    return node.children[!((by_levels & among) | (!by_levels & below))];
}

// at (rows) = the leaves of rows of X.
void walk_block(const LevelTree& tree, const float* X, ptrdiff_t rows, ptrdiff_t d,
                std::int32_t* at) {
    for (ptrdiff_t i = 0; i < rows; i += lanes) {
        const ptrdiff_t here = std::min(lanes, rows - i);
        std::int32_t now[lanes] = {};
        for (bool moved = true; moved;) {
            moved = false;
            for (ptrdiff_t k = 0; k < here; ++k) {
                const std::int32_t to = next(tree, tree.nodes[now[k]], X + (i + k) * d);
                moved |= to != now[k];
                now[k] = to;
            }
        }
        std::copy_n(now, here, at + i);
    }
}

}  // namespace

bool pack_levels(const Node* nodes, const LevelSet* sets, ptrdiff_t n_nodes,
                 const std::int32_t* levels, ptrdiff_t d, LevelTree& out) {
    out.nodes.resize(n_nodes);
    out.sets.assign(1, LevelSet{});
    for (ptrdiff_t i = 0; i < n_nodes; ++i) {
        const Node& node = nodes[i];
        const auto self = static_cast<std::int32_t>(i);
        if (node.left < 0 && node.right < 0) {
            out.nodes[i] = {0, 0, {self, self}};
            continue;
        }
        if (std::min(node.left, node.right) <= i || std::max(node.left, node.right) >= n_nodes ||
            node.feature < 0 || node.feature >= d)
            return false;
        const bool by_levels = levels[node.feature] != 0;
        std::uint32_t bound;
        const float threshold = round_down(node.threshold);
        std::memcpy(&bound, &threshold, sizeof bound);
        if (by_levels) {
            bound = static_cast<std::uint32_t>(out.sets.size());
            out.sets.push_back(sets[i]);
        }
        out.nodes[i] = {
            bound,
            static_cast<std::uint32_t>(node.feature) << 2 | (by_levels ? is_categorical : 0) |
                (node.missing_go_left ? goes_left : 0),
            {static_cast<std::int32_t>(node.left), static_cast<std::int32_t>(node.right)}};
    }
    return true;
}

Status walk_levels(const LevelTree* trees, ptrdiff_t n_trees, const float* X, ptrdiff_t n,
                   ptrdiff_t d, ptrdiff_t width, double* sums, std::int64_t* leaves,
                   int n_threads) noexcept {
    return parallel((n + block - 1) / block, n_threads, [&](ptrdiff_t b, int) {
        const ptrdiff_t begin = b * block, rows = std::min(block, n - begin);
        std::int32_t at[block];
        if (sums) std::fill_n(sums + begin * width, rows * width, 0.0);
        for (ptrdiff_t t = 0; t < n_trees; ++t) {
            walk_block(trees[t], X + begin * d, rows, d, at);
            for (ptrdiff_t i = 0; i < rows; ++i) {
                if (leaves) {
                    leaves[(begin + i) * n_trees + t] = at[i];
                    continue;
                }
                const double* const value = trees[t].values + at[i] * width;
                double* const sum = sums + (begin + i) * width;
                for (ptrdiff_t c = 0; c < width; ++c) sum[c] += value[c];
            }
        }
    });
}

}  // namespace fastml
