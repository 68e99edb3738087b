#pragma once
// The tally of targets, for squared error.
#include <algorithm>
#include <cmath>
#include <vector>

#include "trees/exact_few.h"
#include "trees/queue.h"
#include "trees/random_few.h"
#include "trees/search.h"
#include "trees/splitter.h"
#include "trees/tally.h"
#include "trees/tree.h"

namespace fastml {

// Squared error's sums, of targets and weights on a grid that is coarse enough. A tag is the row.
class TargetTally {
  public:
    struct Sums {
        double w = 0, wy = 0, wyy = 0;
    };
    using Counter = double;
    static constexpr std::ptrdiff_t counters = 2;
    static constexpr bool scans = false;

    TargetTally(const Growth& growth, const SearchKernels& kernels)
        : kernels_(kernels), points_(growth.columns->n + 1), weights_(growth.columns->n),
          targets_(growth.columns->n), squares_(growth.columns->n) {}

    // All products are whole multiples of a power of two, and their sums below 2^53 of it.
    static bool fits(const Growth& growth, const Weights& weights) {
        if (growth.grid == no_grid) return false;
        double w = 0, wyy = 0;
        for (std::ptrdiff_t i = 0; i < growth.columns->n; ++i) {
            const double y = growth.y[i], here = weights[i];
            if (!(here >= 0) || here != std::floor(here)) return false;
            w += here;
            wyy += here * y * y;
        }
        // |sum of w y| <= the larger of the sums of w and of w y^2 on a grid that is no coarser.
        return w < most_weight && std::max(w, wyy) < std::ldexp(1.0, 52 + 2 * growth.grid);
    }
    static int grid(const Growth& growth) {
        int lowest = 0;  // bit that is in use, of any target
        double scale = 1;
        for (std::ptrdiff_t i = 0; i < growth.columns->n && lowest > no_grid; ++i)
            while (lowest > no_grid && growth.y[i] * scale != std::floor(growth.y[i] * scale)) {
                --lowest;
                scale *= 2;
            }
        return lowest;
    }
    std::uint32_t tag(const Growth& growth, std::ptrdiff_t row, double w) {
        points_[row] = {w, w * growth.y[row], w * growth.y[row] * growth.y[row]};
        return static_cast<std::uint32_t>(row);
    }
    Sums none() const { return {}; }
    // Adds up a node. Of more than few rows sum_left will be asked about these.
    void enter(const std::uint32_t* tags, std::ptrdiff_t m, Sums& sums) {
        has_few_ = m <= few;
        if (has_few_) return enter_few(tags, m, sums);
        for (std::ptrdiff_t i = 0; i < m; ++i) {
            const Sums& point = points_[tags[i]];
            weights_[i] = point.w;
            targets_[i] = point.wy;
            squares_[i] = point.wyy;
        }
        sum_sides(nullptr, m, sums);
    }
    // Of those that are `left`, or of all if it is null, in the order in which the node was entered;
    // whether it has more than few.
    bool sum_sides(const std::uint8_t* left, std::ptrdiff_t m, Sums& sums) const {
        if (has_few_) return false;
        sum_left(left, nullptr, m, sums);
        sums.wyy = kernels_.sum_left(left, squares_.data(), m);
        return true;
    }
    double weight(const Sums& sums) const { return sums.w; }
    double impurity(const Sums& sums, double) const {
        const double mean = sums.wy / sums.w;
        return sums.wyy / sums.w - mean * mean;
    }
    void value(const Sums& sums, double, double* out) const { *out = sums.wy / sums.w; }
    void subtract(const Sums& total, const Sums& left, Sums& right) const {
        right = {total.w - left.w, total.wy - left.wy, total.wyy - left.wyy};
    }
    double proxy(const Sums& left, const Sums& right) const {
        return left.wy * left.wy / left.w + right.wy * right.wy / right.w;
    }
    void sum(const std::uint32_t* tags, std::ptrdiff_t m, Sums& sums) const {
        Sums all;
        for (std::ptrdiff_t i = 0; i < m; ++i) {
            const Sums& point = points_[tags[i]];
            all.w += point.w;
            all.wy += point.wy;
            all.wyy += point.wyy;
        }
        sums = all;
    }
    // Of the node that was entered last; nothing asks for the squares.
    void sum_left(const std::uint8_t* left, const std::uint32_t*, std::ptrdiff_t m,
                  Sums& sums) const {
        sums.w = kernels_.sum_left(left, weights_.data(), m);
        sums.wy = kernels_.sum_left(left, targets_.data(), m);
    }
    // A row that stands for all that have these sums, until the next one; see ClassTally.
    static bool can_merge(double) { return true; }
    std::ptrdiff_t merge(const Sums& sums, std::uint32_t* tags) {
        points_.back() = sums;
        *tags = static_cast<std::uint32_t>(points_.size() - 1);
        return 1;
    }
    bool has_few() const { return has_few_; }
    const FewTargets& few_points() const { return few_; }
    void enter_part(std::uint32_t rows, Sums& sums) {
        sum_few(rows, sums);
        few_.total_w = sums.w;
        few_.total_wy = sums.wy;
    }
    void sum_few(std::uint32_t rows, Sums& sums) const {
        double all[3];
        fastml::sum_few(few_, rows, all);
        sums = {all[0], all[1], all[2]};
    }
    void start(const Sums& total, const Sums* left) {
        total_ = total;
        w_ = left ? left->w : 0;
        wy_ = left ? left->wy : 0;
    }
    void add(std::uint32_t tag) {
        w_ += points_[tag].w;
        wy_ += points_[tag].wy;
    }
    template <class Number>
    void count(Number number, const std::uint32_t* tags, std::ptrdiff_t m, std::ptrdiff_t n_values,
               Counter* counts) const {
        count_all(m, n_values * counters, counts,
                  [=, points = points_.data()](std::ptrdiff_t i, Counter* to) {
                      double* at = to + counters * number(i);
                      at[0] += points[tags[i]].w;
                      at[1] += points[tags[i]].wy;
                  });
    }
    static bool empty(const Counter* counter) { return counter[0] == 0; }
    std::ptrdiff_t orders() const { return 1; }
    static double mean(const Counter* counter, std::ptrdiff_t) { return counter[1] / counter[0]; }
    void add(const Counter* counter) {
        w_ += counter[0];
        wy_ += counter[1];
    }
    void put(Queue& queue) const {
        queue.w[queue.count] = w_;
        queue.left[queue.count] = wy_;
        queue.right[queue.count] = total_.wy - wy_;
    }
    double score(Queue& queue, double least) const {
        return kernels_.squares(queue.w, queue.left, queue.right, queue.count, total_.w, least,
                                queue.proxies);
    }

  private:
    void enter_few(const std::uint32_t* tags, std::ptrdiff_t m, Sums& sums) {
        if (m == 1) {  // a leaf
            sums = points_[*tags];
            return;
        }
        Sums all;
        for (std::ptrdiff_t i = 0; i < few; ++i) {
            const Sums point = i < m ? points_[tags[i]] : Sums{};
            few_.w[i] = point.w;
            few_.wy[i] = point.wy;
            few_.wyy[i] = point.wyy;
            all.w += point.w;
            all.wy += point.wy;
            all.wyy += point.wyy;
        }
        few_.total_w = all.w;
        few_.total_wy = all.wy;
        sums = all;
    }

    const SearchKernels& kernels_;
    std::vector<Sums> points_;                         // (n), and one that stands for others
    std::vector<double> weights_, targets_, squares_;  // of the node's rows
    FewTargets few_;
    bool has_few_ = false;
    Sums total_;
    double w_ = 0, wy_ = 0;
};

}  // namespace fastml
