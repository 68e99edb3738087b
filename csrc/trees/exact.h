#pragma once
// Where sums are exact in any order, rows may be sorted, counted and moved as is quickest, and the
// tree is still scikit-learn's. What is added up is a Tally's affair; see tally.h.
#include <new>
#include <vector>

#include "trees/class_tally.h"
#include "trees/splitter.h"
#include "trees/target_tally.h"

namespace fastml {

// Rows, sums and the end of a search; how splits are found is Derived's affair.
template <class Tally> class Exact : public Splitter {
  public:
    explicit Exact(const Growth& growth)
        : growth_(growth), columns_(*growth.columns), kernels_(search_kernels()), random_(0),
          draw_(columns_.d, growth.max_features), tally_(growth, kernels_), total_(tally_.none()),
          left_(tally_.none()), right_(tally_.none()), rows_(columns_.n + row_slack),
          tags_(columns_.n + row_slack), pairs_(2 * columns_.n + 2 * row_slack),
          sides_(columns_.n + row_slack) {
        if (!draw_) throw std::bad_alloc();
    }

    void plant(const Weights& weights, std::uint32_t seed) override {
        n_rows_ = 0;
        for (std::ptrdiff_t i = 0; i < columns_.n; ++i) {
            const double w = weights[i];
            rows_[n_rows_] = static_cast<std::int32_t>(i);
            tags_[n_rows_] = tally_.tag(growth_, i, w);
            n_rows_ += w != 0;
        }
        random_ = Xorshift(seed);
        draw_.reset();
        least_ = growth_.min_weight_leaf;
        ones_ = !weights.real && !weights.counts;
        if (ones_) least_ = std::max(least_, static_cast<double>(growth_.min_samples_leaf));
        tally_.sum(tags_.data(), n_rows_, total_);
        tree_weight_ = tally_.weight(total_);
    }
    std::ptrdiff_t n_rows() const override { return n_rows_; }
    void begin(std::ptrdiff_t start, std::ptrdiff_t end) override {
        start_ = start;
        end_ = end;
        tally_.enter(tags_.data() + start, end - start, total_);
        weight_ = tally_.weight(total_);
    }
    double weight() const override { return weight_; }
    double impurity() const override { return tally_.impurity(total_, weight_); }
    void value(double* out) const override { tally_.value(total_, weight_, out); }
    // Without monotonic constraints nothing asks for these.
    void clip(double*, double, double) const override {}
    double middle_value() const override { return 0; }

  protected:
    std::ptrdiff_t size() const { return end_ - start_; }
    const std::uint32_t* tags() const { return tags_.data() + start_; }
    const std::int32_t* rows() const { return rows_.data() + start_; }

    // Moves the rows by sides_: one, not zero, for those that go left. Where the others begin.
    std::ptrdiff_t divide() {
        auto* const other = reinterpret_cast<std::uint32_t*>(pairs_.data());
        return start_ + kernels_.move_left(sides_.data(), &rows_[start_], &tags_[start_], size(),
                                           reinterpret_cast<std::int32_t*>(other),
                                           other + pairs_.size());
    }

    // Of a node of few rows; see exact_few.h.
    void carry_out_few(std::uint32_t left, double impurity, Split& split) {
        split.position = start_ + move_few(left, &rows_[start_], &tags_[start_], size());
        tally_.sum_few(left, left_);
        evaluate_left(impurity, split);
    }

    // The split's impurities; its rows have been moved by sides_.
    void evaluate(double impurity, Split& split) {
        if (!tally_.sum_sides(sides_.data(), size(), left_))
            tally_.sum(tags(), split.position - start_, left_);
        evaluate_left(impurity, split);
    }
    // The same, if the left side has been added up.
    void evaluate_left(double impurity, Split& split) {
        tally_.subtract(total_, left_, right_);
        const double w = weight_, left = tally_.weight(left_), right = tally_.weight(right_);
        split.left_impurity = tally_.impurity(left_, left);
        split.right_impurity = tally_.impurity(right_, right);
        split.improvement = (w / tree_weight_) * (impurity - (right / w * split.right_impurity) -
                                                  (left / w * split.left_impurity));
    }

    const Growth& growth_;
    const Columns& columns_;
    const SearchKernels& kernels_;
    Xorshift random_;
    FeatureDraw draw_;
    Tally tally_;
    typename Tally::Sums total_, left_, right_;
    std::vector<std::int32_t> rows_;
    std::vector<std::uint32_t> tags_;
    std::vector<std::uint64_t> pairs_;  // of a row and something else
    std::vector<std::uint8_t> sides_;   // of the node's rows: whether they go left
    std::ptrdiff_t n_rows_ = 0, start_ = 0, end_ = 0;
    double weight_ = 0;  // of the node
    double least_ = 0;   // of a child
    bool ones_ = false;  // all weights are
    double tree_weight_ = 0;
};

// `Search` of the Tally that the criterion takes; see sums_are_exact.
template <template <class> class Search>
std::unique_ptr<Splitter> make_exact(const Growth& growth) {
    if (growth.criterion == CriterionName::squared_error)
        return std::make_unique<Search<TargetTally>>(growth);
    if (growth.max_n_classes <= 2) return std::make_unique<Search<TwoClasses>>(growth);
    if (growth.criterion == CriterionName::entropy)
        return std::make_unique<Search<ManyClasses<EntropySums>>>(growth);
    return std::make_unique<Search<ManyClasses<SquareSums>>>(growth);
}

}  // namespace fastml
