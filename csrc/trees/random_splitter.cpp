#include <cmath>

#include "trees/sequential.h"

namespace fastml {

using std::ptrdiff_t;

namespace {

class RandomSplitter final : public Sequential {
  public:
    RandomSplitter(const Growth& growth, const Weights& weights, std::uint32_t seed)
        : Sequential(growth, weights, seed), values_(rows_.size()) {}

  private:
    bool try_feature(ptrdiff_t feature, const Inherited& inherited, Split& best) override {
        const float* x = columns_.raw + feature * columns_.n;
        float low = std::numeric_limits<float>::infinity(), high = -low;
        ptrdiff_t n_missing = 0;
        for (ptrdiff_t p = start_; p < end_; ++p) {
            const float value = values_[p] = x[rows_[p]];
            n_missing += std::isnan(value);
            low = value < low ? value : low;
            high = value > high ? value : high;
        }
        if (n_missing == end_ - start_) return false;
        if (n_missing == 0 && high <= low + near_value) return false;

        Split split{end_};
        split.feature = feature;
        split.threshold = random_.uniform(low, high);
        const bool missing_left = n_missing > 0 && random_.integer(0, 2);
        if (split.threshold == high) split.threshold = low;
        split.position = divide([&](ptrdiff_t p) {
            return std::isnan(values_[p]) ? missing_left : values_[p] <= split.threshold;
        });
        const ptrdiff_t n_left = split.position - start_, n_right = end_ - split.position;
        if (leaves_too_few(split.position)) return true;
        criterion_->reset();
        criterion_->update(split.position);
        if (improves(feature, inherited)) {
            split.missing_go_left = n_missing ? missing_left : n_left > n_right;
            best = split;
        }
        return true;
    }

    void exchange(ptrdiff_t a, ptrdiff_t b) override {
        std::swap(rows_[a], rows_[b]);
        std::swap(values_[a], values_[b]);
    }

    bool must_partition(const Split& best, ptrdiff_t last_feature) const override {
        return best.feature != last_feature;
    }
    void partition(const Split& split) override {
        const float* x = columns_.raw + split.feature * columns_.n;
        for (ptrdiff_t p = start_; p < end_; ++p) values_[p] = x[rows_[p]];
        divide([&](ptrdiff_t p) {
            return std::isnan(values_[p]) ? split.missing_go_left : values_[p] <= split.threshold;
        });
    }

    std::vector<float> values_;
};

}  // namespace

std::unique_ptr<Splitter> random_splitter(const Growth& growth, const Weights& weights,
                                          std::uint32_t seed) {
    return std::make_unique<RandomSplitter>(growth, weights, seed);
}

}  // namespace fastml
