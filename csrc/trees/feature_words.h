#pragma once
// Features of two values in words of 64: what a node's rows have of them is read at once for all that
// are drawn.
#include <algorithm>
#include <vector>

#include "trees/exact_few.h"
#include "trees/search.h"
#include "trees/tree.h"

namespace fastml {

class FeatureWords {
  public:
    explicit FeatureWords(const Growth& growth)
        : growth_(growth), columns_(*growth.columns), kernels_(search_kernels()),
          few_(count(columns_)),
          // Not if most words would be read for one feature or none.
          wide_(growth.max_features >= 2 * count(columns_) ? few_.size() : 0) {}

    bool has(std::ptrdiff_t feature) const {
        return columns_.bit && columns_.bit[feature] >= 0 &&
               !(columns_.levels && columns_.levels[feature]);
    }
    // The features that follow are asked about rows (m) of another node.
    void begin(const std::int32_t* rows, std::ptrdiff_t m) {
        rows_ = rows;
        m_ = m;
        ++node_;
    }

    // Of few rows: splits wait until there are some to score together. Whether the feature varies.
    bool put_off(std::ptrdiff_t feature) {
        const std::int32_t bit = columns_.bit[feature];
        Few& word = few_[bit / 64];
        if (word.node != node_) take_bits(words(bit), rows_, m_, word.of);
        word.node = node_;
        if (!(word.of.varying >> bit % 64 & 1)) return false;
        waiting_[n_waiting_] = {&word.of, bit % 64};
        features_[n_waiting_++] = feature;
        return true;
    }
    bool any_waits() const { return n_waiting_ > 0; }
    bool is_full() const { return n_waiting_ == most_bits; }
    template <class Points> FewBest score(const Points& points, double least_weight) {
        const int all = n_waiting_;
        n_waiting_ = 0;
        return best_bit(waiting_, all, m_, points, growth_.min_samples_leaf, least_weight);
    }
    std::ptrdiff_t feature(const FewBest& found) const { return features_[found.which]; }

    // Of any number of rows.
    bool has_wide(std::ptrdiff_t feature) const { return !wide_.empty() && has(feature); }
    bool varies(std::ptrdiff_t feature) {
        return wide(feature).varying >> columns_.bit[feature] % 64 & 1;
    }
    // left (m) = 1 for the rows that go left; how many they are.
    std::ptrdiff_t divide(std::ptrdiff_t feature, std::uint8_t* left) {
        return kernels_.without_bit(wide(feature).of.data(), m_, columns_.bit[feature] % 64, left);
    }

  private:
    struct Few {
        FewBits of;
        std::int64_t node = 0;  // whose rows these are
    };
    struct Wide {
        std::vector<std::uint64_t> of;
        std::uint64_t varying = 0;
        std::int64_t node = 0;
    };

    static std::ptrdiff_t count(const Columns& columns) {
        if (!columns.bit) return 0;
        return *std::max_element(columns.bit, columns.bit + columns.d) / 64 + 1;
    }
    const std::uint64_t* words(std::int32_t bit) const {
        return columns_.bits + bit / 64 * columns_.n;
    }
    Wide& wide(std::ptrdiff_t feature) {
        const std::int32_t bit = columns_.bit[feature];
        Wide& word = wide_[bit / 64];
        if (word.node == node_) return word;
        word.node = node_;
        word.of.resize(columns_.n + row_slack);
        word.varying = kernels_.gather_words(words(bit), rows_, m_, word.of.data());
        return word;
    }

    const Growth& growth_;
    const Columns& columns_;
    const SearchKernels& kernels_;
    std::vector<Few> few_;
    std::vector<Wide> wide_;
    const std::int32_t* rows_ = nullptr;
    std::ptrdiff_t m_ = 0;
    std::int64_t node_ = 0;
    FewBit waiting_[most_bits];
    std::ptrdiff_t features_[most_bits];
    int n_waiting_ = 0;
};

}  // namespace fastml
