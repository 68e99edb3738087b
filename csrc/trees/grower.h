#pragma once
// Which node is split next.
#include <memory>
#include <vector>

#include "trees/splitter.h"

namespace fastml {

// Grows a tree step by step, so that a long fit can be stopped between steps. May throw
// std::bad_alloc.
class Grower {
  public:
    // The splitter has been planted. The tree goes to `out`, which is empty; both stay the caller's.
    Grower(const Growth& growth, Splitter& splitter, Nodes& out);
    // Works on for about `rows` rows' worth of nodes; whether the tree is complete.
    bool advance(std::ptrdiff_t rows);
    Status status() const { return splitter_.status(); }
    std::ptrdiff_t max_depth() const { return max_depth_; }

  private:
    struct Pending {  // a node with its place, not looked at yet
        std::ptrdiff_t start, end, depth, parent;
        bool is_left;
        Inherited inherited;
    };
    struct Candidate {  // a node whose split is known, in best-first growth
        std::ptrdiff_t node, start, end, depth;
        bool is_leaf;
        Split split;
        Inherited inherited;
        double middle_value;
        bool operator<(const Candidate& other) const {
            return split.improvement < other.split.improvement;
        }
    };
    void children(const Candidate& parent, Pending* left, Pending* right) const;
    Candidate look(const Pending& pending);
    std::ptrdiff_t add(const Pending& pending, bool is_leaf, const Split& split);
    void step_depth_first();
    void step_best_first();

    const Growth& growth_;
    Splitter& splitter_;
    Nodes& out_;
    std::ptrdiff_t max_depth_ = -1;
    std::vector<Pending> stack_;
    std::vector<Candidate> frontier_;
    std::ptrdiff_t splits_left_;
    std::ptrdiff_t done_ = 0;  // rows looked at
};

}  // namespace fastml
