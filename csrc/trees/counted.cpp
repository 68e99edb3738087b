// Gini with whole weights: sums are exact in any order, so rows may be sorted, counted and moved as
// is quickest, and the tree is still scikit-learn's.
#include <algorithm>
#include <cmath>
#include <new>
#include <vector>

#include "trees/splitter.h"
#include "trees/tally.h"

namespace fastml {

using std::ptrdiff_t;

namespace {

constexpr int place_bits = 7;  // of a row in a small node
constexpr std::uint32_t nothing = ~std::uint32_t{0};

template <class Tally> class Counted final : public Splitter {
  public:
    Counted(const Growth& growth, const Weights& weights, std::uint32_t seed)
        : growth_(growth), columns_(*growth.columns), kernels_(search_kernels()), random_(seed),
          draw_(columns_.d, growth.max_features), tally_(growth.max_n_classes),
          totals_(growth.max_n_classes), missing_totals_(growth.max_n_classes),
          same_weights_(!weights.real && !weights.counts),
          least_(same_weights_ ? std::max(growth.min_weight_leaf,
                                          static_cast<double>(growth.min_samples_leaf))
                               : growth.min_weight_leaf) {
        if (!draw_) throw std::bad_alloc();
        const int bits = class_bits(growth.max_n_classes);
        for (ptrdiff_t i = 0; i < columns_.n; ++i) {
            const auto w = static_cast<std::uint32_t>(weights[i]);
            if (w == 0) continue;
            rows_.push_back(static_cast<std::int32_t>(i));
            tags_.push_back(w << bits | static_cast<std::uint32_t>(growth.y[i]));
            total_weight_ += w;
        }
        codes_.resize(rows_.size() + place_room);
        known_tags_.resize(any_missing() ? rows_.size() : 0);
        pairs_.resize(2 * rows_.size());
    }

    ptrdiff_t n_rows() const override { return static_cast<ptrdiff_t>(rows_.size()); }
    void begin(ptrdiff_t start, ptrdiff_t end) override {
        start_ = start;
        end_ = end;
        sum(start, end, totals_);
        weight_ = total(totals_);
    }
    double weight() const override { return weight_; }
    double impurity() const override { return gini(totals_.data(), weight_); }
    void value(double* out) const override {
        for (std::size_t c = 0; c < totals_.size(); ++c) out[c] = totals_[c] / weight_;
    }
    // Without monotonic constraints nothing asks for these.
    void clip(double*, double, double) const override {}
    double middle_value() const override { return 0; }

    Split split(Inherited& inherited) override {
        best_ = {};
        draw_.start(inherited.constants);
        while (draw_.more()) {
            const ptrdiff_t feature = draw_.next(random_);
            if (feature < 0) continue;
            if (try_feature(feature))
                draw_.used();
            else
                draw_.constant();
        }
        inherited.constants = draw_.finish();
        Split split{end_};
        if (best_.lower != nothing) carry_out(inherited.impurity, &split);
        return split;
    }

  private:
    static constexpr ptrdiff_t place_room = 64;  // whole vectors are read

    struct Best {
        double proxy = -std::numeric_limits<double>::infinity();
        ptrdiff_t feature = 0;
        std::uint32_t lower = nothing;  // the largest code that goes left
        std::uint32_t upper = nothing;  // the smallest that goes right; nothing: only missing values
        bool missing_left = false, has_missing = false;
    };
    // The rows of the node that have a value of the feature, and how the others are counted.
    struct Known {
        const Column* column;
        const std::uint32_t* tags;
        ptrdiff_t feature, rows, missing;
        bool missing_left;
    };

    bool any_missing() const {
        return std::any_of(columns_.missing, columns_.missing + columns_.d,
                           [](bool missing) { return missing; });
    }
    static double total(const std::vector<std::uint32_t>& sums) {
        double w = 0;
        for (const std::uint32_t sum : sums) w += sum;
        return w;
    }
    double gini(const std::uint32_t* sums, double w) const {
        double squares = 0;
        for (std::size_t c = 0; c < totals_.size(); ++c)
            squares += static_cast<double>(sums[c]) * sums[c];
        return 1.0 - squares / (w * w);
    }
    void sum(ptrdiff_t start, ptrdiff_t end, std::vector<std::uint32_t>& sums) const {
        sum_tags(tags_.data() + start, end - start, sums);
    }
    void sum_tags(const std::uint32_t* tags, ptrdiff_t m, std::vector<std::uint32_t>& sums) const {
        const int bits = class_bits(growth_.max_n_classes);
        std::fill(sums.begin(), sums.end(), 0);
        for (ptrdiff_t i = 0; i < m; ++i) sums[tags[i] & ((1u << bits) - 1)] += tags[i] >> bits;
    }

    template <class Code> void gather(const Code* codes) {
        for (ptrdiff_t i = 0; i < end_ - start_; ++i) codes_[i] = codes[rows_[start_ + i]];
    }
    void gather(const Column& column) {
        switch (column.width) {
            case 1: return gather(static_cast<const std::uint8_t*>(column.codes));
            case 2: return gather(static_cast<const std::uint16_t*>(column.codes));
            default: return gather(static_cast<const std::uint32_t*>(column.codes));
        }
    }
    // Closes the gaps that missing values leave, and counts them.
    Known set_missing_aside(const Column& column, ptrdiff_t feature) {
        ptrdiff_t known = 0, missing = 0;
        std::uint32_t* missing_tags = reinterpret_cast<std::uint32_t*>(pairs_.data());
        for (ptrdiff_t i = 0; i < end_ - start_; ++i) {
            const bool is_missing = column.is_missing(codes_[i]);
            const std::uint32_t tag = tags_[start_ + i];
            codes_[known] = codes_[i];
            known_tags_[known] = tag;
            missing_tags[missing] = tag;
            known += !is_missing;
            missing += is_missing;
        }
        sum_tags(missing_tags, missing, missing_totals_);
        return {&column, known_tags_.data(), feature, known, missing, false};
    }

    bool try_feature(ptrdiff_t feature) {
        const Column& column = columns_.ranked[feature];
        gather(column);
        Known known{&column, &tags_[start_], feature, end_ - start_, 0, false};
        if (column.missing) known = set_missing_aside(column, feature);
        if (known.rows == 0) return false;

        const auto codes = std::minmax_element(codes_.data(), codes_.data() + known.rows);
        const std::uint32_t low = *codes.first, high = *codes.second;
        if (known.missing == 0 && column.value(high) <= column.value(low) + near_value)
            return false;
        const ptrdiff_t n_codes = (high >> 1) - (low >> 1) + 1;
        // Where rows are not counted apart from their weights.
        const bool may_count = same_weights_ || growth_.min_samples_leaf == 1;
        if (may_count && n_codes * tally_.counters <= known.rows)
            count(known, low >> 1, n_codes);
        else
            sort(known, low & ~1u, high);
        return true;
    }

    // Runs scan(missing rows' class weights if they go left) once, or for either side.
    template <class Scan> void search(Known& known, Scan scan) {
        tally_.start(totals_.data(), nullptr);
        scan(known);
        if (known.missing == 0) return;
        known.missing_left = true;
        tally_.start(totals_.data(), missing_totals_.data());
        scan(known);
    }

    void count(Known& known, std::uint32_t first, ptrdiff_t n_codes) {
        std::uint64_t* counts = pairs_.data();
        const ptrdiff_t step = tally_.counters;
        std::fill_n(counts, n_codes * step, 0);
        for (ptrdiff_t i = 0; i < known.rows; ++i)
            tally_.count(counts + ((codes_[i] >> 1) - first) * step, known.tags[i]);
        search(known, [&](const Known& side) {
            const float* values = side.column->values + first;
            Queue queue;
            ptrdiff_t last = 0;  // the first code is there
            tally_.add(counts);
            for (ptrdiff_t r = 1; r < n_codes; ++r) {
                if (tally_.empty(counts + r * step)) continue;
                if (values[r] > values[last] + near_value) put(queue, side, first + last, first + r);
                last = r;
                tally_.add(counts + r * step);
            }
            finish(queue, side, 2 * (first + static_cast<std::uint32_t>(last)));
        });
    }
    void put(Queue& queue, const Known& side, std::uint64_t lower_rank, std::uint64_t upper_rank) {
        tally_.put(queue);
        queue.place[queue.count++] = static_cast<std::int64_t>(lower_rank << 33 | upper_rank << 1);
        if (queue.is_full()) score(queue, side);
    }

    void sort(Known& known, std::uint32_t base, std::uint32_t high) {
        std::uint64_t* pairs = pairs_.data();
        const ptrdiff_t m = known.rows;
        if (m <= kernels_.small_node && high - base < 1u << (31 - place_bits)) {
            std::int32_t keys[1 << place_bits], sorted[1 << place_bits];
            for (ptrdiff_t i = 0; i < m; ++i)
                keys[i] = static_cast<std::int32_t>((codes_[i] - base) << place_bits | i);
            kernels_.rank_sort(keys, m, sorted);
            constexpr std::int32_t place = (1 << place_bits) - 1;
            for (ptrdiff_t i = 0; i < m; ++i)
                pairs[i] = static_cast<std::uint64_t>(sorted[i] >> place_bits) << 32 |
                           known.tags[sorted[i] & place];
        } else {
            for (ptrdiff_t i = 0; i < m; ++i)
                pairs[i] = static_cast<std::uint64_t>(codes_[i] - base) << 32 | known.tags[i];
            int bits = 1;
            while (bits < 32 && (high - base) >> bits) ++bits;
            pairs = radix_sort(pairs, pairs + m, m, bits);
        }
        search(known, [&](const Known& side) { scan(side, pairs, base); });
    }

    void scan(const Known& side, const std::uint64_t* pairs, std::uint32_t base) {
        const Column& column = *side.column;
        const ptrdiff_t m = side.rows, least = growth_.min_samples_leaf;
        const ptrdiff_t first = side.missing_left ? least - side.missing : least;
        const ptrdiff_t last = side.missing_left ? m - least : m + side.missing - least;
        Queue queue;
        auto lower = static_cast<std::uint32_t>(pairs[0] >> 32);
        tally_.add(static_cast<std::uint32_t>(pairs[0]));
        for (ptrdiff_t p = 1; p < m; ++p) {
            const auto code = static_cast<std::uint32_t>(pairs[p] >> 32);
            tally_.put(queue);
            queue.place[queue.count] = static_cast<std::int64_t>(
                static_cast<std::uint64_t>(base + lower) << 32 | (base + code));
            bool may_split = (code != lower) & (p >= first) & (p <= last);
            if (code & 1) may_split = may_split && column.apart(base + lower, base + code);
            queue.count += may_split;
            if (queue.is_full()) score(queue, side);
            tally_.add(static_cast<std::uint32_t>(pairs[p]));
            lower = code;
        }
        finish(queue, side, base + lower);
    }

    // The split that has only missing values on the right, and what is left of the queue.
    void finish(Queue& queue, const Known& side, std::uint32_t last) {
        if (side.missing && !side.missing_left && side.rows >= growth_.min_samples_leaf &&
            side.missing >= growth_.min_samples_leaf) {
            tally_.put(queue);
            queue.place[queue.count++] = static_cast<std::int64_t>(
                static_cast<std::uint64_t>(last) << 32 | nothing);
        }
        if (queue.count) score(queue, side);
    }

    void score(Queue& queue, const Known& side) {
        const double proxy = tally_.score(kernels_, queue, least_);
        if (proxy > best_.proxy) {
            const auto place = static_cast<std::uint64_t>(queue.place_of(proxy));
            best_ = {proxy, side.feature, static_cast<std::uint32_t>(place >> 32),
                     static_cast<std::uint32_t>(place), side.missing_left, side.missing > 0};
        }
        queue.count = 0;
    }

    // Moves the rows and evaluates the best split as scikit-learn does in the end.
    void carry_out(double impurity, Split* split) {
        const Column& column = columns_.ranked[best_.feature];
        gather(column);
        ptrdiff_t left = start_, right = 0;
        for (ptrdiff_t p = start_; p < end_; ++p) {
            const std::uint32_t code = codes_[p - start_], row = static_cast<std::uint32_t>(rows_[p]);
            const std::uint32_t tag = tags_[p];
            bool goes_left = code >> 1 <= best_.lower >> 1;
            if (column.missing && column.is_missing(code)) goes_left = best_.missing_left;
            rows_[left] = static_cast<std::int32_t>(row);
            tags_[left] = tag;
            pairs_[right] = static_cast<std::uint64_t>(row) << 32 | tag;
            left += goes_left;
            right += !goes_left;
        }
        for (ptrdiff_t i = 0; i < right; ++i) {
            rows_[left + i] = static_cast<std::int32_t>(pairs_[i] >> 32);
            tags_[left + i] = static_cast<std::uint32_t>(pairs_[i]);
        }
        split->position = left;
        split->feature = best_.feature;
        split->threshold = best_.upper == nothing
                               ? std::numeric_limits<double>::infinity()
                               : column.value(best_.lower) / 2.0 + column.value(best_.upper) / 2.0;
        split->missing_go_left = best_.has_missing ? best_.missing_left : left - start_ > right;
        sum(start_, left, missing_totals_);
        const double left_weight = total(missing_totals_), right_weight = weight_ - left_weight;
        split->left_impurity = gini(missing_totals_.data(), left_weight);
        for (std::size_t c = 0; c < totals_.size(); ++c)
            missing_totals_[c] = totals_[c] - missing_totals_[c];
        split->right_impurity = gini(missing_totals_.data(), right_weight);
        split->improvement =
            (weight_ / total_weight_) * (impurity - (right_weight / weight_ * split->right_impurity) -
                                         (left_weight / weight_ * split->left_impurity));
    }

    const Growth& growth_;
    const Columns& columns_;
    const SearchKernels& kernels_;
    Xorshift random_;
    FeatureDraw draw_;
    Tally tally_;
    std::vector<std::int32_t> rows_;
    std::vector<std::uint32_t> tags_, codes_, known_tags_, totals_, missing_totals_;
    std::vector<std::uint64_t> pairs_;
    const bool same_weights_;
    const double least_;  // weight of a child
    double total_weight_ = 0, weight_ = 0;
    ptrdiff_t start_ = 0, end_ = 0;
    Best best_;
};

// All sums of squares are below 2^53, and a row's weight and class share 32 bits.
bool is_exact(const Growth& growth, const Weights& weights) {
    constexpr double most = 1 << 26;
    const double largest = std::ldexp(1.0, 32 - class_bits(growth.max_n_classes)) - 1;
    double sum = 0;
    for (ptrdiff_t i = 0; i < growth.columns->n; ++i) {
        const double w = weights[i];
        if (!(w >= 0 && w <= largest) || w != std::floor(w)) return false;
        sum += w;
    }
    return sum <= most;
}

}  // namespace

std::unique_ptr<Splitter> counted_splitter(const Growth& growth, const Weights& weights,
                                           std::uint32_t seed) {
    if (growth.criterion != CriterionName::gini || growth.n_outputs != 1 || growth.monotonic ||
        growth.random_splits || !is_exact(growth, weights))
        return nullptr;
    if (growth.max_n_classes <= 2) return std::make_unique<Counted<TwoClasses>>(growth, weights, seed);
    return std::make_unique<Counted<ManyClasses>>(growth, weights, seed);
}

}  // namespace fastml
