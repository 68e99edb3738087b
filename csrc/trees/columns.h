#pragma once
// The training matrix as growing trees reads it: feature by feature, made once for a forest.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/pool.h"

namespace fastml {

// Codes of one byte are gathered by four.
constexpr std::ptrdiff_t code_slack = 3;

constexpr std::uint32_t no_code = ~std::uint32_t{0};

// One feature of n rows as ranks among its distinct values (-0 and +0 are one). A row's code is
// 2 * rank, plus 1 if its value is within `near` of the next lower one: scikit-learn does not split
// between those. A missing value (NaN) has the code 2 * n_values, above all others.
struct Column {
    const void* codes;  // (n) of `width` bytes: 1, 2 or 4; code_slack bytes behind them may be read
    int width;
    const float* values;  // (n_values), ascending
    std::int32_t n_values;
    bool missing;
    // (n_values), or null. Where zero, rows of the value are copies of a single one, targets too:
    // their order does not matter.
    const std::uint8_t* shared;
    std::uint32_t common;  // the code of more than half of the rows, or no_code

    // visit(codes), as what they are.
    template <class Visit> auto with_codes(Visit visit) const {
        switch (width) {
            case 1:
                return visit(static_cast<const std::uint8_t*>(codes));
            case 2:
                return visit(static_cast<const std::uint16_t*>(codes));
            default:
                return visit(static_cast<const std::uint32_t*>(codes));
        }
    }
    std::uint32_t code(std::int32_t row) const {
        return with_codes([row](const auto* c) { return std::uint32_t{c[row]}; });
    }
    // out (m) = the codes of rows (m).
    void gather(const std::int32_t* rows, std::ptrdiff_t m, std::uint32_t* out) const {
        with_codes([=](const auto* c) {
            for (std::ptrdiff_t i = 0; i < m; ++i) out[i] = c[rows[i]];
        });
    }
    std::uint32_t missing_code() const { return 2 * static_cast<std::uint32_t>(n_values); }
    bool is_missing(std::uint32_t code) const { return code == missing_code(); }
    float value(std::uint32_t code) const { return values[code >> 1]; }
    bool has_two_values() const { return n_values == 2 && !missing; }
    // Whether a split may pass between two values that follow each other in a node.
    inline bool apart(std::uint32_t lower, std::uint32_t upper) const;
};

// scikit-learn's FEATURE_THRESHOLD: closer values, in single precision, count as equal.
constexpr float near_value = 1e-7f;

bool Column::apart(std::uint32_t lower, std::uint32_t upper) const {
    if (lower == upper) return false;
    return !(upper & 1) || value(upper) > value(lower) + near_value;
}

// Codes are below 2^31.
constexpr std::ptrdiff_t most_rows = std::ptrdiff_t{1} << 30;

// The rows, ascending, for which a sparse feature has a value of its own; it is zero for all others.
struct Entries {
    const std::int32_t* rows;  // (count)
    const float* values;       // (count), some of which may be zero
    std::ptrdiff_t count;
    std::uint32_t zero;  // zero's code
};

// All features: as ranks, or as they are (`raw`, column-major), whichever the splitter reads. Of
// sparse features there are entries, and if all rows would take too much memory, codes of the
// entries alone; `raw` is null then.
struct Columns {
    std::ptrdiff_t n, d;
    const Column* ranked;    // (d), or null
    const float* raw;        // (d, n), or null
    const bool* missing;     // (d), whether the feature has NaN
    const Entries* entries;  // (d), or null: not sparse
    bool by_row;             // whether codes, or raw, are those of all rows
    bool mostly_zero;        // so that passing over entries is less than passing over rows
    // (d), or null. How many levels a categorical feature has, whose values are 0, 1, ...; else 0.
    const std::int32_t* levels;
    // Features of two values that are apart, 64 in a word (words, n): which rows have the upper one.
    // `bit` (d) is a feature's number among them, -1 if it is none. Both null if they are few.
    const std::uint64_t* bits;
    const std::int32_t* bit;
};

// Levels of a categorical feature.
constexpr int most_levels = 256;
struct LevelSet {
    std::uint64_t words[most_levels / 64];

    bool has(std::int32_t level) const { return words[level >> 6] >> (level & 63) & 1; }
    void add(std::int32_t level) { words[level >> 6] |= std::uint64_t{1} << (level & 63); }
    // Of levels [0, count) those that are not among `some`.
    void add_others(const LevelSet& some, std::int32_t count) {
        for (std::int32_t w = 0; 64 * w < count; ++w) {
            const std::int32_t here = count - 64 * w;
            const std::uint64_t all =
                here < 64 ? (std::uint64_t{1} << here) - 1 : ~std::uint64_t{0};
            words[w] |= all & ~some.words[w];
        }
    }
};

// Columns with the memory they need.
class ColumnStore {
  public:
    // Of X (n, d) with strides, float32, without infinities; n <= most_rows.
    Status rank(const float* X, std::ptrdiff_t row_stride, std::ptrdiff_t column_stride,
                std::ptrdiff_t n, std::ptrdiff_t d, int n_threads) noexcept;
    Status copy(const float* X, std::ptrdiff_t row_stride, std::ptrdiff_t column_stride,
                std::ptrdiff_t n, std::ptrdiff_t d, int n_threads) noexcept;
    // Of CSC, whose rows ascend, without NaN; data and indices stay the caller's.
    Status sparse(const float* data, const std::int32_t* indices, const std::int32_t* indptr,
                  std::ptrdiff_t n, std::ptrdiff_t d, bool ranks, int n_threads) noexcept;
    // The given rows of `all`, ranked and not sparse, which stay the caller's; a row's copies have
    // its target, and one weight.
    Status take(const Columns& all, const std::int64_t* rows, std::ptrdiff_t m,
                int n_threads) noexcept;
    // Features of `levels` (d), not zero, are categorical; they have been ranked.
    void categorize(const std::int32_t* levels) {
        levels_.assign(levels, levels + columns_.d);
        columns_.levels = levels_.data();
    }
    const Columns& columns() const { return columns_; }
    std::ptrdiff_t bytes() const { return bytes_; }

  private:
    struct Ranking;
    void reserve(std::ptrdiff_t d);
    void rank_feature(std::ptrdiff_t f, Ranking& at, std::ptrdiff_t m);
    bool rank_few(std::ptrdiff_t f, Ranking& at, std::ptrdiff_t m);
    void rank_by_sort(std::ptrdiff_t f, Ranking& ranking, std::ptrdiff_t m);

    Status pack_bits(int n_threads);
    // Make codes, or values, of entries those of all rows.
    void spread(std::ptrdiff_t f, std::ptrdiff_t n);
    Status spread_raw(int n_threads);

    Columns columns_{};
    std::vector<Column> ranked_;
    std::vector<Entries> entries_;
    std::vector<std::int32_t> levels_, bit_;
    std::unique_ptr<std::uint64_t[]> bits_;
    std::vector<std::unique_ptr<char[]>> codes_;
    std::vector<std::unique_ptr<float[]>> values_;
    std::vector<std::unique_ptr<std::uint8_t[]>> shared_;
    std::unique_ptr<float[]> raw_;
    std::unique_ptr<bool[]> missing_;
    std::ptrdiff_t bytes_ = 0;
};

}  // namespace fastml
