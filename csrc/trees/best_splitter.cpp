#include "trees/queue.h"
#include "trees/replay.h"
#include "trees/search.h"
#include "trees/sequential.h"

namespace fastml {

using std::ptrdiff_t;

namespace {

class BestSplitter final : public Sequential {
  public:
    explicit BestSplitter(const Growth& growth)
        : Sequential(growth), left_(columns_.n), codes_(columns_.n), scratch_(columns_.n),
          kernels_(search_kernels()),
          score_(growth.n_outputs > 1 || growth.monotonic           ? nullptr
                 : growth.criterion == CriterionName::gini          ? kernels_.gini
                 : growth.criterion == CriterionName::squared_error ? kernels_.squares
                 : growth.criterion == CriterionName::poisson       ? kernels_.poisson
                                                                    : nullptr),
          points_(score_ ? columns_.n : 0), sums_(growth.max_n_classes) {
        if (!scratch_) throw std::bad_alloc();
    }

    void plant(const Weights& weights, std::uint32_t seed) override {
        Sequential::plant(weights, seed);
        if (score_)
            for (ptrdiff_t i = 0; i < columns_.n; ++i) points_[i] = {weights[i], growth_.y[i]};
    }

  private:
    struct Point {
        double w, y;
    };

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
        const Column& column = columns_.ranked[feature];
        const ptrdiff_t known = gather(column);
        sort(column, known);
        if (known == start_) return false;
        if (known == end_ &&
            column.value(codes_[known - 1]) <= column.value(codes_[start_]) + near_value)
            return false;
        if (known == end_ && score_) {
            if (growth_.n_classes)
                scan_classes(feature, best);
            else
                scan_targets(feature, best);
            return true;
        }
        scan(feature, known, inherited, best);
        if (known < end_) {
            std::rotate(&rows_[start_], &rows_[known], rows_.data() + end_);
            std::move_backward(&codes_[start_], &codes_[known], codes_.data() + end_);
            scan_missing_left(feature, end_ - known, inherited, best);
        }
        return true;
    }

    // Rows [start, end) and their codes, by code, as scikit-learn would leave them.
    void sort(const Column& column, ptrdiff_t end) {
        const ptrdiff_t m = end - start_;
        const bool surely_tied = column.n_values < m && m > 15;
        if (m > kernels_.small_node || surely_tied || column.n_values >= 1 << 23 ||
            !sort_small(end))
            replay_sort(&codes_[start_], &rows_[start_], m, scratch_);
    }

    // Sorts stably. That is the wanted order if there are no ties, or as few rows as scikit-learn
    // sorts by insertion; otherwise nothing is changed and false comes back.
    bool sort_small(ptrdiff_t end) {
        constexpr int place_bits = 7;
        constexpr std::int32_t place = (1 << place_bits) - 1;
        const auto m = static_cast<std::int32_t>(end - start_);
        std::int32_t keys[place + 1], sorted[place + 1];
        for (std::int32_t i = 0; i < m; ++i)
            keys[i] = static_cast<std::int32_t>(codes_[start_ + i]) << place_bits | i;
        kernels_.rank_sort(keys, m, sorted);
        if (m > 15)
            for (std::int32_t i = 1; i < m; ++i)
                if (sorted[i] >> place_bits == sorted[i - 1] >> place_bits) return false;
        std::int32_t rows[place + 1];
        std::copy_n(&rows_[start_], m, rows);
        for (std::int32_t i = 0; i < m; ++i) {
            codes_[start_ + i] = static_cast<std::uint32_t>(sorted[i] >> place_bits);
            rows_[start_ + i] = rows[sorted[i] & place];
        }
        return true;
    }

    void score(ptrdiff_t feature, Queue& queue, Split& best) {
        const double proxy =
            score_(queue.w, queue.left, queue.right, queue.count, criterion_->node_weight(),
                   growth_.min_weight_leaf, queue.proxies);
        if (proxy > best_proxy_) {
            best_proxy_ = proxy;
            const ptrdiff_t p = queue.place_of(proxy);
            best.threshold = threshold(columns_.ranked[feature], p);
            best.missing_go_left = p - start_ > end_ - p;
            best.position = p;
            best.feature = feature;
        }
        queue.count = 0;
    }

    // Calls visit(position) for every place where the node may be split.
    template <class Visit> void for_splits(const Column& column, Visit visit) {
        const ptrdiff_t end = end_ - growth_.min_samples_leaf;
        for (ptrdiff_t p = start_ + growth_.min_samples_leaf; p <= end; ++p)
            if (column.apart(codes_[p - 1], codes_[p])) visit(p);
    }

    // Sums of the rows before `at`, which moves on to p: from whichever side passes fewer rows.
    // add(row's point, sign) adds or takes away; restart() sets the sums to those of all rows.
    template <class Add, class Restart> void advance(ptrdiff_t& at, ptrdiff_t p, Add add,
                                                     Restart restart) {
        if (p - at <= end_ - p) {
            for (ptrdiff_t q = at; q < p; ++q) add(points_[rows_[q]], 1.0);
        } else {
            restart();
            for (ptrdiff_t q = end_ - 1; q >= p; --q) add(points_[rows_[q]], -1.0);
        }
        at = p;
    }

    void scan_targets(ptrdiff_t feature, Split& best) {
        Queue queue;
        const double total_w = criterion_->node_weight(), total = criterion_->node_sums()[0];
        double w = 0, left = 0;
        ptrdiff_t at = start_;
        const auto add = [&](const Point& point, double sign) {
            left += sign * (point.w * point.y);
            w += sign * point.w;
        };
        for_splits(columns_.ranked[feature], [&](ptrdiff_t p) {
            advance(at, p, add, [&] { left = total, w = total_w; });
            queue.push(w, left, total - left, p);
            if (queue.is_full()) score(feature, queue, best);
        });
        if (queue.count) score(feature, queue, best);
    }

    void scan_classes(ptrdiff_t feature, Split& best) {
        Queue queue;
        const double total_w = criterion_->node_weight();
        const double* total = criterion_->node_sums();
        double w = 0;
        ptrdiff_t at = start_;
        std::fill(sums_.begin(), sums_.end(), 0.0);
        const auto add = [&](const Point& point, double sign) {
            sums_[static_cast<ptrdiff_t>(point.y)] += sign * point.w;
            w += sign * point.w;
        };
        for_splits(columns_.ranked[feature], [&](ptrdiff_t p) {
            advance(at, p, add, [&] {
                std::copy_n(total, sums_.size(), sums_.begin());
                w = total_w;
            });
            double left = 0, right = 0;
            for (std::size_t c = 0; c < sums_.size(); ++c) {
                const double rest = total[c] - sums_[c];
                left += sums_[c] * sums_[c];
                right += rest * rest;
            }
            queue.push(w, left, right, p);
            if (queue.is_full()) score(feature, queue, best);
        });
        if (queue.count) score(feature, queue, best);
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
            best.threshold =
                p == known ? std::numeric_limits<double>::infinity() : threshold(column, p);
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
        column.gather(&rows_[start_], end_ - start_, &codes_[start_]);
        for (ptrdiff_t p = start_; p < end_; ++p) {
            const std::uint32_t c = codes_[p];
            left_[p] = column.missing && column.is_missing(c) ? split.missing_go_left
                                                              : column.value(c) <= split.threshold;
        }
        replay_partition(&rows_[start_], &left_[start_], end_ - start_, scratch_);
    }

    std::vector<std::uint8_t> left_;
    std::vector<std::uint32_t> codes_;
    ReplayScratch scratch_;
    const SearchKernels& kernels_;
    const SearchKernels::Score score_;  // null: splits are scored one by one by the criterion
    std::vector<Point> points_;
    std::vector<double> sums_;
};

}  // namespace

std::unique_ptr<Splitter> best_splitter(const Growth& growth) {
    return std::make_unique<BestSplitter>(growth);
}

}  // namespace fastml
