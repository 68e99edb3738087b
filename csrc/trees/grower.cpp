#include "trees/grower.h"

#include <algorithm>

namespace fastml {

using std::ptrdiff_t;

constexpr double epsilon = std::numeric_limits<double>::epsilon();

Grower::Grower(const Growth& growth, Splitter& splitter, Nodes& out)
    : growth_(growth), splitter_(splitter), out_(out), splits_left_(growth.max_leaf_nodes - 1) {
    const Pending root{0, splitter_.n_rows(), 0, -1, false, {}};
    if (growth.max_leaf_nodes < 0)
        stack_.push_back(root);
    else
        frontier_.push_back(look(root));
}

bool Grower::advance(ptrdiff_t rows) {
    const ptrdiff_t until = done_ + rows;
    while (!(stack_.empty() && frontier_.empty())) {
        if (done_ >= until || status() != Status::ok) return false;
        if (growth_.max_leaf_nodes < 0)
            step_depth_first();
        else
            step_best_first();
    }
    return true;
}

ptrdiff_t Grower::add(const Pending& at, bool is_leaf, const Split& split) {
    const ptrdiff_t id = out_.nodes.size();
    Node& node = *out_.nodes.add(1);
    node = {};
    node.left = node.right = -1;
    node.feature = is_leaf ? -2 : split.feature;
    node.threshold = is_leaf ? -2.0 : split.threshold;
    node.missing_go_left = !is_leaf && split.missing_go_left;
    node.impurity = at.inherited.impurity;
    node.rows = at.end - at.start;
    node.weight = splitter_.weight();
    if (growth_.columns->levels) *out_.levels.add(1) = is_leaf ? LevelSet{} : splitter_.levels();
    if (at.parent >= 0) {
        Node& parent = out_.nodes[at.parent];
        (at.is_left ? parent.left : parent.right) = id;
    }
    const ptrdiff_t size = growth_.n_outputs * growth_.max_n_classes;
    double* const value = out_.values.add(size);
    std::fill_n(value, size, 0.0);
    splitter_.value(value);
    if (growth_.monotonic) splitter_.clip(value, at.inherited.lower, at.inherited.upper);
    return id;
}

// Splits the node if it may be split, and adds it.
Grower::Candidate Grower::look(const Pending& pending) {
    Pending at = pending;
    const ptrdiff_t rows = at.end - at.start;
    done_ += rows;
    splitter_.begin(at.start, at.end);
    if (at.parent < 0) at.inherited.impurity = splitter_.impurity();
    bool is_leaf = at.depth >= growth_.max_depth || rows < growth_.min_samples_split ||
                   rows < 2 * growth_.min_samples_leaf ||
                   splitter_.weight() < 2 * growth_.min_weight_leaf ||
                   at.inherited.impurity <= epsilon;
    Split split{at.end};
    if (!is_leaf) {
        split = splitter_.split(at.inherited);
        is_leaf =
            split.position >= at.end || split.improvement + epsilon < growth_.min_impurity_decrease;
    }
    const ptrdiff_t id = add(at, is_leaf, split);
    const double middle = growth_.monotonic && !is_leaf ? splitter_.middle_value() : 0;
    if (is_leaf) split.improvement = 0;
    return {id, at.start, at.end, at.depth, is_leaf, split, at.inherited, middle};
}

void Grower::children(const Candidate& parent, Pending* left, Pending* right) const {
    const Split& split = parent.split;
    Inherited l = parent.inherited, r = parent.inherited;
    l.impurity = split.left_impurity;
    r.impurity = split.right_impurity;
    const int direction = growth_.monotonic ? growth_.monotonic[split.feature] : 0;
    if (direction > 0) l.upper = r.lower = parent.middle_value;
    if (direction < 0) l.lower = r.upper = parent.middle_value;
    *left = {parent.start, split.position, parent.depth + 1, parent.node, true, l};
    *right = {split.position, parent.end, parent.depth + 1, parent.node, false, r};
}

void Grower::step_depth_first() {
    const Pending at = stack_.back();
    stack_.pop_back();
    const Candidate node = look(at);
    max_depth_ = std::max(max_depth_, node.depth);
    if (node.is_leaf) return;
    Pending left, right;
    children(node, &left, &right);
    stack_.push_back(right);
    stack_.push_back(left);
}

void Grower::step_best_first() {
    std::pop_heap(frontier_.begin(), frontier_.end());
    const Candidate best = frontier_.back();
    frontier_.pop_back();
    max_depth_ = std::max(max_depth_, best.depth);
    if (best.is_leaf) return;
    if (splits_left_ <= 0) {
        Node& node = out_.nodes[best.node];
        node.left = node.right = -1;
        node.feature = -2;
        node.threshold = -2.0;
        return;
    }
    --splits_left_;
    Pending sides[2];
    children(best, &sides[0], &sides[1]);
    for (Pending& side : sides) side.inherited.constants = 0;
    // Both are looked at before either waits in line: the order of the heap depends on it.
    const Candidate left = look(sides[0]), right = look(sides[1]);
    for (const Candidate& child : {left, right}) {
        frontier_.push_back(child);
        std::push_heap(frontier_.begin(), frontier_.end());
    }
}

}  // namespace fastml
