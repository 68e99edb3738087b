#include <algorithm>
#include <cmath>
#include <new>

#include "trees/criterion.h"
#include "trees/replay.h"
#include "trees/splitter.h"

namespace fastml {

using std::ptrdiff_t;

namespace {

class Sequential : public Splitter {
  public:
    Sequential(const Growth& growth, const Weights& weights, std::uint32_t seed)
        : growth_(growth), columns_(*growth.columns), random_(seed),
          draw_(columns_.d, growth.max_features), rows_(columns_.n), spare_(columns_.n) {
        if (!draw_) throw std::bad_alloc();
        ptrdiff_t kept = 0;
        for (ptrdiff_t i = 0; i < columns_.n; ++i)
            if (weights[i] != 0) rows_[kept++] = static_cast<std::int32_t>(i);
        rows_.resize(kept);
        criterion_ = make_criterion(growth, weights, rows_.data());
        criterion_->weigh(columns_.n);
    }

    ptrdiff_t n_rows() const override { return static_cast<ptrdiff_t>(rows_.size()); }
    void begin(ptrdiff_t start, ptrdiff_t end) override {
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
        draw_.start(inherited.constants);
        ptrdiff_t last = -1;
        while (draw_.more()) {
            const ptrdiff_t feature = draw_.next(random_);
            if (feature < 0) continue;
            last = feature;
            if (try_feature(feature, inherited, best))
                draw_.used();
            else
                draw_.constant();
        }
        if (best.position < end_) {
            if (must_partition(best, last)) partition(best);
            criterion_->reset();
            criterion_->update(best.position);
            criterion_->children_impurity(&best.left_impurity, &best.right_impurity);
            best.improvement = criterion_->improvement(inherited.impurity, best.left_impurity,
                                                       best.right_impurity);
        }
        inherited.constants = draw_.finish();
        return best;
    }

  protected:
    // Improves on `best`; false if the feature is constant in the node. draw_.used() must come
    // before further random numbers only in the order of draws, which it does not change.
    virtual bool try_feature(ptrdiff_t feature, const Inherited& inherited, Split& best) = 0;
    virtual bool must_partition(const Split& best, ptrdiff_t last_feature) const = 0;
    virtual void partition(const Split& split) = 0;

    // Whether rows [start, position) to the left are a better split; the criterion is at position.
    bool improves(ptrdiff_t feature, const Inherited& inherited) {
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
    bool leaves_too_few(ptrdiff_t position) const {
        return position - start_ < growth_.min_samples_leaf ||
               end_ - position < growth_.min_samples_leaf;
    }
    // The two-ended partition: what goes right changes places with the last row not looked at.
    template <class GoesLeft> ptrdiff_t divide(GoesLeft goes_left) {
        ptrdiff_t p = start_, end = end_;
        while (p < end) {
            if (goes_left(p))
                ++p;
            else
                exchange(p, --end);
        }
        return end;
    }
    virtual void exchange(ptrdiff_t a, ptrdiff_t b) { std::swap(rows_[a], rows_[b]); }

    const Growth& growth_;
    const Columns& columns_;
    Xorshift random_;
    FeatureDraw draw_;
    std::vector<std::int32_t> rows_, spare_;
    std::unique_ptr<Criterion> criterion_;
    ptrdiff_t start_ = 0, end_ = 0;
    double best_proxy_ = 0;
};

class BestSequential final : public Sequential {
  public:
    BestSequential(const Growth& growth, const Weights& weights, std::uint32_t seed)
        : Sequential(growth, weights, seed), codes_(rows_.size()) {}

  private:
    std::uint32_t code(const Column& column, ptrdiff_t p) const {
        const std::int32_t row = rows_[p];
        switch (column.width) {
            case 1: return static_cast<const std::uint8_t*>(column.codes)[row];
            case 2: return static_cast<const std::uint16_t*>(column.codes)[row];
            default: return static_cast<const std::uint32_t*>(column.codes)[row];
        }
    }

    // Gathers the codes of the node's rows. Rows that miss the value are moved to the end; returns
    // where they begin.
    ptrdiff_t gather(const Column& column) {
        ptrdiff_t end = end_;
        for (ptrdiff_t p = start_; p < end; ++p) {
            if (column.missing) {
                while (end > p && column.is_missing(code(column, end - 1))) --end;
                if (end == p) break;
                if (column.is_missing(code(column, p))) std::swap(rows_[p], rows_[--end]);
            }
            codes_[p] = code(column, p);
        }
        return end;
    }

    bool try_feature(ptrdiff_t feature, const Inherited& inherited, Split& best) override {
        const Column& column = columns_.ranked[feature];
        const ptrdiff_t known = gather(column);
        replay_sort(&codes_[start_], &rows_[start_], known - start_);
        if (known == start_) return false;
        if (known == end_ &&
            column.value(codes_[known - 1]) <= column.value(codes_[start_]) + near_value)
            return false;
        scan(feature, known, inherited, best);
        if (known < end_) {
            std::rotate(&rows_[start_], &rows_[known], rows_.data() + end_);
            std::move_backward(&codes_[start_], &codes_[known], codes_.data() + end_);
            scan_missing_left(feature, end_ - known, inherited, best);
        }
        return true;
    }

    // Rows that miss the value, [known, end), go right.
    void scan(ptrdiff_t feature, ptrdiff_t known, const Inherited& inherited, Split& best) {
        const Column& column = columns_.ranked[feature];
        criterion_->reset();
        for (ptrdiff_t p = start_ + 1; p <= known && p < end_; ++p) {
            if (p < known && !column.apart(codes_[p - 1], codes_[p])) continue;
            if (leaves_too_few(p)) continue;
            criterion_->update(p);
            if (!improves(feature, inherited)) continue;
            best.threshold = p == known ? std::numeric_limits<double>::infinity()
                                        : threshold(column, p);
            best.missing_go_left = known == end_ && p - start_ > end_ - p;
            best.position = p;
            best.feature = feature;
        }
    }

    // The n_missing rows, at the start now, go left.
    void scan_missing_left(ptrdiff_t feature, ptrdiff_t n_missing, const Inherited& inherited,
                           Split& best) {
        const Column& column = columns_.ranked[feature];
        criterion_->reset();
        for (ptrdiff_t p = start_ + n_missing + 1; p < end_; ++p) {
            if (!column.apart(codes_[p - 1], codes_[p]) || leaves_too_few(p)) continue;
            criterion_->update(p);
            if (!improves(feature, inherited)) continue;
            best.threshold = threshold(column, p);
            best.missing_go_left = true;
            best.position = p;
            best.feature = feature;
        }
    }

    // Between two values; the sum of the halves cannot overflow.
    double threshold(const Column& column, ptrdiff_t p) const {
        return column.value(codes_[p - 1]) / 2.0 + column.value(codes_[p]) / 2.0;
    }

    bool must_partition(const Split&, ptrdiff_t) const override { return true; }
    void partition(const Split& split) override {
        const Column& column = columns_.ranked[split.feature];
        divide([&](ptrdiff_t p) {
            const std::uint32_t c = code(column, p);
            return column.missing && column.is_missing(c) ? split.missing_go_left
                                                          : column.value(c) <= split.threshold;
        });
    }

    std::vector<std::uint32_t> codes_;
};

class RandomSequential final : public Sequential {
  public:
    RandomSequential(const Growth& growth, const Weights& weights, std::uint32_t seed)
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

std::unique_ptr<Splitter> sequential_splitter(const Growth& growth, const Weights& weights,
                                              std::uint32_t seed) {
    if (growth.random_splits) return std::make_unique<RandomSequential>(growth, weights, seed);
    return std::make_unique<BestSequential>(growth, weights, seed);
}

}  // namespace fastml
