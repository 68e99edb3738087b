#include <cmath>

#include "trees/replay.h"
#include "trees/search.h"
#include "trees/sequential.h"

namespace fastml {

using std::ptrdiff_t;

namespace {

class RandomSplitter final : public Sequential {
  public:
    explicit RandomSplitter(const Growth& growth)
        : Sequential(growth), values_(columns_.n), left_(columns_.n), scratch_(columns_.n),
          kernels_(search_kernels()),
          adds_itself_(growth.criterion == CriterionName::squared_error && growth.n_outputs == 1 &&
                       !growth.monotonic),
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

  private:
    struct Point {
        double w, wy;
    };

    bool try_feature(ptrdiff_t feature, const Inherited& inherited, Split& best) override {
        const ptrdiff_t m = end_ - start_;
        const std::int32_t* rows = &rows_[start_];
        const float* x = columns_.raw + feature * columns_.n;
        for (ptrdiff_t i = 0; i < m; ++i) values_[i] = x[rows[i]];
        float low, high;
        const ptrdiff_t n_missing = kernels_.value_range(values_.data(), m, &low, &high);
        if (n_missing == m || (n_missing == 0 && high <= low + near_value)) return false;

        Split split{end_};
        split.feature = feature;
        split.threshold = random_.uniform(low, high);
        split.missing_go_left = n_missing > 0 && random_.integer(0, 2);
        if (split.threshold == high) split.threshold = low;
        split.position = start_ + kernels_.side(values_.data(), m, round_down(split.threshold),
                                                split.missing_go_left, left_.data());
        replay_partition(&rows_[start_], left_.data(), m, scratch_);
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
    // The same, as the criterion of squared error would add up.
    bool improves(ptrdiff_t position) {
        const double total_w = criterion_->node_weight(), total = criterion_->node_sums()[0];
        double w = 0, left = 0;
        if (position - start_ <= end_ - position) {
            for (ptrdiff_t p = start_; p < position; ++p) {
                w += points_[rows_[p]].w;
                left += points_[rows_[p]].wy;
            }
        } else {
            w = total_w;
            left = total;
            for (ptrdiff_t p = end_ - 1; p >= position; --p) {
                w -= points_[rows_[p]].w;
                left -= points_[rows_[p]].wy;
            }
        }
        const double rest = total_w - w, right = total - left;
        if (w < growth_.min_weight_leaf || rest < growth_.min_weight_leaf) return false;
        const double proxy = left * left / w + right * right / rest;
        if (!(proxy > best_proxy_)) return false;
        best_proxy_ = proxy;
        return true;
    }

    bool must_partition(const Split& best, ptrdiff_t last_feature) const override {
        return best.feature != last_feature;
    }
    void partition(const Split& split) override {
        const ptrdiff_t m = end_ - start_;
        const float* x = columns_.raw + split.feature * columns_.n;
        for (ptrdiff_t i = 0; i < m; ++i) values_[i] = x[rows_[start_ + i]];
        kernels_.side(values_.data(), m, round_down(split.threshold), split.missing_go_left,
                      left_.data());
        replay_partition(&rows_[start_], left_.data(), m, scratch_);
    }

    std::vector<float> values_;
    std::vector<std::uint8_t> left_;
    ReplayScratch scratch_;
    const SearchKernels& kernels_;
    const bool adds_itself_;
    std::vector<Point> points_;
};

}  // namespace

std::unique_ptr<Splitter> random_splitter(const Growth& growth) {
    return std::make_unique<RandomSplitter>(growth);
}

}  // namespace fastml
