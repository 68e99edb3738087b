#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "common/blocks.h"
#include "common/scratch.h"
#include "forest/forest.h"
#include "forest/nodes.h"

namespace fastml {
namespace {

float largest_float_up_to(double threshold) {
    // Out of range, a conversion is undefined.
    constexpr float inf = std::numeric_limits<float>::infinity();
    constexpr float most = std::numeric_limits<float>::max();
    if (threshold >= most) return threshold == inf ? inf : most;
    if (threshold < -most) return -inf;
    const float near = static_cast<float>(threshold);
    return near > threshold ? std::nextafter(near, -inf) : near;
}

// Which value rows a tree has, so that leaves share equal ones: those of pure leaves, in a fully
// grown tree for classification nearly all, are as few as the classes and stay in the cache.
class ValueRows {
  public:
    ValueRows(const GivenTree& tree, ptrdiff_t width, std::int32_t* origin)
        : values_(tree.values), width_(width), origin_(origin),
          mask_(table_size(tree.n, width) - 1), table_(mask_ + 1) {
        if (table_) std::fill_n(table_.get(), mask_ + 1, -1);
    }
    explicit operator bool() const { return static_cast<bool>(table_); }
    ptrdiff_t size() const { return size_; }

    std::uint32_t of(ptrdiff_t node) {
        const bool shared = width_ > 1;
        ptrdiff_t slot = 0;
        if (shared) {
            const double* value = values_ + node * width_;
            for (slot = hash(value) & mask_; table_[slot] >= 0; slot = (slot + 1) & mask_) {
                const double* other = values_ + ptrdiff_t{origin_[table_[slot]]} * width_;
                if (!std::memcmp(value, other, width_ * sizeof(double)))
                    return static_cast<std::uint32_t>(table_[slot]);
            }
            table_[slot] = size_;
        }
        origin_[size_] = static_cast<std::int32_t>(node);
        return static_cast<std::uint32_t>(size_++);
    }

  private:
    static ptrdiff_t table_size(ptrdiff_t n, ptrdiff_t width) {
        ptrdiff_t size = 1;  // half full at most: of n nodes (n + 1) / 2 are leaves
        while (width > 1 && size < n + 1) size *= 2;
        return size;
    }
    ptrdiff_t hash(const double* value) const {
        std::uint64_t state = 0;
        for (ptrdiff_t j = 0; j < width_; ++j) {
            std::uint64_t bits;
            std::memcpy(&bits, value + j, sizeof bits);
            state = (state ^ bits) * 0x9e3779b97f4a7c15u;
            state ^= state >> 32;
        }
        return static_cast<ptrdiff_t>(state >> 1);
    }

    const double* values_;
    ptrdiff_t width_;
    std::int32_t* origin_;
    ptrdiff_t mask_;
    Scratch<std::int32_t> table_;
    std::int32_t size_ = 0;
};

template <class Node> class Packer {
  public:
    Packer(const GivenTree& tree, ptrdiff_t width, PackedTree& packed)
        : tree_(tree), packed_(packed), nodes_(static_cast<Node*>(packed.nodes)),
          rows_(tree, width, packed.value_row), seen_(tree.n), pending_(tree.n) {}

    Status run() {
        if (!rows_ || !seen_ || !pending_) return Status::no_memory;
        std::fill_n(seen_.get(), tree_.n, false);
        packed_.fault = Fault::none;
        packed_.depth = 0;
        // Pairs of siblings start at even places, so that none lies on two cache lines.
        nodes_[1] = Node::leaf(1, 0);
        packed_.origin[1] = 0;
        next_ = 2;
        place(0, 0, 0);
        push_edge();
        while (n_pending_ && packed_.fault == Fault::none) fill_line(pending_[--n_pending_]);
        packed_.n_nodes = next_;
        packed_.n_rows = rows_.size();
        return Status::ok;
    }

  private:
    struct Open {  // a placed node whose children are not
        std::int32_t node;
        std::uint32_t at;
        int depth;
    };
    static constexpr ptrdiff_t per_line = 64 / sizeof(Node);

    // The rest of a cache line gets the children of `top`, then theirs, the busiest first: a walk
    // then stays on a line for two levels or more. What is open at the end starts lines of its own,
    // the busiest right behind.
    void fill_line(Open top) {
        edge_[0] = top;
        n_edge_ = 1;
        do {
            Open* busiest = edge_;
            for (Open* open = edge_ + 1; open < edge_ + n_edge_; ++open)
                if (tree_.samples[open->node] > tree_.samples[busiest->node]) busiest = open;
            const Open parent = *busiest;
            *busiest = edge_[--n_edge_];
            const auto at = static_cast<std::uint32_t>(next_);
            next_ += 2;
            nodes_[parent.at].set_child(at);
            place(tree_.left[parent.node], at, parent.depth + 1);
            place(tree_.right[parent.node], at + 1, parent.depth + 1);
        } while (n_edge_ && next_ % per_line && packed_.fault == Fault::none);
        push_edge();
    }

    void push_edge() {
        for (int i = 1; i < n_edge_; ++i)  // by insertion: they are five at most
            for (int j = i; j && samples(edge_[j]) < samples(edge_[j - 1]); --j)
                std::swap(edge_[j], edge_[j - 1]);
        for (int i = 0; i < n_edge_; ++i) pending_[n_pending_++] = edge_[i];
        n_edge_ = 0;
    }
    ptrdiff_t samples(const Open& open) const { return tree_.samples[open.node]; }

    void place(ptrdiff_t node, std::uint32_t at, int depth) {
        packed_.origin[at] = static_cast<std::int32_t>(node);
        packed_.depth = std::max(packed_.depth, depth);
        if (tree_.left[node] == -1 && tree_.right[node] == -1) {
            nodes_[at] = Node::leaf(at, rows_.of(node));
            return;
        }
        const Fault fault = check(node);
        if (fault != Fault::none) {
            packed_.fault = fault;
            packed_.faulty = node;
            nodes_[at] = Node::leaf(at, 0);
            return;
        }
        const ptrdiff_t feature = tree_.feature[node];
        nodes_[at] = Node::split(
            largest_float_up_to(tree_.threshold[node]),
            static_cast<std::uint32_t>(tree_.columns ? tree_.columns[feature] : feature),
            tree_.missing_left[node] != 0);
        edge_[n_edge_++] = {static_cast<std::int32_t>(node), at, depth};
    }

    Fault check(ptrdiff_t node) {
        const ptrdiff_t left = tree_.left[node], right = tree_.right[node];
        if (left == -1 || right == -1) return Fault::one_child;
        if (left <= node || left >= tree_.n || right <= node || right >= tree_.n)
            return Fault::child;
        if (left == right || seen_[left] || seen_[right]) return Fault::twice;
        seen_[left] = seen_[right] = true;
        if (tree_.feature[node] < 0 || tree_.feature[node] >= tree_.n_features)
            return Fault::feature;
        return std::isnan(tree_.threshold[node]) ? Fault::threshold : Fault::none;
    }

    const GivenTree& tree_;
    PackedTree& packed_;
    Node* nodes_;
    ValueRows rows_;
    Scratch<bool> seen_;
    Scratch<Open> pending_;
    ptrdiff_t n_pending_ = 0, next_ = 0;
    Open edge_[per_line / 2 + 2];
    int n_edge_ = 0;
};

template <class Node>
Status pack_one(const GivenTree& tree, ptrdiff_t width, PackedTree& packed) noexcept {
    return Packer<Node>(tree, width, packed).run();
}

template <class Node> bool holds(ptrdiff_t d, ptrdiff_t nodes) {
    return d <= Node::most_features && nodes + 1 <= Node::most_nodes;
}

}  // namespace

Layout layout_for(ptrdiff_t d, ptrdiff_t most_nodes) noexcept {
    if (holds<NarrowNode>(d, most_nodes)) return Layout::narrow;
    return holds<MiddleNode>(d, most_nodes) ? Layout::middle : Layout::wide;
}

ptrdiff_t node_size(Layout layout) noexcept {
    return layout == Layout::wide ? sizeof(WideNode) : sizeof(NarrowNode);
}

Status pack(const GivenTree* trees, PackedTree* packed, ptrdiff_t count, ptrdiff_t width,
            Layout layout, int n_threads) noexcept {
    const auto one = layout == Layout::narrow   ? pack_one<NarrowNode>
                     : layout == Layout::middle ? pack_one<MiddleNode>
                                                : pack_one<WideNode>;
    ptrdiff_t nodes = 0;
    for (ptrdiff_t t = 0; t < count; ++t) nodes += trees[t].n;
    std::atomic<bool> failed{false};
    const Status status =
        parallel(count, threads_for(50.0 * nodes, n_threads), [&](ptrdiff_t t, int) {
            if (one(trees[t], width, packed[t]) != Status::ok) failed = true;
        });
    return failed ? Status::no_memory : status;
}

}  // namespace fastml
