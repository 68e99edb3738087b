#pragma once
#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "trees/criterion.h"
#include "trees/replay.h"
#include "trees/splitter.h"

namespace fastml {

// A splitter that keeps rows in scikit-learn's order and adds them up in that order.
class Sequential : public Splitter {
  public:
    explicit Sequential(const Growth& growth)
        : growth_(growth), columns_(*growth.columns), random_(0),
          draw_(columns_.d, growth.max_features), rows_(columns_.n + row_slack),
          criterion_(make_criterion(growth, rows_.data())) {
        if (!draw_) throw std::bad_alloc();
    }

    void plant(const Weights& weights, std::uint32_t seed) override {
        n_rows_ = 0;
        for (std::ptrdiff_t i = 0; i < columns_.n; ++i)
            if (weights[i] != 0) rows_[n_rows_++] = static_cast<std::int32_t>(i);
        random_ = Xorshift(seed);
        draw_.reset();
        criterion_->weigh(weights);
    }
    std::ptrdiff_t n_rows() const override { return n_rows_; }
    void begin(std::ptrdiff_t start, std::ptrdiff_t end) override {
        start_ = start;
        end_ = end;
        criterion_->init(start, end);
    }
    double weight() const override { return criterion_->node_weight(); }
    double impurity() const override { return criterion_->impurity(); }
    void value(double* out) const override { criterion_->value(out); }
    void clip(double* value, double lower, double upper) const override {
        criterion_->clip(value, lower, upper);
    }
    double middle_value() const override { return criterion_->middle_value(); }

    Split split(Inherited& inherited) override {
        Split best{end_};
        best_proxy_ = -std::numeric_limits<double>::infinity();
        std::ptrdiff_t last = -1;
        const std::ptrdiff_t constants =
            draw_.each(random_, inherited.constants, [&](std::ptrdiff_t feature) {
                last = feature;
                return try_feature(feature, inherited, best);
            });
        finish(best);
        if (best.position < end_) {
            if (must_partition(best, last)) partition(best);
            evaluate(inherited, best);
        }
        inherited.constants = constants;
        return best;
    }

  protected:
    // Improves on `best`; false if the feature is constant in the node.
    virtual bool try_feature(std::ptrdiff_t feature, const Inherited& inherited, Split& best) = 0;
    virtual void finish(Split&) {}  // after the last feature
    virtual bool must_partition(const Split& best, std::ptrdiff_t last_feature) const = 0;
    virtual void partition(const Split& split) = 0;

    // The split's rows have been moved.
    void evaluate(const Inherited& inherited, Split& split) {
        criterion_->settle(split.position);
        criterion_->children_impurity(&split.left_impurity, &split.right_impurity);
        split.improvement =
            criterion_->improvement(inherited.impurity, split.left_impurity, split.right_impurity);
    }

    // Whether rows [start, position) to the left are a better split; the criterion is at position.
    bool improves(std::ptrdiff_t feature, const Inherited& inherited) {
        const int direction = growth_.monotonic ? growth_.monotonic[feature] : 0;
        if (direction && !criterion_->is_monotonic(direction, inherited.lower, inherited.upper))
            return false;
        if (criterion_->left_weight() < growth_.min_weight_leaf ||
            criterion_->right_weight() < growth_.min_weight_leaf)
            return false;
        const double proxy = criterion_->proxy();
        if (!(proxy > best_proxy_)) return false;
        best_proxy_ = proxy;
        return true;
    }
    bool leaves_too_few(std::ptrdiff_t position) const {
        return position - start_ < growth_.min_samples_leaf ||
               end_ - position < growth_.min_samples_leaf;
    }

    const Growth& growth_;
    const Columns& columns_;
    Xorshift random_;
    FeatureDraw draw_;
    std::vector<std::int32_t> rows_;
    std::unique_ptr<Criterion> criterion_;
    std::ptrdiff_t n_rows_ = 0;
    std::ptrdiff_t start_ = 0, end_ = 0;
    double best_proxy_ = 0;
};

}  // namespace fastml
