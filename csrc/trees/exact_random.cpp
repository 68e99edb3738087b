// Random splits where sums are exact in any order.
#include "trees/exact.h"

namespace fastml {

using std::ptrdiff_t;

namespace {

template <class Tally> class RandomExact final : public Exact<Tally> {
  public:
    explicit RandomExact(const Growth& growth)
        : Exact<Tally>(growth), values_(columns_.n + row_slack) {}

    Split split(Inherited& inherited) override {
        Split best{end_};
        best_proxy_ = -std::numeric_limits<double>::infinity();
        inherited.constants = draw_.each(random_, inherited.constants, [&](ptrdiff_t feature) {
            return try_feature(feature, best);
        });
        if (best.position < end_ && tally_.has_few()) {
            this->carry_out_few(best_left_, inherited.impurity, best);
        } else if (best.position < end_) {
            float low, high;
            gather(best.feature, &low, &high);
            side(best);
            best.position = this->divide();
            this->evaluate(inherited.impurity, best);
        }
        return best;
    }

  private:
    using Exact<Tally>::growth_;
    using Exact<Tally>::columns_;
    using Exact<Tally>::kernels_;
    using Exact<Tally>::random_;
    using Exact<Tally>::draw_;
    using Exact<Tally>::tally_;
    using Exact<Tally>::total_;
    using Exact<Tally>::left_;
    using Exact<Tally>::right_;
    using Exact<Tally>::start_;
    using Exact<Tally>::end_;
    using Exact<Tally>::size;
    using Exact<Tally>::sides_;

    // The node's values, how many of them are missing, and the range of the others.
    ptrdiff_t gather(ptrdiff_t feature, float* low, float* high) {
        const float* x = columns_.raw + feature * columns_.n;
        return kernels_.gather_range(x, this->rows(), size(), values_.data(), low, high);
    }
    // Which rows go left, of the feature gathered last, and how many.
    ptrdiff_t side(const Split& split) {
        return kernels_.side(values_.data(), size(), round_down(split.threshold),
                             split.missing_go_left, sides_.data());
    }

    bool try_feature(ptrdiff_t feature, Split& best) {
        float low, high;
        const ptrdiff_t n_missing = gather(feature, &low, &high);
        if (n_missing == size() || (n_missing == 0 && high <= low + near_value)) return false;

        Split split{end_};
        split.feature = feature;
        split.threshold = random_.uniform(low, high);
        split.missing_go_left = n_missing > 0 && random_.integer(0, 2);
        if (split.threshold == high) split.threshold = low;
        if (tally_.has_few()) {
            const FewSide side =
                side_few(values_.data(), size(), round_down(split.threshold), split.missing_go_left,
                         tally_.few_points(), growth_.min_samples_leaf, this->least_);
            if (!(side.proxy > best_proxy_)) return true;
            best_left_ = side.left;
            take(split, side.proxy, side.n_left, n_missing, best);
            return true;
        }
        const ptrdiff_t n_left = side(split);
        const ptrdiff_t n_right = size() - n_left;
        if (n_left < growth_.min_samples_leaf || n_right < growth_.min_samples_leaf) return true;
        tally_.sum_left(sides_.data(), this->tags(), size(), left_);
        tally_.subtract(total_, left_, right_);
        if (tally_.weight(left_) < this->least_ || tally_.weight(right_) < this->least_)
            return true;
        const double proxy = tally_.proxy(left_, right_);
        if (proxy > best_proxy_) take(split, proxy, n_left, n_missing, best);
        return true;
    }
    void take(const Split& split, double proxy, ptrdiff_t n_left, ptrdiff_t n_missing,
              Split& best) {
        best = split;
        best.position = start_ + n_left;
        if (n_missing == 0) best.missing_go_left = 2 * n_left > size();
        best_proxy_ = proxy;
    }

    std::vector<float> values_;
    double best_proxy_ = 0;
    std::uint32_t best_left_ = 0;  // its rows, if there are few; see exact_few.h
};

}  // namespace

std::unique_ptr<Splitter> exact_random_splitter(const Growth& growth) {
    return make_exact<RandomExact>(growth);
}

}  // namespace fastml
