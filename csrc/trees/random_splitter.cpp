#include <cmath>

#include "trees/few_replay.h"
#include "trees/screen.h"
#include "trees/search.h"
#include "trees/sequential.h"
#include "trees/sparse_order.h"

namespace fastml {

using std::ptrdiff_t;

namespace {

// What does not depend on how the features are kept.
class RandomScan : public Sequential {
  public:
    explicit RandomScan(const Growth& growth)
        : Sequential(growth), left_(columns_.n + row_slack), scratch_(columns_.n),
          kernels_(search_kernels()), is_poisson_(growth.criterion == CriterionName::poisson),
          adds_itself_((growth.criterion == CriterionName::squared_error || is_poisson_) &&
                       growth.n_outputs == 1 && !growth.monotonic),
          points_(adds_itself_ ? columns_.n : 0) {
        if (!scratch_) throw std::bad_alloc();
    }

    void plant(const Weights& weights, std::uint32_t seed) override {
        Sequential::plant(weights, seed);
        for (std::size_t i = 0; i < points_.size(); ++i) {
            const double w = weights[static_cast<ptrdiff_t>(i)];
            points_[i] = {w, w * growth_.y[i]};
        }
    }

  protected:
    // Gathers the feature's values: the number of missing ones, and the range of the others.
    virtual ptrdiff_t load(ptrdiff_t feature, float* low, float* high) = 0;
    // Moves the rows; those of the feature loaded last. Returns where the right child's begin.
    virtual ptrdiff_t divide(const Split& split) = 0;

  private:
    bool try_feature(ptrdiff_t feature, const Inherited& inherited, Split& best) override {
        float low, high;
        const ptrdiff_t n_missing = load(feature, &low, &high);
        if (n_missing == end_ - start_ || (n_missing == 0 && high <= low + near_value))
            return false;

        Split split{end_};
        split.feature = feature;
        split.threshold = random_.uniform(low, high);
        split.missing_go_left = n_missing > 0 && random_.integer(0, 2);
        if (split.threshold == high) split.threshold = low;
        split.position = divide(split);
        if (leaves_too_few(split.position)) return true;
        if (adds_itself_ ? !improves(split.position)
                         : !improves(split.position, feature, inherited))
            return true;
        if (n_missing == 0) split.missing_go_left = split.position - start_ > end_ - split.position;
        best = split;
        return true;
    }

    bool improves(ptrdiff_t position, ptrdiff_t feature, const Inherited& inherited) {
        criterion_->settle(position);
        return Sequential::improves(feature, inherited);
    }
    // The same, as these criteria would add up.
    bool improves(ptrdiff_t position) {
        const double total_w = criterion_->node_weight(), total = criterion_->node_sums()[0];
        const ptrdiff_t m = end_ - start_, n_left = position - start_;
        // From the side with fewer rows.
        const bool forward = n_left <= m - n_left;
        const ptrdiff_t count = forward ? n_left : m - n_left;
        const double sign = forward ? 1.0 : -1.0;
        double w = forward ? 0.0 : total_w, left = forward ? 0.0 : total;
        const ptrdiff_t step = forward ? 1 : -1;
        const std::int32_t* row = &rows_[forward ? start_ : end_ - 1];
        for (ptrdiff_t i = 0; i < count; ++i, row += step) {
            w += sign * points_[*row].w;
            left += sign * points_[*row].wy;
        }
        const double rest = total_w - w, right = total - left;
        if (w < growth_.min_weight_leaf || rest < growth_.min_weight_leaf) return false;
        const double proxy = is_poisson_ ? gain_of_deviance(w, left, rest, right)
                                         : left * left / w + right * right / rest;
        if (!(proxy > best_proxy_)) return false;
        best_proxy_ = proxy;
        return true;
    }
    // Most are hopeless, as a logarithm that is nearly right tells.
    double gain_of_deviance(double w, double left, double rest, double right) const {
        constexpr double none = -std::numeric_limits<double>::infinity();
        if (left <= no_target || right <= no_target) return none;
        const double mean_l = left / w, mean_r = right / rest;
        if (std::isnormal(mean_l) && std::isnormal(mean_r) &&
            left * log2_near(mean_l) + right * log2_near(mean_r) + near_error * (left + right) <
                best_proxy_)
            return none;
        return left * (std::log(mean_l) / std::log(2.0)) +
               right * (std::log(mean_r) / std::log(2.0));
    }

  protected:
    bool must_partition(const Split& best, ptrdiff_t last_feature) const override {
        return best.feature != last_feature;
    }
    void partition(const Split& split) override {
        float low, high;
        load(split.feature, &low, &high);
        divide(split);
    }

    std::vector<std::uint8_t> left_;
    ReplayScratch scratch_;
    const SearchKernels& kernels_;
    const bool is_poisson_, adds_itself_;
    std::vector<Point> points_;
};

class DenseRandom final : public RandomScan {
  public:
    explicit DenseRandom(const Growth& growth)
        : RandomScan(growth), values_(columns_.n + row_slack) {
        if (adds_itself_) few_ = std::make_unique<FewReplay>(growth);
    }

    void plant(const Weights& weights, std::uint32_t seed) override {
        RandomScan::plant(weights, seed);
        if (!few_) return;
        double w = 0;
        for (const Point& point : points_) w += point.w;
        few_->plant(w);
    }
    void begin(ptrdiff_t start, ptrdiff_t end) override {
        has_few_ = few_ && end - start <= few;
        if (!has_few_) return RandomScan::begin(start, end);
        start_ = start;
        few_->begin(start, end, &rows_[start], points_.data());
    }
    double weight() const override { return has_few_ ? few_->weight() : RandomScan::weight(); }
    double impurity() const override {
        return has_few_ ? few_->impurity() : RandomScan::impurity();
    }
    void value(double* out) const override {
        if (!has_few_) return RandomScan::value(out);
        *out = few_->value();
    }
    Split split(Inherited& inherited) override {
        if (!has_few_) return RandomScan::split(inherited);
        const Split split = few_->split(random_, draw_, inherited);
        // Best first, the children are split after nodes of other blocks.
        if (growth_.max_leaf_nodes >= 0) few_->put_back(&rows_[start_]);
        return split;
    }

  private:
    ptrdiff_t load(ptrdiff_t feature, float* low, float* high) override {
        const float* x = columns_.raw + feature * columns_.n;
        return kernels_.gather_range(x, &rows_[start_], end_ - start_, values_.data(), low, high);
    }
    ptrdiff_t divide(const Split& split) override {
        const ptrdiff_t m = end_ - start_;
        const float threshold = round_down(split.threshold);
        const ptrdiff_t n_left =
            kernels_.side(values_.data(), m, threshold, split.missing_go_left, left_.data());
        replay_partition(&rows_[start_], left_.data(), m, scratch_);
        return start_ + n_left;
    }

    std::vector<float> values_;
    std::unique_ptr<FewReplay> few_;  // null if the criterion is another
    bool has_few_ = false;
};

class SparseRandom final : public RandomScan {
  public:
    explicit SparseRandom(const Growth& growth)
        : RandomScan(growth), values_(columns_.n + row_slack), order_(rows_) {}

    void plant(const Weights& weights, std::uint32_t seed) override {
        RandomScan::plant(weights, seed);
        order_.plant(n_rows_);
    }
    void begin(ptrdiff_t start, ptrdiff_t end) override {
        RandomScan::begin(start, end);
        order_.begin(start, end);
    }

  private:
    ptrdiff_t load(ptrdiff_t feature, float* low, float* high) override {
        const Entries& entries = columns_.entries[feature];
        const float* const x = columns_.raw + (columns_.by_row ? feature * columns_.n : 0);
        zeros_ = order_.extract(
            entries, columns_.by_row, [&](ptrdiff_t k) { return entries.values[k]; },
            [=](std::int32_t row) { return x[row]; }, 0.0f, values_);
        const bool any_zero = zeros_.begin < zeros_.end;
        *low = *high = any_zero ? 0.0f : values_[start_];
        widen(start_, zeros_.begin, low, high);
        widen(zeros_.end, end_, low, high);
        return 0;
    }
    void widen(ptrdiff_t begin, ptrdiff_t end, float* low, float* high) const {
        for (ptrdiff_t p = begin; p < end; ++p) {
            *low = std::min(*low, values_[p]);
            *high = std::max(*high, values_[p]);
        }
    }
    ptrdiff_t divide(const Split& split) override {
        if (split.threshold == 0) return zeros_.end;
        const bool negative = split.threshold < 0;
        const ptrdiff_t begin = negative ? start_ : zeros_.end,
                        end = negative ? zeros_.begin : end_;
        const ptrdiff_t n_left = kernels_.side(values_.data() + begin, end - begin,
                                               round_down(split.threshold), false, left_.data());
        replay_partition(rows_.data() + begin, left_.data(), end - begin, scratch_);
        order_.settle(begin, end);
        return begin + n_left;
    }

    std::vector<float> values_;
    SparseOrder order_;
    SparseOrder::Zeros zeros_{0, 0};
};

}  // namespace

std::unique_ptr<Splitter> random_splitter(const Growth& growth) {
    if (growth.columns->entries) return std::make_unique<SparseRandom>(growth);
    return std::make_unique<DenseRandom>(growth);
}

}  // namespace fastml
