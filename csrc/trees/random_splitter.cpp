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
          screens_(growth.criterion == CriterionName::squared_error && growth.n_outputs == 1),
          points_(screens_ ? columns_.n : 0) {
        if (!scratch_) throw std::bad_alloc();
    }

    void plant(const Weights& weights, std::uint32_t seed) override {
        Sequential::plant(weights, seed);
        for (std::size_t i = 0; i < points_.size(); ++i) {
            const double w = weights[static_cast<ptrdiff_t>(i)];
            points_[i] = {w, w * growth_.y[i]};
        }
    }
    void begin(ptrdiff_t start, ptrdiff_t end) override {
        Sequential::begin(start, end);
        size_of_sums_ = 0;
        if (screens_)
            for (ptrdiff_t p = start; p < end; ++p) size_of_sums_ += std::fabs(points_[rows_[p]].wy);
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
        const bool hopeless = leaves_too_few(split.position) || (screens_ && is_worse());
        replay_partition(&rows_[start_], left_.data(), m, scratch_);
        if (hopeless) return true;
        criterion_->reset();
        criterion_->update(split.position);
        if (improves(feature, inherited)) {
            if (n_missing == 0)
                split.missing_go_left = split.position - start_ > end_ - split.position;
            best = split;
        }
        return true;
    }

    // Whether the split must be worse than the best one so far, to judge by sums that are added in
    // an order of their own. They are off by no more than m * epsilon of the sum of the |w y|, and
    // so are the exact ones; the proxy, of squares over weights, takes over a few times that.
    bool is_worse() const {
        const ptrdiff_t m = end_ - start_;
        const std::int32_t* rows = &rows_[start_];
        double w = 0, wy = 0;
        for (ptrdiff_t i = 0; i < m; ++i) {
            const Point& point = points_[rows[i]];
            const double side = left_[i];
            w += side * point.w;
            wy += side * point.wy;
        }
        const double rest = criterion_->node_weight() - w;
        const double right = criterion_->node_sums()[0] - wy;
        if (!(w > 0 && rest > 0)) return false;
        const double error = 16 * static_cast<double>(m) * std::numeric_limits<double>::epsilon() *
                             size_of_sums_ * size_of_sums_ * (1 / w + 1 / rest);
        return wy * wy / w + right * right / rest + error < best_proxy_;
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
    const bool screens_;  // squared error of one output: most splits need no exact sums
    std::vector<Point> points_;
    double size_of_sums_ = 0;
};

}  // namespace

std::unique_ptr<Splitter> random_splitter(const Growth& growth) {
    return std::make_unique<RandomSplitter>(growth);
}

}  // namespace fastml
