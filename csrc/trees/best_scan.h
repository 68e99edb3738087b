#pragma once
// The search for best splits along rows in scikit-learn's order. What order a feature leaves the next
// one depends on, so that features follow each other; but while one is sorted on one thread, the one
// before it can be scanned on another.
#include "trees/few.h"
#include "trees/queue.h"
#include "trees/replay.h"
#include "trees/search.h"
#include "trees/sequential.h"

namespace fastml {

// Sorting rows, and scoring the places between them: Derived::for_ranges(visit) calls
// visit(first, end) for positions where the node may be split if the code changes there, in order.
template <class Derived> class BestScan : public Sequential {
  public:
    explicit BestScan(const Growth& growth)
        : Sequential(growth), left_(columns_.n + row_slack), codes_(columns_.n + row_slack),
          scratch_(columns_.n, has_copies(columns_)), kernels_(search_kernels()),
          score_(growth.n_outputs > 1 || growth.monotonic           ? nullptr
                 : growth.criterion == CriterionName::gini          ? kernels_.gini
                 : growth.criterion == CriterionName::squared_error ? kernels_.squares
                 : growth.criterion == CriterionName::poisson       ? kernels_.poisson
                                                                    : nullptr),
          points_(score_ ? columns_.n : 0), sums_(growth.max_n_classes),
          takes_few_(can_take_few()) {
        if (!scratch_) throw std::bad_alloc();
    }
    Status status() const override { return status_; }

    void plant(const Weights& weights, std::uint32_t seed) override {
        Sequential::plant(weights, seed);
        const bool by_class = growth_.n_classes;
        if (score_)
            for (std::ptrdiff_t i = 0; i < columns_.n; ++i)
                points_[i] = {weights[i], by_class ? growth_.y[i] : weights[i] * growth_.y[i]};
    }

  protected:
    // Rows [begin, end) and their codes, by code, as scikit-learn would leave them.
    void sort(const Column& column, std::ptrdiff_t begin, std::ptrdiff_t end) {
        const std::ptrdiff_t m = end - begin;
        if (m < 2) return;
        if (m <= few_sorted && column.n_values < 1 << 23)
            sort_small(begin, end);
        else
            replay_sort(&codes_[begin], &rows_[begin], m, scratch_, column.shared);
    }

    // All rows have a value.
    void search(std::ptrdiff_t feature, const Inherited& inherited, Split& best) {
        if (!score_) {
            scanned_codes_ = codes_.data();
            scan_each(feature, inherited, best);
        } else if (growth_.n_threads > 1 && !columns_.entries && end_ - start_ >= worth_a_thread) {
            put_off(feature);
        } else {
            scanned_codes_ = codes_.data();
            scanned_rows_ = rows_.data();
            scan_all(feature, best);
        }
    }
    // Runs work(), which sorts the rows anew, beside the scan that was put off.
    template <class Work> void beside(Split& best, Work work) {
        if (waiting_ < 0) return work();
        const Status status = parallel(2, 2, [&](std::ptrdiff_t i, int) {
            if (i)
                scan_all(waiting_, best);
            else
                work();
        });
        if (status != Status::ok) status_ = status;
        waiting_ = -1;
    }
    void finish(Split& best) override {
        if (waiting_ >= 0) scan_all(waiting_, best);
        waiting_ = -1;
        score(best);
    }

    void take_few() {
        is_small_ = takes_few_ && end_ - start_ <= few_sorted;
        if (is_small_) small_.take(&rows_[start_], end_ - start_, points_.data());
    }
    // try_feature of a small node.
    bool try_few(std::ptrdiff_t feature, Split& best) {
        const Column& column = columns_.ranked[feature];
        const std::ptrdiff_t m = end_ - start_, least = growth_.min_samples_leaf;
        std::uint32_t* const codes = &codes_[start_];
        std::uint32_t changes[few];
        const std::ptrdiff_t count =
            replay_sort_few(column.codes, column.width, column.n_values == 2, small_.rows, m,
                            small_.order, codes, changes);
        if (!count || column.value(codes[m - 1]) <= column.value(codes[0]) + near_value)
            return false;
        scanned_codes_ = codes_.data();
        make_room(few, best);
        const double total_w = criterion_->node_weight(), total = criterion_->node_sums()[0];
        double w = 0, left = 0;
        std::ptrdiff_t at = 0;
        for (std::ptrdiff_t k = 0; k < count; ++k) {
            const std::ptrdiff_t p = changes[k];
            if (p < least || p > m - least || !column.apart(codes[p - 1], codes[p])) continue;
            if (p - at > m - p) {  // as in advance()
                w = total_w;
                left = total;
                for (at = m; at > p; --at) {
                    const Point& point = small_.points[small_.order[at - 1]];
                    w -= point.w;
                    left -= point.wy;
                }
            }
            for (; at < p; ++at) {
                const Point& point = small_.points[small_.order[at]];
                w += point.w;
                left += point.wy;
            }
            wait(w, left, total - left, feature, start_ + p);
        }
        return true;
    }
    bool is_small_ = false;
    FewRows small_;

    // Between two values; the sum of the halves cannot overflow.
    static double threshold(const Column& column, std::uint32_t lower, std::uint32_t upper) {
        return column.value(lower) / 2.0 + column.value(upper) / 2.0;
    }
    double threshold(const Column& column, std::ptrdiff_t p) const {
        return threshold(column, scanned_codes_[p - 1], scanned_codes_[p]);
    }
    // Scores the splits that wait for it. They are of all features since the last time, as a few
    // at a time would hardly fill a vector.
    void score(Split& best) {
        if (!queue_.count) return;
        const double proxy =
            score_(queue_.w, queue_.left, queue_.right, queue_.count, criterion_->node_weight(),
                   growth_.min_weight_leaf, queue_.proxies);
        if (proxy > best_proxy_) {
            best_proxy_ = proxy;
            put(places_[queue_.which(proxy)], best);
        }
        queue_.count = 0;
    }
    bool must_partition(const Split&, std::ptrdiff_t) const override { return true; }

  private:
    // Whether sums of targets are all that splits are scored by, and codes are as few wants them.
    bool can_take_few() const {
        if (!score_ || growth_.n_classes || columns_.entries) return false;
        return std::all_of(columns_.ranked, columns_.ranked + columns_.d, [](const Column& column) {
            return !column.missing && column.n_values < 1 << 23;
        });
    }

    // A thread that is awake takes a few microseconds to begin.
    static constexpr std::ptrdiff_t worth_a_thread = 1 << 12;

    // Keeps what is to be scanned, for the next sort changes it.
    void put_off(std::ptrdiff_t feature) {
        waiting_rows_.resize(rows_.size());
        waiting_codes_.resize(codes_.size());
        std::copy(rows_.data() + start_, rows_.data() + end_, waiting_rows_.data() + start_);
        codes_.swap(waiting_codes_);
        scanned_rows_ = waiting_rows_.data();
        scanned_codes_ = waiting_codes_.data();
        waiting_ = feature;
    }
    void scan_all(std::ptrdiff_t feature, Split& best) {
        if (growth_.n_classes)
            scan_classes(feature, best);
        else
            scan_targets(feature, best);
    }

    static bool has_copies(const Columns& columns) { return columns.ranked[0].shared != nullptr; }

    // Sorts stably, as scikit-learn does so few rows.
    void sort_small(std::ptrdiff_t begin, std::ptrdiff_t end) {
        constexpr int place_bits = 7;
        constexpr std::int32_t place = (1 << place_bits) - 1;
        const auto m = static_cast<std::int32_t>(end - begin);
        std::int32_t keys[few], sorted[few], rows[few];
        for (std::int32_t i = 0; i < m; ++i)
            keys[i] = static_cast<std::int32_t>(codes_[begin + i]) << place_bits | i;
        kernels_.rank_sort(keys, m, sorted);
        std::copy_n(&rows_[begin], m, rows);
        for (std::int32_t i = 0; i < m; ++i) {
            codes_[begin + i] = static_cast<std::uint32_t>(sorted[i] >> place_bits);
            rows_[begin + i] = rows[sorted[i] & place];
        }
    }

    // Of a few values most rows have that of the one before them.
    static constexpr std::ptrdiff_t block = 16;
    // Whether a code differs from that before it.
    static bool any_change(const std::uint32_t* codes, std::ptrdiff_t n) {
        if (n < block) return true;
        std::uint32_t changes = 0;
        for (std::ptrdiff_t k = 0; k < block && !changes; k += 4)
            for (std::ptrdiff_t l = k; l < k + 4; ++l) changes |= codes[l] ^ codes[l - 1];
        return changes;
    }
    // visit(begin, end) for positions, without most of those where the code does not change.
    template <class Visit> void for_blocks(Visit visit) {
        static_cast<Derived*>(this)->for_ranges([&](std::ptrdiff_t p, std::ptrdiff_t end) {
            for (; p < end; p += block) {
                const std::ptrdiff_t n = std::min(block, end - p);
                if (any_change(scanned_codes_ + p, n)) visit(p, p + n);
            }
        });
    }
    template <class Visit> void for_splits(std::ptrdiff_t feature, Visit visit) {
        const Column& column = columns_.ranked[feature];
        const std::uint32_t* const codes = scanned_codes_;
        for_blocks([&](std::ptrdiff_t p, std::ptrdiff_t end) {
            for (; p < end; ++p)
                if (column.apart(codes[p - 1], codes[p])) visit(p);
        });
    }
    struct Place {
        std::ptrdiff_t feature, position;
        std::uint32_t lower, upper;  // the codes on both sides
    };
    Place place(std::ptrdiff_t feature, std::ptrdiff_t p) const {
        return {feature, p, scanned_codes_[p - 1], scanned_codes_[p]};
    }
    void put(const Place& at, Split& best) const {
        best.threshold = threshold(columns_.ranked[at.feature], at.lower, at.upper);
        best.missing_go_left = at.position - start_ > end_ - at.position;
        best.position = at.position;
        best.feature = at.feature;
    }

    // For so many splits to wait for their score; and one that does.
    void make_room(std::ptrdiff_t splits, Split& best) {
        if (queue_.count > Queue::room - splits) score(best);
    }
    void wait(double w, double left, double right, std::ptrdiff_t feature, std::ptrdiff_t p,
              bool does = true) {
        const std::ptrdiff_t s = queue_.count;
        queue_.w[s] = w;
        queue_.left[s] = left;
        queue_.right[s] = right;
        places_[s] = place(feature, p);
        queue_.count += does;
    }

    // Sums of the rows before `at`, which moves on to p: from whichever side passes fewer rows.
    // add(row's point, sign) adds or takes away; restart() sets the sums to those of all rows.
    template <class Add, class Restart>
    void advance(std::ptrdiff_t& at, std::ptrdiff_t p, Add add, Restart restart) {
        if (p - at <= end_ - p) {
            for (std::ptrdiff_t q = at; q < p; ++q) add(points_[scanned_rows_[q]], 1.0);
        } else {
            restart();
            for (std::ptrdiff_t q = end_ - 1; q >= p; --q) add(points_[scanned_rows_[q]], -1.0);
        }
        at = p;
    }

    // As advance() adds up, but rows of a block one after the other, whether or not there are splits
    // between them: of many values that would be guessed wrong too often.
    void scan_targets(std::ptrdiff_t feature, Split& best) {
        const Column& column = columns_.ranked[feature];
        const std::uint32_t* const codes = scanned_codes_;
        const std::int32_t* const rows = scanned_rows_;
        const Point* const points = points_.data();
        const double total_w = criterion_->node_weight(), total = criterion_->node_sums()[0];
        double w = 0, left = 0;                       // of the rows before `at`
        std::ptrdiff_t at = start_, before = start_;  // the last split
        for_blocks([&](std::ptrdiff_t p, std::ptrdiff_t end) {
            const auto begin_again = [&](std::ptrdiff_t until) {
                w = total_w;
                left = total;
                for (std::ptrdiff_t q = end_ - 1; q >= until; --q) {
                    w -= points[rows[q]].w;
                    left -= points[rows[q]].wy;
                }
            };
            if (at < p) {
                while (p < end && !column.apart(codes[p - 1], codes[p])) ++p;
                if (p == end) return;
                if (p - before <= end_ - p)
                    for (; at < p; ++at) {
                        w += points[rows[at]].w;
                        left += points[rows[at]].wy;
                    }
            }
            make_room(block, best);
            for (; p < end; ++p) {
                bool splits = codes[p] != codes[p - 1];
                if (codes[p] & 1) splits = column.apart(codes[p - 1], codes[p]);
                if (splits & (p - before > end_ - p)) begin_again(p);
                wait(w, left, total - left, feature, p, splits);
                before = splits ? p : before;
                w += points[rows[p]].w;
                left += points[rows[p]].wy;
            }
            at = end;
        });
    }
    void scan_classes(std::ptrdiff_t feature, Split& best) {
        const double total_w = criterion_->node_weight();
        const double* total = criterion_->node_sums();
        double w = 0;
        std::ptrdiff_t at = start_;
        std::fill(sums_.begin(), sums_.end(), 0.0);
        const auto add = [&](const Point& point, double sign) {  // wy: the class
            sums_[static_cast<std::ptrdiff_t>(point.wy)] += sign * point.w;
            w += sign * point.w;
        };
        for_splits(feature, [&](std::ptrdiff_t p) {
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
            make_room(1, best);
            wait(w, left, right, feature, p);
        });
    }

    void scan_each(std::ptrdiff_t feature, const Inherited& inherited, Split& best) {
        criterion_->reset();
        for_splits(feature, [&](std::ptrdiff_t p) {
            criterion_->update(p);
            if (this->improves(feature, inherited)) put(place(feature, p), best);
        });
    }

  protected:
    std::vector<std::uint8_t> left_;
    std::vector<std::uint32_t> codes_;
    const std::uint32_t* scanned_codes_ = nullptr;  // beside the rows that are scanned
    ReplayScratch scratch_;

  private:
    const std::int32_t* scanned_rows_ = nullptr;
    std::ptrdiff_t waiting_ = -1;  // the feature whose scan was put off
    std::vector<std::int32_t> waiting_rows_;
    std::vector<std::uint32_t> waiting_codes_;
    Status status_ = Status::ok;
    const SearchKernels& kernels_;
    const SearchKernels::Score score_;  // null: splits are scored one by one by the criterion
    std::vector<Point> points_;
    std::vector<double> sums_;
    Queue queue_;
    Place places_[Queue::room];
    const bool takes_few_;
};

}  // namespace fastml
