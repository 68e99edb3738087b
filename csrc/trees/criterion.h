#pragma once
// Impurities, added up row by row in the order and with the operations of scikit-learn's criteria,
// so that every bit of a tree is the same.
#include <memory>

#include "trees/tree.h"

namespace fastml {

// A node's rows [start, end) and a position in them: rows before it would go to the left child.
class Criterion {
  public:
    Criterion(const Growth& growth, const std::int32_t* rows) : growth_(growth), rows_(rows) {}
    virtual ~Criterion() = default;

    virtual void weigh(const Weights& weights);  // starts a tree
    // Starts a node: adds up rows [start, end) and takes the position to start.
    virtual void init(std::ptrdiff_t start, std::ptrdiff_t end) = 0;
    virtual void reset() = 0;                          // position to start, after rows were moved
    virtual void update(std::ptrdiff_t position) = 0;  // forward only
    // The same for one position alone, after which none but it is asked about.
    virtual void settle(std::ptrdiff_t position) {
        reset();
        update(position);
    }
    virtual double impurity() const = 0;
    virtual void children_impurity(double* left, double* right) const = 0;
    // Larger is better; its order among the splits of a node is that of the improvement.
    virtual double proxy() const;
    virtual void value(double* out) const = 0;  // (n_outputs, max_n_classes)
    virtual void clip(double* value, double lower, double upper) const;
    // For monotonic constraints: one output, and two classes at most.
    virtual double left_value() const = 0;
    virtual double right_value() const = 0;
    virtual double middle_value() const = 0;

    double improvement(double parent, double left, double right) const {
        return (node_weight_ / total_weight_) * (parent - (right_weight_ / node_weight_ * right) -
                                                 (left_weight_ / node_weight_ * left));
    }
    bool is_monotonic(int direction, double lower, double upper) const {
        const double left = left_value(), right = right_value();
        return left >= lower && right >= lower && left <= upper && right <= upper &&
               (left - right) * direction <= 0;
    }
    virtual const double* node_sums() const { return nullptr; }  // as value() before dividing
    double node_weight() const { return node_weight_; }
    double left_weight() const { return left_weight_; }
    double right_weight() const { return right_weight_; }

  protected:
    const double* target(std::ptrdiff_t position) const {
        return growth_.y + rows_[position] * growth_.n_outputs;
    }
    double weight(std::ptrdiff_t position) const { return weights_[rows_[position]]; }

    const Growth& growth_;
    Weights weights_{nullptr, nullptr};
    const std::int32_t* rows_;
    std::ptrdiff_t start_ = 0, end_ = 0, position_ = 0;
    double total_weight_ = 0, node_weight_ = 0, left_weight_ = 0, right_weight_ = 0;
};

// Throws std::bad_alloc. `growth` and `rows` stay the caller's.
std::unique_ptr<Criterion> make_criterion(const Growth& growth, const std::int32_t* rows);
std::unique_ptr<Criterion> absolute_error(const Growth& growth, const std::int32_t* rows);

}  // namespace fastml
