#pragma once
// Random splits of few rows, which most nodes have; see few.h. Rows are told by their numbers among
// those of FewBlock; those that are present in a node, by bits.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trees/columns.h"
#include "trees/exact_few.h"
#include "trees/few.h"
#include "trees/splitter.h"

namespace fastml {

// A few rows: of a node, and so of all nodes below it. Features are gathered when they are first
// asked for.
class FewBlock {
  public:
    explicit FewBlock(const Columns& columns) : columns_(columns), features_(columns.d) {}

    void take(const std::int32_t* from, std::ptrdiff_t m) {  // m <= few rows
        size = m;
        ++number_;
        for (std::ptrdiff_t i = 0; i < m; ++i) rows[i] = from[i];
    }
    const float* values(std::ptrdiff_t f) {  // (few)
        Feature& feature = features_[f];
        if (feature.number == number_) return feature.values;
        const float* const x = columns_.raw + f * columns_.n;
        for (std::ptrdiff_t i = 0; i < size; ++i) feature.values[i] = x[rows[i]];
        feature.number = number_;
        return feature.values;
    }

    std::ptrdiff_t size = 0;
    std::int32_t rows[few] = {};

  private:
    struct Feature {
        alignas(64) float values[few] = {};
        std::uint64_t number = 0;  // of the rows that these are of
    };
    const Columns& columns_;
    std::vector<Feature> features_;
    std::uint64_t number_ = 0;
};

// The range of those of values (few) that are present and not NaN; returns how many are NaN.
std::ptrdiff_t range_few(const float* values, std::uint32_t present, float* least,
                         float* largest) noexcept;

// What the rows of a block add to sums.
struct FewSums {
    alignas(64) double w[few], wy[few], wyy[few];
};
// A node of the block, and what its children must have.
struct FewNode {
    std::ptrdiff_t m;
    double w, wy;
    std::ptrdiff_t least_rows;
    double least_weight;
};
// Splits that are scored together, each by the values (few) of a feature: those that are NaN go left
// if `missing_left`.
struct FewSides {
    static constexpr int most = 8;
    const float* values[most];
    float thresholds[most];
    bool missing_left[most];
    int count = 0;
};
struct FewChoice {
    double proxy;  // -infinity if there is none
    int which;
};
// Replays the partitions, one after the other, of the order (few) that a node's rows are in, and
// returns the first of the best, by squared error. The sums, in scikit-learn's order of additions,
// do not wait for each other.
FewChoice replay_sides(const FewSides& sides, const FewSums& rows, const FewNode& node,
                       std::uint8_t* order) noexcept;
// The same, for another score: sums of the left rows (most), aligned; wy is zero for a side that has
// too few rows. What follows `count` is anything.
void replay_sums(const FewSides& sides, const FewSums& rows, const FewNode& node,
                 std::uint8_t* order, double* w, double* wy) noexcept;
// Replays the first of them.
void replay_side(const FewSides& sides, std::ptrdiff_t m, std::uint8_t* order) noexcept;

// Where sums are exact, rows stay where they are. Which of those present go left by the first side:
std::uint32_t left_few(const FewSides& sides, std::uint32_t present) noexcept;
// The first of the best sides, of a node in a block of `size` rows.
struct FewPart {
    std::uint32_t present;
    std::ptrdiff_t m, size, least_rows;
    double least_weight;
};
FewChoice choose_side(const FewSides& sides, const FewPart& part,
                      const FewClasses& classes) noexcept;
FewChoice choose_side(const FewSides& sides, const FewPart& part,
                      const FewTargets& targets) noexcept;
// Sums of w, wy and wyy over some rows.
void sum_few(const FewTargets& targets, std::uint32_t rows, double* sums) noexcept;

// The search of a node of few rows: features' splits are drawn one by one, and scored together.
class FewTrials {
  public:
    explicit FewTrials(const Columns& columns) : block(columns) {}

    // Of a node of m rows, `present`; score(sides) tells the best. Returns the new constants.
    template <class Score>
    std::ptrdiff_t search(Xorshift& random, FeatureDraw& draw, std::ptrdiff_t constants,
                          std::uint32_t present, std::ptrdiff_t m, Score score) {
        proxy_ = -std::numeric_limits<double>::infinity();
        last_ = -1;
        sides_.count = 0;
        const std::ptrdiff_t now = draw.each(random, constants, [&](std::ptrdiff_t feature) {
            last_ = feature;
            if (!try_feature(feature, present, m, random)) return false;
            if (sides_.count == FewSides::most) take_best(score(sides_));
            return true;
        });
        if (sides_.count) take_best(score(sides_));
        return now;
    }
    // What the search has found, if anything.
    bool has_found() const { return proxy_ != -std::numeric_limits<double>::infinity(); }
    bool is_last() const { return best_.feature == last_; }
    const FewSides& side() {
        sides_.values[0] = block.values(best_.feature);
        sides_.thresholds[0] = round_down(best_.threshold);
        sides_.missing_left[0] = best_.missing_left;
        return sides_;
    }
    // n_left of m rows from `start` on.
    void set(Split& split, std::ptrdiff_t start, std::ptrdiff_t n_left, std::ptrdiff_t m) const {
        split.position = start + n_left;
        split.feature = best_.feature;
        split.threshold = best_.threshold;
        split.missing_go_left = best_.has_missing ? best_.missing_left : 2 * n_left > m;
    }

    FewBlock block;

  private:
    struct Trial {
        std::ptrdiff_t feature;
        double threshold;
        bool missing_left, has_missing;
    };

    // Whether it varies.
    bool try_feature(std::ptrdiff_t feature, std::uint32_t present, std::ptrdiff_t m,
                     Xorshift& random) {
        const float* const values = block.values(feature);
        float low, high;
        const std::ptrdiff_t n_missing = range_few(values, present, &low, &high);
        if (n_missing == m || (n_missing == 0 && high <= low + near_value)) return false;
        double threshold = random.uniform(low, high);
        const bool missing_left = n_missing > 0 && random.integer(0, 2);
        if (threshold == high) threshold = low;
        const int k = sides_.count++;
        trials_[k].feature = feature;
        trials_[k].threshold = threshold;
        trials_[k].missing_left = missing_left;
        trials_[k].has_missing = n_missing > 0;
        sides_.values[k] = values;
        sides_.thresholds[k] = round_down(threshold);
        sides_.missing_left[k] = missing_left;
        return true;
    }
    void take_best(const FewChoice& choice) {
        sides_.count = 0;
        if (!(choice.proxy > proxy_)) return;
        proxy_ = choice.proxy;
        best_ = trials_[choice.which];
    }

    FewSides sides_ = {};
    Trial trials_[FewSides::most] = {};
    Trial best_ = {};
    double proxy_ = 0;
    std::ptrdiff_t last_ = -1;
};

}  // namespace fastml
