// Random splits where sums are exact in any order.
#include "trees/exact.h"
#include "trees/random_few.h"

namespace fastml {

using std::ptrdiff_t;

namespace {

template <class Tally> class RandomExact final : public Exact<Tally> {
  public:
    explicit RandomExact(const Growth& growth)
        : Exact<Tally>(growth), values_(columns_.n + row_slack), trials_(columns_),
          present_(columns_.n) {}

    void plant(const Weights& weights, std::uint32_t seed) override {
        Exact<Tally>::plant(weights, seed);
        block_end_ = 0;
    }
    void begin(ptrdiff_t start, ptrdiff_t end) override {
        if (start >= block_start_ && end <= block_end_) {
            start_ = start;
            end_ = end;
            tally_.enter_part(present_[start], total_);
            weight_ = tally_.weight(total_);
            return;
        }
        Exact<Tally>::begin(start, end);
        block_end_ = 0;
        if (size() == 1 || !tally_.has_few()) return;
        trials_.block.take(this->rows(), size());
        block_start_ = start;
        block_end_ = end;
        present_[start] = static_cast<std::uint16_t>((1u << size()) - 1);
    }

    Split split(Inherited& inherited) override {
        if (block_end_) return split_few(inherited);
        Split best{end_};
        best_proxy_ = -std::numeric_limits<double>::infinity();
        inherited.constants = draw_.each(random_, inherited.constants, [&](ptrdiff_t feature) {
            return try_feature(feature, best);
        });
        if (best.position < end_) {
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
    using Exact<Tally>::weight_;
    using Exact<Tally>::size;
    using Exact<Tally>::sides_;

    // Of a node in the block, whose rows stay where they are: present_ tells which are on what side.
    Split split_few(Inherited& inherited) {
        const std::uint32_t present = present_[start_];
        const FewPart part{present, size(), trials_.block.size, growth_.min_samples_leaf,
                           this->least_};
        inherited.constants = trials_.search(
            random_, draw_, inherited.constants, present, size(),
            [&](const FewSides& sides) { return choose_side(sides, part, tally_.few_points()); });
        Split best{end_};
        if (!trials_.has_found()) return best;
        const std::uint32_t left = left_few(trials_.side(), present);
        ptrdiff_t n_left = 0;
        for (ptrdiff_t i = 0; i < few; ++i) n_left += left >> i & 1;
        trials_.set(best, start_, n_left, size());
        if (growth_.max_leaf_nodes >= 0) {  // the children are split after nodes of other blocks
            this->carry_out_few(left, inherited.impurity, best);
            block_end_ = 0;
            return best;
        }
        present_[start_] = static_cast<std::uint16_t>(left);
        present_[best.position] = static_cast<std::uint16_t>(present & ~left);
        tally_.sum_few(left, left_);
        this->evaluate_left(inherited.impurity, best);
        return best;
    }

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
        const ptrdiff_t n_left = side(split), n_right = size() - n_left;
        if (n_left < growth_.min_samples_leaf || n_right < growth_.min_samples_leaf) return true;
        tally_.sum_left(sides_.data(), this->tags(), size(), left_);
        tally_.subtract(total_, left_, right_);
        if (tally_.weight(left_) < this->least_ || tally_.weight(right_) < this->least_)
            return true;
        const double proxy = tally_.proxy(left_, right_);
        if (proxy > best_proxy_) {
            best = split;
            best.position = start_ + n_left;
            if (n_missing == 0) best.missing_go_left = n_left > n_right;
            best_proxy_ = proxy;
        }
        return true;
    }

    std::vector<float> values_;
    double best_proxy_ = 0;
    FewTrials trials_;
    ptrdiff_t block_start_ = 0, block_end_ = 0;  // its place; it ends at zero if there is none
    std::vector<std::uint16_t> present_;         // by start: which rows of the block a node has
};

}  // namespace

std::unique_ptr<Splitter> exact_random_splitter(const Growth& growth) {
    return make_exact<RandomExact>(growth);
}

}  // namespace fastml
