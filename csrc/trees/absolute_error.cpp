// Mean absolute error about the median. For every position in a node scikit-learn has the error of
// the rows before it and of those from it on: it puts row after row into a Fenwick tree by the rank
// of the target and asks that for the median and the sum below it. The sums of the tree are added
// here in the same order, so they have the same bits, but without branches, and the median is not
// searched for: it is known from the ranks alone, by taking rows out of a list of all. Weights that
// are not whole numbers add up to something near what scikit-learn compares; where that is too near
// to tell which side the median is on, its search is repeated. Where one split is asked for, one pass
// over the rows does.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "trees/criterion.h"
#include "trees/fenwick.h"
#include "trees/replay.h"

namespace fastml {

using std::ptrdiff_t;

namespace {

class AbsoluteError final : public Criterion {
  public:
    AbsoluteError(const Growth& growth, const std::int32_t* rows)
        : Criterion(growth, rows), n_(growth.columns->n), codes_(n_ * growth.n_outputs),
          rank_of_row_(n_ * growth.n_outputs), rank_(n_), order_(n_), sorted_(n_ + 1),
          nodes_(n_ + n_ / 2 + 2), median_(n_), errors_left_(n_), errors_right_(n_),
          node_medians_(growth.n_outputs), distinct_(growth.n_outputs), scratch_(n_) {
        if (!scratch_) throw std::bad_alloc();
        if (growth.monotonic) {
            medians_left_.resize(n_);
            medians_right_.resize(n_);
        }
        for (ptrdiff_t k = 0; k < growth.n_outputs; ++k) encode(k);
    }

    void weigh(const Weights& weights) override {
        Criterion::weigh(weights);
        ones_ = !weights.real && !weights.counts;
        whole_ = total_weight_ < std::numeric_limits<std::int32_t>::max();
        if (weights.real)
            for (ptrdiff_t i = 0; i < n_; ++i)
                whole_ = whole_ && weights.real[i] >= 0 &&
                         weights.real[i] == std::floor(weights.real[i]);
        if (!ones_) {
            weight_of_rank_.resize(n_ + 2);
            below_.resize(n_);
        }
        if (!whole_) weight_nodes_.resize(nodes_.size());
    }

    void init(ptrdiff_t start, ptrdiff_t end) override {
        start_ = start;
        end_ = end;
        node_weight_ = 0;
        for (ptrdiff_t p = start; p < end; ++p) node_weight_ += weight(p);
        to_start();
        error_ = 0;
        for (ptrdiff_t k = 0; k < growth_.n_outputs; ++k) {
            rank(k, true);
            error_ += error_of(size() - 1, -1, size(), &node_medians_[k]);
        }
    }

    void reset() override {
        to_start();
        std::fill_n(errors_left_.begin(), size(), 0.0);
        std::fill_n(errors_right_.begin(), size(), 0.0);
        for (ptrdiff_t k = 0; k < growth_.n_outputs; ++k) {
            rank(k, false);
            pass(0, 1, errors_left_, medians_left_);
            pass(size() - 1, -1, errors_right_, medians_right_);
            node_medians_[k] = median_[0];
        }
    }
    void update(ptrdiff_t position) override {
        for (; position_ < position; ++position_) left_weight_ += weight(position_);
        right_weight_ = node_weight_ - left_weight_;
    }
    void settle(ptrdiff_t position) override {
        to_start();
        update(position);
        const ptrdiff_t left = position - start_, right = end_ - position;
        double error_left = 0, error_right = 0, median_left = 0, median_right = 0;
        for (ptrdiff_t k = 0; k < growth_.n_outputs; ++k) {
            rank(k, false);
            if (left) error_left += error_of(0, 1, left, &median_left);
            if (right) error_right += error_of(size() - 1, -1, right, &median_right);
            // Like scikit-learn's, the node's value is what the rows give in their last order: of
            // sums that are rounded, whether just half of the weight lies below a row hangs on it.
            if (!whole_) error_of(size() - 1, -1, size(), &node_medians_[k]);
        }
        if (left) errors_left_[left - 1] = error_left;
        if (right) errors_right_[left] = error_right;
        if (left && growth_.monotonic) medians_left_[left - 1] = median_left;
        if (right && growth_.monotonic) medians_right_[left] = median_right;
    }

    double impurity() const override {
        return error_ / (node_weight_ * static_cast<double>(growth_.n_outputs));
    }
    void children_impurity(double* left, double* right) const override {
        const auto outputs = static_cast<double>(growth_.n_outputs);
        const double before = position_ > start_ ? errors_left_[position_ - start_ - 1] : 0.0;
        const double after = position_ < end_ ? errors_right_[position_ - start_] : 0.0;
        *left = before / (left_weight_ * outputs);
        *right = after / (right_weight_ * outputs);
    }
    void value(double* out) const override {
        std::copy(node_medians_.begin(), node_medians_.end(), out);
    }
    double left_value() const override { return medians_left_[position_ - start_ - 1]; }
    double right_value() const override { return medians_right_[position_ - start_]; }
    double middle_value() const override { return (left_value() + right_value()) / 2; }

  private:
    static constexpr int most_levels = 33;

    ptrdiff_t size() const { return end_ - start_; }
    void to_start() {
        position_ = start_;
        left_weight_ = 0;
        right_weight_ = node_weight_;
    }
    double y(std::int32_t row, ptrdiff_t k) const { return growth_.y[row * growth_.n_outputs + k]; }

    // Ranks of the k-th output among its distinct values.
    void encode(ptrdiff_t k) {
        std::iota(order_.begin(), order_.end(), 0);
        std::sort(order_.begin(), order_.end(),
                  [&](std::int32_t a, std::int32_t b) { return y(a, k) < y(b, k); });
        std::uint32_t code = 0;
        for (ptrdiff_t i = 0; i < n_; ++i) {
            code += i && y(order_[i], k) != y(order_[i - 1], k);
            codes_[k * n_ + order_[i]] = code;
        }
    }

    // rank_: of the node's rows by the k-th output; sorted_: that in order. Among ties the rank
    // depends on the order of the rows; without ties each row keeps the one it has in the node.
    void rank(ptrdiff_t k, bool new_node) {
        const std::int32_t* rows = rows_ + start_;
        std::int32_t* known = rank_of_row_.data() + k * n_;
        const ptrdiff_t m = size();
        if (!new_node && distinct_[k]) {
            for (ptrdiff_t i = 0; i < m; ++i) rank_[i] = static_cast<std::uint32_t>(known[rows[i]]);
            if (growth_.n_outputs > 1)
                for (ptrdiff_t i = 0; i < m; ++i) sorted_[rank_[i]] = y(rows[i], k);
        } else {
            for (ptrdiff_t i = 0; i < m; ++i) rank_[i] = codes_[k * n_ + rows[i]];
            std::iota(order_.begin(), order_.begin() + m, 0);
            replay_sort(rank_.data(), order_.data(), m, scratch_);
            distinct_[k] =
                std::adjacent_find(rank_.begin(), rank_.begin() + m) == rank_.begin() + m;
            for (ptrdiff_t j = 0; j < m; ++j) sorted_[j] = y(rows[order_[j]], k);
            for (ptrdiff_t j = 0; j < m; ++j) rank_[order_[j]] = static_cast<std::uint32_t>(j);
            if (distinct_[k])
                for (ptrdiff_t i = 0; i < m; ++i)
                    known[rows[i]] = static_cast<std::int32_t>(rank_[i]);
        }
        if (!ones_)
            for (ptrdiff_t i = 0; i < m; ++i) weight_of_rank_[rank_[i] + 1] = weight(start_ + i);
    }

    // The error about the median, from what is below it and in all.
    static double error(double total_w, double total_wy, double w, double wy, double median) {
        return ((total_wy - wy) - median * (total_w - w)) + (median * w - wy);
    }

    // How far two sums of the node's weights can be apart that are added up in any two orders.
    double doubt() const {
        return whole_ ? 0.0 : 2e-15 * static_cast<double>(size() + 64) * node_weight_;
    }

    // Errors, and medians if they matter, of the sets of rows that grow from the one at `first`.
    void pass(ptrdiff_t first, ptrdiff_t step, std::vector<double>& errors,
              std::vector<double>& medians) {
        if (ones_) {
            find_medians(first, step);
            add_up<Kind::ones>(first, step, errors);
        } else if (!find_weighted_medians(first, step)) {
            search(first, step, errors);
        } else if (whole_) {
            add_up<Kind::whole>(first, step, errors);
        } else {
            add_up<Kind::any>(first, step, errors);
        }
        if (growth_.monotonic) std::copy_n(median_.begin(), size(), medians.begin());
    }

    // order_: the rank of the median, the upper one of two; median_: its value.
    void find_medians(ptrdiff_t first, ptrdiff_t step) {
        const auto m = static_cast<std::uint32_t>(size());
        std::uint32_t *next, *previous;
        link(next, previous);
        std::uint32_t r = m / 2 + 1;
        for (std::uint32_t t = m; t > 0; --t) {
            const ptrdiff_t p = first + step * static_cast<ptrdiff_t>(t - 1);
            const std::uint32_t s = rank_[p] + 1, after = next[r], before = previous[r];
            order_[p] = static_cast<std::int32_t>(r - 1);
            const bool even = t % 2 == 0;
            const double upper = sorted_[r - 1], lower = sorted_[(even ? before : r) - 1];
            median_[p] = even ? (lower + upper) / 2 : upper;
            const bool moves = even ? s >= r : s <= r;
            const std::uint32_t to = even ? before : after;
            r = moves ? to : r;
            next[previous[s]] = next[s];
            previous[next[s]] = previous[s];
        }
    }
    // All ranks, from 1 on, as a list with an end at either side.
    void link(std::uint32_t*& next, std::uint32_t*& previous) {
        const auto m = static_cast<std::uint32_t>(size());
        next = reinterpret_cast<std::uint32_t*>(scratch_.back.get());
        previous = next + m + 2;
        for (std::uint32_t r = 0; r < m + 2; ++r) {
            next[r] = r + 1;
            previous[r] = r - 1;
        }
    }

    // The same, and below_: the weight below the median. That is the first value up to which there
    // is more than half of the weight, or the middle between it and the one before if that is
    // where the first half ends. False if that cannot be told.
    bool find_weighted_medians(ptrdiff_t first, ptrdiff_t step) {
        const auto m = static_cast<std::uint32_t>(size());
        const double* w = weight_of_rank_.data();
        std::uint32_t *next, *previous;
        link(next, previous);
        std::uint32_t r = 1;
        double below = 0, total = node_weight_;
        const double doubt = this->doubt();
        for (std::uint32_t t = m; t > 0; --t) {
            while (r <= m && 2 * (below + w[r]) <= total) {
                below += w[r];
                r = next[r];
            }
            while (r >= 1 && 2 * below > total) {
                r = previous[r];
                below -= w[r];
            }
            if (!whole_ && !(r >= 1 && r <= m && 2 * below + doubt < total &&
                             2 * (below + w[r]) > total + doubt))
                return false;
            const ptrdiff_t p = first + step * static_cast<ptrdiff_t>(t - 1);
            order_[p] = static_cast<std::int32_t>(r - 1);
            below_[p] = below;
            median_[p] = 2 * below == total ? (sorted_[previous[r] - 1] + sorted_[r - 1]) / 2
                                            : sorted_[r - 1];
            const std::uint32_t s = rank_[p] + 1;
            total -= w[s];
            below -= s < r ? w[s] : 0;
            r = s == r ? next[r] : r;
            next[previous[s]] = next[s];
            previous[next[s]] = previous[s];
        }
        return true;
    }

    enum class Kind { ones, whole, any };  // of weights

    // The Fenwick tree for ranks below 2^levels as a heap: the halves of h = 2^levels + rank, down to
    // 1, are the nodes above. The sum of those below r is taken from the top. In a small tree every
    // node on the way is looked at again, the number of levels being known to the compiler; in a
    // large one `path` keeps what they hold, as r moves little.
    template <Kind kind, int fixed>
    void add_up(ptrdiff_t first, ptrdiff_t step, std::vector<double>& errors) {
        const int levels = fixed ? fixed : bits_of(static_cast<std::uint64_t>(size() - 1));
        const std::uint32_t top = std::uint32_t{1} << levels;
        double* const node = nodes_.data();
        double* const weight_node = weight_nodes_.data();
        std::fill_n(node, (top + size()) / 2 + 1, 0.0);
        if (kind == Kind::any) std::fill_n(weight_node, (top + size()) / 2 + 1, 0.0);
        double path[most_levels] = {}, weight_path[most_levels] = {};
        double total_w = 0, total_wy = 0;
        std::uint32_t last = 0;
        ptrdiff_t p = first;
        for (ptrdiff_t t = 0; t < size(); ++t, p += step) {
            const std::uint32_t rank = rank_[p], r = static_cast<std::uint32_t>(order_[p]);
            const double w = kind == Kind::ones ? 1.0 : weight(start_ + p), wy = w * sorted_[rank];
            // A node takes the rows of its left half only: zero for those of the right.
            const double share[2] = {wy, 0.0}, weight_share[2] = {w, 0.0};
            std::uint32_t h = top + rank;
            for (int l = 0; l < levels; ++l) {
                const std::uint32_t right = h & 1;
                h >>= 1;
                node[h] += share[right];
                if (kind == Kind::any) weight_node[h] += weight_share[right];
            }
            total_w += w;
            total_wy += wy;
            if (!fixed) {
                const int l = bits_of((rank ^ r) >> 1);
                path[l] += share[rank >= r];
                if (kind == Kind::any) weight_path[l] += weight_share[rank >= r];
            }
            h = top + r;
            std::uint32_t moved = r ^ last;
            for (int l = 0; fixed ? l < levels : moved != 0; ++l, moved >>= 1) {
                const std::uint32_t left = 0 - (h & 1);
                h >>= 1;
                path[l] = node[h & left];  // node[0] is none
                if (kind == Kind::any) weight_path[l] = weight_node[h & left];
            }
            last = r;
            double below = 0, w_below = 0;
            for (int l = levels - 1; l >= 0; --l) below += path[l];
            if (kind == Kind::any)
                for (int l = levels - 1; l >= 0; --l) w_below += weight_path[l];
            else
                w_below = kind == Kind::ones ? static_cast<double>((t + 1) / 2) : below_[p];
            errors[p] += error(total_w, total_wy, w_below, below, median_[p]);
        }
    }
    template <Kind kind>
    void add_up(ptrdiff_t first, ptrdiff_t step, std::vector<double>& errors) {
        switch (bits_of(static_cast<std::uint64_t>(size() - 1))) {
            case 1:
                return add_up<kind, 1>(first, step, errors);
            case 2:
                return add_up<kind, 2>(first, step, errors);
            case 3:
                return add_up<kind, 3>(first, step, errors);
            case 4:
                return add_up<kind, 4>(first, step, errors);
            case 5:
                return add_up<kind, 5>(first, step, errors);
            case 6:
                return add_up<kind, 6>(first, step, errors);
            case 7:
                return add_up<kind, 7>(first, step, errors);
            case 8:
                return add_up<kind, 8>(first, step, errors);
            default:
                return add_up<kind, 0>(first, step, errors);
        }
    }

    // The error and median of one set, `count` rows from `first` on, as add_up has it: a row below
    // the median's rank r is in the one node of those below r that the highest bit in which it
    // differs from r tells.
    double error_of(ptrdiff_t first, ptrdiff_t step, ptrdiff_t count, double* median) {
        const ptrdiff_t m = size();
        double* w = reinterpret_cast<double*>(scratch_.front.get());
        std::fill_n(w, m, 0.0);
        double total_w = 0, total_wy = 0;
        for (ptrdiff_t t = 0, p = first; t < count; ++t, p += step)
            total_w += w[rank_[p]] = weight(start_ + p);
        ptrdiff_t r = 0, before = 0;
        double w_below = 0;
        for (; r + 1 < m && 2 * (w_below + w[r]) <= total_w; ++r) {
            before = w[r] != 0 ? r : before;
            w_below += w[r];
        }
        if (!whole_ &&
            !(2 * w_below + doubt() < total_w && 2 * (w_below + w[r]) > total_w + doubt()))
            return searched_error(first, step, count, median);
        while (w[r] == 0) ++r;
        *median = 2 * w_below == total_w ? (sorted_[before] + sorted_[r]) / 2 : sorted_[r];

        double nodes[most_levels] = {}, weight_nodes[most_levels] = {};
        for (ptrdiff_t t = 0, p = first; t < count; ++t, p += step) {
            const ptrdiff_t rank = rank_[p];
            const double wy = w[rank] * sorted_[rank];
            total_wy += wy;
            if (rank >= r) continue;
            const int l = bits_of(rank ^ r) - 1;
            nodes[l] += wy;
            weight_nodes[l] += w[rank];
        }
        double below = 0;
        for (int l = most_levels; l-- > 0;) below += nodes[l];
        if (!whole_) {
            w_below = 0;
            for (int l = most_levels; l-- > 0;) w_below += weight_nodes[l];
        }
        return error(total_w, total_wy, w_below, below, *median);
    }

    // The median as scikit-learn's search finds it, rounding included.
    void search(ptrdiff_t first, ptrdiff_t step, std::vector<double>& errors) {
        search(first, step, size(), [&](ptrdiff_t p, double error) { errors[p] += error; });
    }
    double searched_error(ptrdiff_t first, ptrdiff_t step, ptrdiff_t count, double* median) {
        double last = 0;
        search(first, step, count, [&](ptrdiff_t, double error) { last = error; });
        *median = median_[first + step * (count - 1)];
        return last;
    }
    template <class Take> void search(ptrdiff_t first, ptrdiff_t step, ptrdiff_t count, Take take) {
        Fenwick tree(size(), reinterpret_cast<double*>(scratch_.back.get()),
                     reinterpret_cast<double*>(scratch_.front.get()));
        double total_w = 0, total_wy = 0;
        for (ptrdiff_t t = 0, p = first; t < count; ++t, p += step) {
            const std::uint32_t rank = rank_[p];
            const double w = weight(start_ + p), wy = w * sorted_[rank];
            tree.add(rank, w, wy);
            total_w += w;
            total_wy += wy;
            const Fenwick::Found found = tree.find(0.5 * total_w);
            median_[p] = found.before != found.rank
                             ? (sorted_[found.before] + sorted_[found.rank]) / 2
                             : sorted_[found.rank];
            take(p, error(total_w, total_wy, found.w, found.wy, median_[p]));
        }
    }

    const ptrdiff_t n_;
    std::vector<std::uint32_t> codes_;  // (n_outputs, n)
    std::vector<std::int32_t> rank_of_row_;
    std::vector<std::uint32_t> rank_;
    std::vector<std::int32_t> order_;
    std::vector<double> sorted_, nodes_, weight_nodes_, median_, below_, weight_of_rank_;
    std::vector<double> errors_left_, errors_right_, medians_left_, medians_right_;
    std::vector<double> node_medians_;
    std::vector<char> distinct_;
    ReplayScratch scratch_;
    bool ones_ = true, whole_ = true;
    double error_ = 0;
};

}  // namespace

std::unique_ptr<Criterion> absolute_error(const Growth& growth, const std::int32_t* rows) {
    return std::make_unique<AbsoluteError>(growth, rows);
}

}  // namespace fastml
