// Best splits where sums are exact in any order.
#include "trees/exact.h"
#include "trees/feature_words.h"

namespace fastml {

using std::ptrdiff_t;

namespace {

constexpr int place_bits = 7;  // of a row in a small node
constexpr std::uint32_t nothing = ~std::uint32_t{0};

template <class Tally> class BestExact final : public Exact<Tally> {
  public:
    explicit BestExact(const Growth& growth)
        : Exact<Tally>(growth), missing_sums_(tally_.none()), codes_(columns_.n + row_slack),
          known_tags_(columns_.n + row_slack),
          level_counts_(columns_.levels ? most_levels * tally_.counters : 0), words_(growth) {
        std::fill_n(level_numbers_, most_levels, -1);
    }

    Split split(Inherited& inherited) override {
        best_ = {};
        words_.begin(this->rows(), size());
        inherited.constants = draw_.each(random_, inherited.constants,
                                         [&](ptrdiff_t feature) { return try_feature(feature); });
        score_words();
        Split split{end_};
        if (best_.lower != nothing) carry_out(inherited.impurity, split);
        return split;
    }
    LevelSet levels() const override { return best_.levels; }

  private:
    using Exact<Tally>::growth_;
    using Exact<Tally>::columns_;
    using Exact<Tally>::kernels_;
    using Exact<Tally>::random_;
    using Exact<Tally>::draw_;
    using Exact<Tally>::tally_;
    using Exact<Tally>::total_;
    using Exact<Tally>::pairs_;
    using Exact<Tally>::sides_;
    using Exact<Tally>::start_;
    using Exact<Tally>::end_;
    using Exact<Tally>::size;

    struct Best {
        double proxy = -std::numeric_limits<double>::infinity();
        ptrdiff_t feature = 0;
        std::uint32_t lower = nothing;  // the largest code that goes left
        std::uint32_t upper = nothing;  // the smallest that goes right, if one does
        std::uint32_t left = 0;         // the rows that go left, if split_few has told them
        bool missing_left = false, has_missing = false;
        LevelSet levels{};  // that go left, of a categorical feature
    };
    // The rows of the node that have a value of the feature, and how the others are counted.
    struct Known {
        const Column* column;
        const std::uint32_t* tags;
        ptrdiff_t feature, rows, missing;
        bool missing_left;
    };

    // Closes the gaps that missing values leave, and counts them.
    Known set_missing_aside(const Column& column, ptrdiff_t feature) {
        ptrdiff_t known = 0, missing = 0;
        std::uint32_t* missing_tags = reinterpret_cast<std::uint32_t*>(pairs_.data());
        for (ptrdiff_t i = 0; i < size(); ++i) {
            const bool is_missing = column.is_missing(codes_[i]);
            const std::uint32_t tag = this->tags()[i];
            codes_[known] = codes_[i];
            known_tags_[known] = tag;
            missing_tags[missing] = tag;
            known += !is_missing;
            missing += is_missing;
        }
        tally_.sum(missing_tags, missing, missing_sums_);
        return {&column, known_tags_.data(), feature, known, missing, false};
    }

    // Whether rows are not counted apart from their weights.
    bool may_count() const { return this->ones_ || growth_.min_samples_leaf == 1; }

    // Has a row or a few stand for all those of the common value: the rest is less to sort.
    Known merge_common(const Column& column, ptrdiff_t feature) {
        std::uint32_t* const tags = known_tags_.data();
        ptrdiff_t rows =
            kernels_.uncommon(column, this->rows(), this->tags(), size(), codes_.data(), tags);
        if (rows < size()) {
            tally_.sum(tags, rows, this->left_);
            tally_.subtract(total_, this->left_, this->right_);
            const ptrdiff_t merged = tally_.merge(this->right_, tags + rows);
            std::fill_n(codes_.data() + rows, merged, column.common);
            rows += merged;
        }
        return {&column, tags, feature, rows, 0, false};
    }

    bool try_feature(ptrdiff_t feature) {
        if (tally_.has_few() && words_.has(feature)) {
            if (words_.is_full()) score_words();
            return words_.put_off(feature);
        }
        score_words();  // of features drawn before
        const Column& column = columns_.ranked[feature];
        if (is_categorical(feature)) return try_levels(column, feature);
        if (tally_.has_few() && !column.missing && column.n_values < 1 << 23) {
            const FewSplit split = split_few(column, this->rows(), size(), tally_.few_points(),
                                             growth_.min_samples_leaf, this->least_);
            if (split.kind == FewSplit::constant) return false;
            if (split.kind == FewSplit::varied) {
                if (split.proxy > best_.proxy)
                    best_ = {split.proxy, feature, split.lower, split.upper,
                             split.left,  false,   false,       {}};
                return true;
            }
        }
        if (words_.has_wide(feature)) {
            if (!words_.varies(feature)) return false;
            return try_sides(feature, words_.divide(feature, sides_.data()));
        }
        if (column.has_two_values()) return try_binary(column, feature);
        const bool may_merge = may_count() && !column.missing && column.common != no_code &&
                               tally_.can_merge(this->tree_weight_);
        if (may_count() && !may_merge && !column.missing && column.width == 1 &&
            column.n_values * tally_.counters <= size())
            return try_all_values(column, feature);
        Known known{&column, this->tags(), feature, size(), 0, false};
        if (may_merge) {
            known = merge_common(column, feature);
        } else {
            column.gather(this->rows(), size(), codes_.data());
            if (column.missing) known = set_missing_aside(column, feature);
        }
        if (known.rows == 0) return false;

        std::uint32_t low, high;
        kernels_.range(codes_.data(), known.rows, &low, &high);
        if (known.missing == 0 && column.value(high) <= column.value(low) + near_value)
            return false;
        const ptrdiff_t n_codes = (high >> 1) - (low >> 1) + 1;
        if (may_count() && n_codes * tally_.counters <= known.rows + 1)
            count(known, low >> 1, n_codes);
        else
            sort(known, low & ~1u, high);
        return true;
    }

    void score_words() {
        if (!words_.any_waits()) return;
        const FewBest found = words_.score(tally_.few_points(), this->least_);
        if (found.proxy > best_.proxy)
            best_ = {found.proxy, words_.feature(found), 0, 2, found.left, false, false, {}};
    }

    // There is one split to score.
    bool try_binary(const Column& column, ptrdiff_t feature) {
        const ptrdiff_t n_left =
            kernels_.up_to(column, this->rows(), size(), 0, no_code, sides_.data());
        if (n_left == 0 || n_left == size() || !column.apart(0, 3)) return false;
        return try_sides(feature, n_left);
    }
    bool try_sides(ptrdiff_t feature, ptrdiff_t n_left) {
        const ptrdiff_t n_right = size() - n_left;
        if (n_left < growth_.min_samples_leaf || n_right < growth_.min_samples_leaf) return true;
        tally_.sum_left(sides_.data(), this->tags(), size(), this->left_);
        tally_.subtract(total_, this->left_, this->right_);
        if (tally_.weight(this->left_) < this->least_ || tally_.weight(this->right_) < this->least_)
            return true;
        const double proxy = tally_.proxy(this->left_, this->right_);
        if (proxy > best_.proxy) best_ = {proxy, feature, 0, 2, 0, false, false, {}};
        return true;
    }

    bool is_categorical(ptrdiff_t feature) const {
        return columns_.levels && columns_.levels[feature];
    }
    // Levels that the node has, numbered as they are met: small nodes have few of many.
    struct Met {
        std::int32_t count = 0, ranks[most_levels], order[most_levels];
        ptrdiff_t rows[most_levels];
    };
    // Breiman's theorem: of two classes, or by squared error, the best of all splits in two sets
    // is one along the order of the levels' means (Classification and Regression Trees, 4.2).
    bool try_levels(const Column& column, ptrdiff_t feature) {
        column.gather(this->rows(), size(), codes_.data());
        Met met;
        std::int32_t* const number = level_numbers_;  // of each rank, -1: not met
        for (ptrdiff_t i = 0; i < size(); ++i) {
            const auto rank = static_cast<std::int32_t>(codes_[i] >> 1);
            if (number[rank] < 0) {
                number[rank] = met.count;
                met.ranks[met.count] = rank;
                met.order[met.count] = met.count;
                met.rows[met.count++] = 0;
            }
            ++met.rows[number[rank]];
            codes_[i] = static_cast<std::uint32_t>(number[rank]);
        }
        for (std::int32_t k = 0; k < met.count; ++k) number[met.ranks[k]] = -1;
        if (met.count < 2) return false;
        auto* const counts = level_counts_.data();
        tally_.count([codes = codes_.data()](ptrdiff_t i) { return codes[i]; }, this->tags(),
                     size(), met.count, counts);
        double means[most_levels];
        for (ptrdiff_t o = 0; o < tally_.orders(); ++o) {
            for (std::int32_t k = 0; k < met.count; ++k)
                means[k] = tally_.mean(counts + k * tally_.counters, o);
            std::sort(met.order, met.order + met.count, [&](std::int32_t a, std::int32_t b) {
                return means[a] < means[b] || (means[a] == means[b] && met.ranks[a] < met.ranks[b]);
            });
            scan_levels(column, feature, met);
        }
        return true;
    }
    void scan_levels(const Column& column, ptrdiff_t feature, const Met& met) {
        Queue queue;  // has room for all
        ptrdiff_t n_left = 0;
        tally_.start(total_, nullptr);
        for (std::int32_t i = 1; i < met.count; ++i) {
            tally_.add(level_counts_.data() + met.order[i - 1] * tally_.counters);
            n_left += met.rows[met.order[i - 1]];
            if (n_left < growth_.min_samples_leaf || size() - n_left < growth_.min_samples_leaf)
                continue;
            tally_.put(queue);
            queue.place[queue.count++] = i;
        }
        if (!queue.count) return;
        const double proxy = tally_.score(queue, this->least_);
        if (!(proxy > best_.proxy)) return;
        best_ = {proxy, feature, 0, nothing, 0, false, false, {}};
        const ptrdiff_t cut = queue.place_of(proxy);
        for (ptrdiff_t i = 0; i < cut; ++i)
            best_.levels.add(static_cast<std::int32_t>(column.values[met.ranks[met.order[i]]]));
    }
    // Levels that the node does not have follow the larger child.
    void carry_out_levels(const Column& column, Split& split) {
        column.gather(this->rows(), size(), codes_.data());
        LevelSet present{};
        for (ptrdiff_t i = 0; i < size(); ++i) {
            const auto level = static_cast<std::int32_t>(column.value(codes_[i]));
            present.add(level);
            sides_[i] = best_.levels.has(level);
        }
        split.position = this->divide();
        split.missing_go_left = split.position - start_ > end_ - split.position;
        if (split.missing_go_left) best_.levels.add_others(present, columns_.levels[best_.feature]);
        split.threshold = std::numeric_limits<double>::quiet_NaN();
    }

    // Runs scan(missing rows' class weights if they go left) once, or for either side.
    template <class Scan> void search(Known& known, Scan scan) {
        tally_.start(total_, nullptr);
        scan(known);
        if (known.missing == 0) return;
        known.missing_left = true;
        tally_.start(total_, &missing_sums_);
        scan(known);
    }

    typename Tally::Counter* counts() {
        return reinterpret_cast<typename Tally::Counter*>(pairs_.data());
    }
    // So few values that they need not be looked for first.
    bool try_all_values(const Column& column, ptrdiff_t feature) {
        const auto* codes = static_cast<const std::uint8_t*>(column.codes);
        const ptrdiff_t step = tally_.counters;
        tally_.count([codes, rows = this->rows()](ptrdiff_t i) { return codes[rows[i]] >> 1; },
                     this->tags(), size(), column.n_values, counts());
        ptrdiff_t low = 0, high = column.n_values - 1;
        while (tally_.empty(counts() + low * step)) ++low;
        while (tally_.empty(counts() + high * step)) --high;
        if (column.values[high] <= column.values[low] + near_value) return false;
        Known known{&column, this->tags(), feature, size(), 0, false};
        scan_counts(known, static_cast<std::uint32_t>(low), high - low + 1, counts() + low * step);
        return true;
    }
    void count(Known& known, std::uint32_t first, ptrdiff_t n_codes) {
        tally_.count(
            [codes = codes_.data(), first](ptrdiff_t i) { return (codes[i] >> 1) - first; },
            known.tags, known.rows, n_codes, counts());
        scan_counts(known, first, n_codes, counts());
    }
    // Values from `first` on, which is there.
    void scan_counts(Known& known, std::uint32_t first, ptrdiff_t n_codes,
                     const typename Tally::Counter* counts) {
        const ptrdiff_t step = tally_.counters;
        search(known, [&](const Known& side) {
            const float* values = side.column->values + first;
            Queue queue;
            ptrdiff_t last = 0;
            tally_.add(counts);
            for (ptrdiff_t r = 1; r < n_codes; ++r) {
                if (tally_.empty(counts + r * step)) continue;
                if (values[r] > values[last] + near_value)
                    put(queue, side, first + last, first + r);
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
        const ptrdiff_t m = side.rows, least = may_count() ? 1 : growth_.min_samples_leaf;
        const ptrdiff_t first = side.missing_left ? least - side.missing : least;
        const ptrdiff_t last = side.missing_left ? m - least : m + side.missing - least;
        if constexpr (Tally::scans)
            if (!side.missing && tally_.can_scan()) return scan_all(side, pairs, base, first, last);
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

    // The same by vectors, without missing values.
    void scan_all(const Known& side, const std::uint64_t* pairs, std::uint32_t base,
                  ptrdiff_t first, ptrdiff_t last) {
        constexpr ptrdiff_t step = Queue::room - row_slack;
        Queue queue;
        for (ptrdiff_t p = 0; p < side.rows; p += step) {
            tally_.scan({pairs, p, std::min(p + step, side.rows), first, last, base}, queue);
            drop_close(queue, *side.column);
            if (queue.count) score(queue, side);
        }
    }
    // Leaves out splits between codes that are too close.
    static void drop_close(Queue& queue, const Column& column) {
        std::int64_t bits = 0;
        for (ptrdiff_t s = 0; s < queue.count; ++s) bits |= queue.place[s];
        if (!(bits & 1)) return;
        queue.keep([&](std::int64_t place) {
            return column.apart(static_cast<std::uint32_t>(place >> 32),
                                static_cast<std::uint32_t>(place));
        });
    }

    // The split that has only missing values on the right, and what is left of the queue.
    void finish(Queue& queue, const Known& side, std::uint32_t last) {
        if (side.missing && !side.missing_left && side.rows >= growth_.min_samples_leaf &&
            side.missing >= growth_.min_samples_leaf) {
            tally_.put(queue);
            queue.place[queue.count++] =
                static_cast<std::int64_t>(static_cast<std::uint64_t>(last) << 32 | nothing);
        }
        if (queue.count) score(queue, side);
    }

    void score(Queue& queue, const Known& side) {
        const double proxy = tally_.score(queue, this->least_);
        if (proxy > best_.proxy) {
            const auto place = static_cast<std::uint64_t>(queue.place_of(proxy));
            best_ = {proxy,
                     side.feature,
                     static_cast<std::uint32_t>(place >> 32),
                     static_cast<std::uint32_t>(place),
                     0,
                     side.missing_left,
                     side.missing > 0,
                     {}};
        }
        queue.count = 0;
    }

    // Moves the rows and evaluates the best split as scikit-learn does in the end.
    void carry_out(double impurity, Split& split) {
        const Column& column = columns_.ranked[best_.feature];
        split.feature = best_.feature;
        if (best_.left) {
            this->carry_out_few(best_.left, impurity, split);
            split.threshold = between(column);
            split.missing_go_left = split.position - start_ > end_ - split.position;
            return;
        }
        if (is_categorical(best_.feature))
            carry_out_levels(column, split);
        else
            carry_out_numbers(column, split);
        this->evaluate(impurity, split);
    }
    double between(const Column& column) const {
        return column.value(best_.lower) / 2.0 + column.value(best_.upper) / 2.0;
    }
    void carry_out_numbers(const Column& column, Split& split) {
        const std::uint32_t last = best_.lower | 1;  // whose value is that of `lower`
        const std::uint32_t missing = best_.missing_left ? column.missing_code() : no_code;
        if (words_.has_wide(best_.feature))
            words_.divide(best_.feature, sides_.data());
        else
            kernels_.up_to(column, this->rows(), size(), last, missing, sides_.data());
        split.position = this->divide();
        split.threshold =
            best_.upper == nothing ? std::numeric_limits<double>::infinity() : between(column);
        split.missing_go_left = best_.has_missing ? best_.missing_left
                                                  : split.position - start_ > end_ - split.position;
    }

    typename Tally::Sums missing_sums_;
    std::vector<std::uint32_t> codes_, known_tags_;
    std::vector<typename Tally::Counter> level_counts_;  // (most_levels, counters)
    std::int32_t level_numbers_[most_levels];
    FeatureWords words_;
    Best best_;
};

}  // namespace

int grid_of_targets(const Growth& growth) {
    if (growth.n_outputs != 1 || growth.criterion != CriterionName::squared_error) return no_grid;
    return TargetTally::grid(growth);
}

bool sums_are_exact(const Growth& growth, const Weights& weights) {
    if (growth.n_outputs != 1 || growth.monotonic) return false;
    if (growth.criterion == CriterionName::gini || growth.criterion == CriterionName::entropy)
        return ClassTally::fits(growth, weights);
    return growth.criterion == CriterionName::squared_error && TargetTally::fits(growth, weights);
}

std::unique_ptr<Splitter> exact_best_splitter(const Growth& growth) {
    return make_exact<BestExact>(growth);
}

}  // namespace fastml
