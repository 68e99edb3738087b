#pragma once
// The search for a node's best split.
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>

#include "trees/draw.h"
#include "trees/tree.h"

namespace fastml {

struct Split {
    std::ptrdiff_t
        position;  // of the first row of the right child; the node's end if there is none
    std::ptrdiff_t feature = 0;
    double threshold = 0;
    double improvement = -std::numeric_limits<double>::infinity();
    double left_impurity = std::numeric_limits<double>::infinity();
    double right_impurity = std::numeric_limits<double>::infinity();
    bool missing_go_left = false;
};

// What a node knows from its parent, and its children from it.
struct Inherited {
    double impurity = std::numeric_limits<double>::infinity();
    std::ptrdiff_t constants = 0;                             // features that do not vary in it
    double lower = -std::numeric_limits<double>::infinity();  // of its value
    double upper = std::numeric_limits<double>::infinity();
};

// Holds a tree's rows; each node is a range of them.
class Splitter {
  public:
    virtual ~Splitter() = default;
    // Starts a tree; the weights stay the caller's.
    virtual void plant(const Weights& weights, std::uint32_t seed) = 0;
    virtual std::ptrdiff_t n_rows() const = 0;  // of positive weight
    // Adds up the node. The rest is about the node that was begun last.
    virtual void begin(std::ptrdiff_t start, std::ptrdiff_t end) = 0;
    virtual double weight() const = 0;
    virtual double impurity() const = 0;
    // Finds the split and moves the rows, left child's first. Sets the constants.
    virtual Split split(Inherited& inherited) = 0;
    // Not ok: what was found last is not to be used.
    virtual Status status() const { return Status::ok; }
    // Which levels go left, if the split is by a categorical feature.
    virtual LevelSet levels() const { return {}; }
    virtual void value(double* out) const = 0;
    virtual void clip(double* value, double lower, double upper) const = 0;
    virtual double middle_value() const = 0;  // of the split's children
};

// The largest float that is not above x: floats compare with either alike. Branches here would be
// guessed wrong as often as not, at the cost of a small node.
inline float round_down(double x) {
    const auto near = static_cast<float>(x);
    std::int32_t bits;
    std::memcpy(&bits, &near, sizeof bits);
    const std::int32_t above = near > x;
    const std::int32_t steps = above + (above & (bits == 0));  // past -0
    const std::int32_t order = (bits ^ (bits >> 31 & INT32_MAX)) - steps;
    bits = order ^ (order >> 31 & INT32_MAX);
    float below;
    std::memcpy(&below, &bits, sizeof below);
    return below;
}

// Targets are whole multiples of 2 to this power; of `no_grid` if they are of no such one that is
// less fine, or are not for squared error.
constexpr int no_grid = -27;
int grid_of_targets(const Growth& growth);

// Whether the sums that the criterion needs are exact in double precision, in any order; the growth has
// its grid.
bool sums_are_exact(const Growth& growth, const Weights& weights);

// These may throw std::bad_alloc; `growth` stays the caller's. The exact ones need exact sums; the
// others take everything, and keep to scikit-learn's order of rows and of additions.
std::unique_ptr<Splitter> exact_best_splitter(const Growth& growth);
std::unique_ptr<Splitter> exact_random_splitter(const Growth& growth);
std::unique_ptr<Splitter> best_splitter(const Growth& growth);
std::unique_ptr<Splitter> sparse_best_splitter(const Growth& growth);
std::unique_ptr<Splitter> random_splitter(const Growth& growth);

}  // namespace fastml
