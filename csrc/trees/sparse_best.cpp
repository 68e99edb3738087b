// Best splits of sparse rows.
#include "trees/best_scan.h"
#include "trees/sparse_order.h"

namespace fastml {

using std::ptrdiff_t;

namespace {

class SparseBest final : public BestScan<SparseBest> {
  public:
    explicit SparseBest(const Growth& growth) : BestScan(growth), order_(rows_) {}

    void plant(const Weights& weights, std::uint32_t seed) override {
        BestScan::plant(weights, seed);
        order_.plant(n_rows_);
    }
    void begin(ptrdiff_t start, ptrdiff_t end) override {
        BestScan::begin(start, end);
        order_.begin(start, end);
    }

    template <class Visit> void for_ranges(Visit visit) const {
        const ptrdiff_t first = start_ + growth_.min_samples_leaf,
                        end = end_ - growth_.min_samples_leaf + 1;
        visit(first, std::min(end, zeros_.begin + 1));
        visit(std::max({first, zeros_.begin + 1, zeros_.end}), end);
    }

  private:
    // Rows and codes of those that are not zero, sides apart.
    void extract(ptrdiff_t feature) {
        const Entries& entries = columns_.entries[feature];
        const bool by_row = columns_.by_row;
        zeros_ = columns_.ranked[feature].with_codes([&](const auto* codes) {
            const auto of_row = [=](std::int32_t row) { return std::uint32_t{codes[row]}; };
            const auto of_entry = [&](ptrdiff_t k) {
                return std::uint32_t{codes[by_row ? entries.rows[k] : k]};
            };
            return order_.extract(entries, by_row, of_entry, of_row, entries.zero, codes_);
        });
    }

    bool try_feature(ptrdiff_t feature, const Inherited& inherited, Split& best) override {
        const Column& column = columns_.ranked[feature];
        extract(feature);
        sort(column, start_, zeros_.begin);
        sort(column, zeros_.end, end_);
        order_.settle(start_, zeros_.begin);
        order_.settle(zeros_.end, end_);
        if (zeros_.begin < zeros_.end)  // the others are not looked at
            codes_[zeros_.begin] = codes_[zeros_.end - 1] = columns_.entries[feature].zero;
        if (column.value(codes_[end_ - 1]) <= column.value(codes_[start_]) + near_value)
            return false;
        search(feature, inherited, best);
        return true;
    }

    void partition(const Split& split) override {
        const Column& column = columns_.ranked[split.feature];
        extract(split.feature);
        if (split.threshold == 0) return;  // as they are
        const bool negative = split.threshold < 0;
        const ptrdiff_t begin = negative ? start_ : zeros_.end,
                        end = negative ? zeros_.begin : end_;
        for (ptrdiff_t p = begin; p < end; ++p)
            left_[p] = column.value(codes_[p]) <= split.threshold;
        replay_partition(rows_.data() + begin, left_.data() + begin, end - begin, scratch_);
        order_.settle(begin, end);
    }

    SparseOrder order_;
    SparseOrder::Zeros zeros_{0, 0};
};

}  // namespace

std::unique_ptr<Splitter> sparse_best_splitter(const Growth& growth) {
    return std::make_unique<SparseBest>(growth);
}

}  // namespace fastml
