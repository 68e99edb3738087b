#pragma once
// Nodes of few rows whose random splits are by squared error or Poisson deviance, in scikit-learn's
// order of rows. A block of rows is taken once; in nodes below only the order of their numbers changes.
#include <algorithm>
#include <vector>

#include "trees/deviance.h"
#include "trees/random_few.h"
#include "trees/screen.h"
#include "trees/search.h"
#include "trees/splitter.h"

namespace fastml {

class FewReplay {
  public:
    explicit FewReplay(const Growth& growth)
        : growth_(growth),
          score_(growth.criterion == CriterionName::poisson ? search_kernels().poisson : nullptr),
          trials_(*growth.columns), orders_(growth.columns->n + few), present_(growth.columns->n) {}

    void plant(double tree_weight) {
        tree_weight_ = tree_weight;
        block_end_ = 0;
    }
    // Starts the node of `rows`; points are by row.
    void begin(std::ptrdiff_t start, std::ptrdiff_t end, const std::int32_t* rows,
               const Point* points) {
        start_ = start;
        end_ = end;
        if (start < block_start_ || end > block_end_) take(rows, points);
        std::copy_n(&orders_[start], few, order_);
        w_ = wy_ = wyy_ = 0;
        for (std::ptrdiff_t i = 0; i < end - start; ++i) {
            const std::uint8_t row = order_[i];
            w_ += sums_.w[row];
            wy_ += sums_.wy[row];
            wyy_ += sums_.wyy[row];
        }
    }
    double weight() const { return w_; }
    double impurity() const {
        return score_ ? deviance(0, end_ - start_, wy_, w_) : variance(wyy_, wy_, w_);
    }
    double value() const { return wy_ / w_; }

    Split split(Xorshift& random, FeatureDraw& draw, Inherited& inherited) {
        const std::uint32_t present = present_[start_];
        const std::ptrdiff_t m = end_ - start_;
        const FewNode node{m, w_, wy_, growth_.min_samples_leaf, growth_.min_weight_leaf};
        inherited.constants = trials_.search(
            random, draw, inherited.constants, present, m, [&](const FewSides& sides) {
                return score_ ? choose(sides, node) : replay_sides(sides, sums_, node, order_);
            });
        Split split{end_};
        if (!trials_.has_found()) return split;
        const FewSides& side = trials_.side();
        if (!trials_.is_last()) replay_side(side, m, order_);
        const std::uint32_t left = left_few(side, present);
        std::ptrdiff_t n_left = 0;
        for (std::ptrdiff_t i = 0; i < m; ++i) n_left += left >> order_[i] & 1;
        trials_.set(split, start_, n_left, m);
        std::copy_n(order_, m, &orders_[start_]);
        present_[start_] = static_cast<std::uint16_t>(left);
        present_[split.position] = static_cast<std::uint16_t>(present & ~left);
        evaluate(n_left, inherited, split);
        return split;
    }
    // Where the rows are, of the node.
    void put_back(std::int32_t* rows) const {
        for (std::ptrdiff_t i = 0; i < end_ - start_; ++i) rows[i] = trials_.block.rows[order_[i]];
    }

  private:
    void take(const std::int32_t* rows, const Point* points) {
        const std::ptrdiff_t m = end_ - start_;
        trials_.block.take(rows, m);
        for (std::ptrdiff_t i = 0; i < m; ++i) {
            const std::int32_t row = rows[i];
            orders_[start_ + i] = static_cast<std::uint8_t>(i);
            sums_.w[i] = points[row].w;
            sums_.wy[i] = points[row].wy;
            sums_.wyy[i] = points[row].wy * growth_.y[row];
            targets_[i] = growth_.y[row];
        }
        present_[start_] = static_cast<std::uint16_t>((1u << m) - 1);
        block_start_ = start_;
        block_end_ = end_;
    }
    // By deviance.
    FewChoice choose(const FewSides& sides, const FewNode& node) {
        constexpr int most = FewSides::most;
        alignas(64) double w[most], left[most];
        double right[most], proxies[most];
        replay_sums(sides, sums_, node, order_, w, left);
        for (int k = 0; k < most; ++k) right[k] = wy_ - left[k];
        const double best = score_(w, left, right, sides.count, w_, node.least_weight, proxies);
        return {best, static_cast<int>(std::find(proxies, proxies + sides.count, best) - proxies)};
    }
    // As the criterion would.
    void evaluate(std::ptrdiff_t n_left, const Inherited& inherited, Split& split) const {
        const std::ptrdiff_t m = end_ - start_;
        double w = 0, wy = 0, wyy = 0;
        if (2 * n_left <= m) {
            for (std::ptrdiff_t i = 0; i < n_left; ++i) {
                w += sums_.w[order_[i]];
                wy += sums_.wy[order_[i]];
            }
        } else {
            w = w_;
            wy = wy_;
            for (std::ptrdiff_t i = m - 1; i >= n_left; --i) {
                w -= sums_.w[order_[i]];
                wy -= sums_.wy[order_[i]];
            }
        }
        const double rest = w_ - w;
        if (score_) {
            split.left_impurity = deviance(0, n_left, wy, w);
            split.right_impurity = deviance(n_left, m, wy_ - wy, rest);
        } else {
            for (std::ptrdiff_t i = 0; i < n_left; ++i) wyy += sums_.wyy[order_[i]];
            split.left_impurity = variance(wyy, wy, w);
            split.right_impurity = variance(wyy_ - wyy, wy_ - wy, rest);
        }
        split.improvement =
            (w_ / tree_weight_) * (inherited.impurity - (rest / w_ * split.right_impurity) -
                                   (w / w_ * split.left_impurity));
    }
    static double variance(double wyy, double wy, double w) {
        const double mean = wy / w;
        return wyy / w - mean * mean;
    }

    // Of rows [begin, end) of the order, whose sums these are.
    double deviance(std::ptrdiff_t begin, std::ptrdiff_t end, double wy, double w) const {
        if (wy <= no_target) return std::numeric_limits<double>::infinity();
        const double mean = wy / w;
        double loss = 0;
        for (std::ptrdiff_t i = begin; i < end; ++i)
            loss += sums_.w[order_[i]] * deviance_term(targets_[order_[i]], mean);
        return loss / w;
    }

    const Growth& growth_;
    const SearchKernels::Score score_;  // null: squared error
    FewTrials trials_;
    FewSums sums_ = {};
    double targets_[few] = {};
    alignas(16) std::uint8_t order_[few] = {};
    std::vector<std::uint8_t> orders_;    // by place: numbers in the block
    std::vector<std::uint16_t> present_;  // by start: which rows of the block a node has
    std::ptrdiff_t start_ = 0, end_ = 0, block_start_ = 0, block_end_ = 0;
    double w_ = 0, wy_ = 0, wyy_ = 0, tree_weight_ = 0;
};

}  // namespace fastml
