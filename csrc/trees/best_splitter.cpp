#include "trees/best_scan.h"

namespace fastml {

using std::ptrdiff_t;

namespace {

class BestSplitter final : public BestScan<BestSplitter> {
  public:
    using BestScan::BestScan;

    Split split(Inherited& inherited) override {
        take_few();
        return BestScan::split(inherited);
    }

    template <class Visit> void for_ranges(Visit visit) const {
        visit(start_ + growth_.min_samples_leaf, end_ - growth_.min_samples_leaf + 1);
    }

  private:
    // Gathers the codes of the node's rows. Rows that miss the value are moved to the end; returns
    // where they begin.
    ptrdiff_t gather(const Column& column) {
        ptrdiff_t end = end_;
        if (column.missing)
            for (ptrdiff_t p = start_; p < end; ++p) {
                while (end > p && column.is_missing(column.code(rows_[end - 1]))) --end;
                if (p < end && column.is_missing(column.code(rows_[p])))
                    std::swap(rows_[p], rows_[--end]);
            }
        column.gather(&rows_[start_], end - start_, &codes_[start_]);
        return end;
    }

    bool try_feature(ptrdiff_t feature, const Inherited& inherited, Split& best) override {
        if (is_small_) return try_few(feature, best);
        const Column& column = columns_.ranked[feature];
        ptrdiff_t known = end_;
        beside(best, [&] {
            known = gather(column);
            sort(column, start_, known);
        });
        if (status() != Status::ok) return false;  // perhaps they have not been sorted
        if (known == start_) return false;
        if (known == end_ &&
            column.value(codes_[known - 1]) <= column.value(codes_[start_]) + near_value)
            return false;
        if (known == end_) {
            search(feature, inherited, best);
            return true;
        }
        score(best);  // of the features before
        scanned_codes_ = codes_.data();
        scan(feature, known, inherited, best);
        std::rotate(&rows_[start_], &rows_[known], rows_.data() + end_);
        std::move_backward(&codes_[start_], &codes_[known], codes_.data() + end_);
        scan_missing_left(feature, end_ - known, inherited, best);
        return true;
    }

    // Rows that miss the value, [known, end), go right.
    void scan(ptrdiff_t feature, ptrdiff_t known, const Inherited& inherited, Split& best) {
        const Column& column = columns_.ranked[feature];
        criterion_->reset();
        for (ptrdiff_t p = start_ + 1; p <= known; ++p) {
            if (p < known && !column.apart(codes_[p - 1], codes_[p])) continue;
            if (leaves_too_few(p)) continue;
            criterion_->update(p);
            if (!improves(feature, inherited)) continue;
            best.threshold =
                p == known ? std::numeric_limits<double>::infinity() : threshold(column, p);
            best.missing_go_left = false;
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

    void partition(const Split& split) override {
        if (is_small_) small_.put_back(&rows_[start_]);
        const Column& column = columns_.ranked[split.feature];
        column.gather(&rows_[start_], end_ - start_, &codes_[start_]);
        for (ptrdiff_t p = start_; p < end_; ++p) {
            const std::uint32_t c = codes_[p];
            left_[p] = column.missing && column.is_missing(c) ? split.missing_go_left
                                                              : column.value(c) <= split.threshold;
        }
        replay_partition(&rows_[start_], &left_[start_], end_ - start_, scratch_);
    }
};

}  // namespace

std::unique_ptr<Splitter> best_splitter(const Growth& growth) {
    if (growth.columns->entries) return sparse_best_splitter(growth);
    return std::make_unique<BestSplitter>(growth);
}

}  // namespace fastml
