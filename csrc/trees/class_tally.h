#pragma once
// Tallies of classes, for Gini and entropy.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "trees/exact_few.h"
#include "trees/queue.h"
#include "trees/search.h"
#include "trees/tally.h"
#include "trees/terms.h"
#include "trees/tree.h"

namespace fastml {

inline int class_bits(std::ptrdiff_t n_classes) {
    int bits = 1;
    while (std::ptrdiff_t{1} << bits < n_classes) ++bits;
    return bits;
}

// The sums of Gini and entropy: the weight of each class. A tag is the weight and, in the low bits, the class.
class ClassTally {
  public:
    using Sums = std::vector<std::uint32_t>;

    explicit ClassTally(const Growth& growth)
        : n_classes_(growth.max_n_classes), bits_(class_bits(growth.max_n_classes)),
          entropy_(growth.criterion == CriterionName::entropy),
          few_are_possible_(!entropy_ && n_classes_ <= 8), candidate_left_(none()),
          candidate_right_(none()) {}

    // Weights are whole, and share 32 bits with the class.
    static bool fits(const Growth& growth, const Weights& weights) {
        const double largest = std::ldexp(1.0, 32 - class_bits(growth.max_n_classes)) - 1;
        double sum = 0;
        if (weights.counts) {
            std::int32_t least = 0, most = 0;
            std::int64_t total = 0;
            for (std::ptrdiff_t i = 0; i < growth.columns->n; ++i) {
                least = std::min(least, weights.counts[i]);
                most = std::max(most, weights.counts[i]);
                total += weights.counts[i];
            }
            return least == 0 && most <= largest && static_cast<double>(total) <= most_weight;
        }
        for (std::ptrdiff_t i = 0; i < growth.columns->n; ++i) {
            const double w = weights[i];
            if (!(w >= 0 && w <= largest) || w != std::floor(w)) return false;
            sum += w;
        }
        return sum <= most_weight;
    }
    std::uint32_t tag(const Growth& growth, std::ptrdiff_t row, double w) {
        return static_cast<std::uint32_t>(w) << bits_ | static_cast<std::uint32_t>(growth.y[row]);
    }
    // Room for two where there is one class.
    Sums none() const {
        return Sums(std::max<std::size_t>(2, static_cast<std::size_t>(n_classes_)));
    }
    double weight(const Sums& sums) const {
        double w = 0;
        for (const std::uint32_t sum : sums) w += sum;
        return w;
    }
    double impurity(const Sums& sums, double w) const {
        if (entropy_) {
            double entropy = 0;
            for (const std::uint32_t sum : sums) {
                const double share = sum / w;
                if (sum) entropy -= share * (std::log(share) / std::log(2.0));
            }
            return entropy;
        }
        double squares = 0;
        for (const std::uint32_t sum : sums) squares += static_cast<double>(sum) * sum;
        return 1.0 - squares / (w * w);
    }
    void value(const Sums& sums, double w, double* out) const {
        for (std::ptrdiff_t c = 0; c < n_classes_; ++c) out[c] = sums[c] / w;
    }
    void subtract(const Sums& total, const Sums& left, Sums& right) const {
        for (std::size_t c = 0; c < total.size(); ++c) right[c] = total[c] - left[c];
    }
    double proxy(const Sums& left, const Sums& right) const {
        const double w_left = weight(left), w_right = weight(right);
        return -w_right * impurity(right, w_right) - w_left * impurity(left, w_left);
    }
    // Whether rows of a tree of this weight may be merged: tags of rows that stand for all that have
    // these sums, and how many they are.
    bool can_merge(double tree_weight) const { return tree_weight < std::ldexp(1.0, 32 - bits_); }
    std::ptrdiff_t merge(const Sums& sums, std::uint32_t* tags) const {
        std::ptrdiff_t count = 0;
        for (std::ptrdiff_t c = 0; c < n_classes_; ++c) {
            tags[count] = sums[c] << bits_ | static_cast<std::uint32_t>(c);
            count += sums[c] != 0;
        }
        return count;
    }
    // TargetTally's; here rows that have been moved are as quick to add.
    static bool sum_sides(const std::uint8_t*, std::ptrdiff_t, Sums&) { return false; }
    // Of the node that was entered last, if it has few rows: whether exact_few.h is for it.
    bool has_few() const { return has_few_; }
    const FewClasses& few_points() const { return few_; }
    // Enters a node below, of some of these rows.
    void enter_part(std::uint32_t rows, Sums& sums) {
        few_.total = fastml::sum_few(few_, rows);
        unpack(few_.total, sums);
        few_.total_w = weight(sums);
    }
    void sum_few(std::uint32_t rows, Sums& sums) const {
        unpack(fastml::sum_few(few_, rows), sums);
    }

  protected:
    // Adds up a node, unless it has to be added up otherwise.
    bool enter_few(const std::uint32_t* tags, std::ptrdiff_t m, Sums& sums) {
        if (m == 1) {  // a leaf
            std::fill(sums.begin(), sums.end(), 0);
            sums[class_of(*tags)] = *tags >> bits_;
            return true;
        }
        has_few_ = few_are_possible_ && m <= few && take_few(tags, bits_, m, few_);
        if (has_few_) unpack(few_.total, sums);
        return has_few_;
    }
    static void unpack(std::uint64_t word, Sums& sums) {
        for (std::size_t c = 0; c < sums.size(); ++c) sums[c] = word >> 8 * c & 255;
    }
    std::uint32_t class_of(std::uint32_t tag) const { return class_of(tag, bits_); }
    static std::uint32_t class_of(std::uint32_t tag, int bits) { return tag & ((1u << bits) - 1); }
    // Splits whose bound is `sure` at least get their proxy, with the sums that set(s, left, right)
    // tells; others -infinity. Returns the largest.
    template <class Set> double confirm(Queue& queue, double sure, Set set) {
        double best = -std::numeric_limits<double>::infinity();
        for (std::ptrdiff_t s = 0; s < queue.count; ++s) {
            double proxy = -std::numeric_limits<double>::infinity();
            if (queue.proxies[s] >= sure && queue.proxies[s] > proxy) {
                set(s, candidate_left_, candidate_right_);
                proxy = this->proxy(candidate_left_, candidate_right_);
            }
            queue.proxies[s] = proxy;
            best = std::max(best, proxy);
        }
        return best;
    }

    const std::ptrdiff_t n_classes_;
    const int bits_;
    const bool entropy_, few_are_possible_;
    Sums candidate_left_, candidate_right_;
    FewClasses few_;
    bool has_few_ = false;
};

class TwoClasses : public ClassTally {
  public:
    // What a value needs in a histogram: `counters` of Counter, zero if it does not occur.
    using Counter = std::uint64_t;  // the weight, and above it the second class's
    static constexpr std::ptrdiff_t counters = 1;
    static constexpr bool scans = true;  // has can_scan() and scan()

    TwoClasses(const Growth& growth, const SearchKernels& kernels)
        : ClassTally(growth), kernels_(kernels) {}

    void enter(const std::uint32_t* tags, std::ptrdiff_t m, Sums& sums) {
        if (!enter_few(tags, m, sums)) sum(tags, m, sums);
    }
    void sum(const std::uint32_t* tags, std::ptrdiff_t m, Sums& sums) const {
        kernels_.pair_sums(tags, m, sums.data());
        sums[0] -= sums[1];
    }
    void sum_left(const std::uint8_t* left, const std::uint32_t* tags, std::ptrdiff_t m,
                  Sums& sums) const {
        kernels_.pair_sums_left(left, tags, m, sums.data());
        sums[0] -= sums[1];
    }
    double proxy(const Sums& left, const Sums& right) const {
        return entropy_ ? ClassTally::proxy(left, right) : -weighed(right) - weighed(left);
    }
    // A place that moves right: all on its right, but for `left`, if not null.
    void start(const Sums& total, const Sums* left) {
        w_ = left ? (*left)[0] + (*left)[1] : 0;
        second_ = left ? (*left)[1] : 0;
        total_w_ = total[0] + total[1];
        total_second_ = total[1];
    }
    void add(std::uint32_t tag) {
        const std::uint32_t w = tag >> 1;
        w_ += w;
        second_ += w & (0 - (tag & 1));
    }
    // Of m rows, the i-th of which has the value number(i) of n_values.
    template <class Number>
    void count(Number number, const std::uint32_t* tags, std::ptrdiff_t m, std::ptrdiff_t n_values,
               Counter* counts) const {
        count_all(m, n_values, counts, [=](std::ptrdiff_t i, Counter* to) {
            const std::uint64_t w = tags[i] >> 1;
            to[number(i)] += w | (w & (0 - static_cast<std::uint64_t>(tags[i] & 1))) << 32;
        });
    }
    // Passes many rows at once, from the start; see Scan.
    bool can_scan() const { return kernels_.scan_pair; }
    void scan(const Scan& rows, Queue& queue) { kernels_.scan_pair(rows, &w_, &second_, queue); }
    static bool empty(const Counter* counter) { return *counter == 0; }
    // By which levels are put in order; the best split of two sets is along one of `orders`.
    std::ptrdiff_t orders() const { return 1; }
    static double mean(const Counter* counter, std::ptrdiff_t) {
        return static_cast<double>(*counter >> 32) / static_cast<double>(*counter & 0xffffffffu);
    }
    void add(const Counter* counter) {
        w_ += static_cast<std::uint32_t>(*counter);
        second_ += static_cast<std::uint32_t>(*counter >> 32);
    }
    void put(Queue& queue) const {
        queue.w[queue.count] = w_;
        queue.left[queue.count] = second_;
    }
    double score(Queue& queue, double least) {
        if (entropy_) {
            const double sure =
                kernels_.bound_binary(queue.w, queue.left, queue.count, total_w_, total_second_,
                                      least, 4 * near_error * total_w_, queue.proxies);
            return confirm(queue, sure, [&](std::ptrdiff_t s, Sums& left, Sums& right) {
                left[1] = static_cast<std::uint32_t>(queue.left[s]);
                left[0] = static_cast<std::uint32_t>(queue.w[s]) - left[1];
                right[1] = total_second_ - left[1];
                right[0] = total_w_ - total_second_ - left[0];
            });
        }
        return kernels_.binary(queue.w, queue.left, queue.count, total_w_, total_second_, least,
                               queue.proxies);
    }

  private:
    // The weight times the impurity, as ClassTally computes them.
    static double weighed(const Sums& sums) {
        const double a = sums[0], b = sums[1], w = a + b;
        return w * (1.0 - (a * a + b * b) / (w * w));
    }

    const SearchKernels& kernels_;
    std::uint32_t w_ = 0, second_ = 0, total_w_ = 0, total_second_ = 0;
};

template <class Terms> class ManyClasses : public ClassTally {
  public:
    using Counter = std::uint32_t;
    static constexpr bool scans = !Terms::entropy;

    ManyClasses(const Growth& growth, const SearchKernels& kernels)
        : ClassTally(growth), counters(n_classes_), kernels_(kernels), left_(n_classes_),
          right_(n_classes_), queued_(Terms::entropy ? Queue::room * n_classes_ : 0) {}
    const std::ptrdiff_t counters;

    void enter(const std::uint32_t* tags, std::ptrdiff_t m, Sums& sums) {
        if (!enter_few(tags, m, sums)) sum(tags, m, sums);
    }
    void sum(const std::uint32_t* tags, std::ptrdiff_t m, Sums& sums) const {
        if (n_classes_ <= 8)
            return kernels_.class_sums(nullptr, tags, m, bits_, n_classes_, sums.data());
        count_all(m, n_classes_, sums.data(),
                  [=, bits = bits_](std::ptrdiff_t i, std::uint32_t* to) {
                      to[class_of(tags[i], bits)] += tags[i] >> bits;
                  });
    }
    void sum_left(const std::uint8_t* left, const std::uint32_t* tags, std::ptrdiff_t m,
                  Sums& sums) const {
        if (n_classes_ <= 8)
            return kernels_.class_sums(left, tags, m, bits_, n_classes_, sums.data());
        count_all(
            m, n_classes_, sums.data(), [=, bits = bits_](std::ptrdiff_t i, std::uint32_t* to) {
                to[class_of(tags[i], bits)] += (tags[i] >> bits) & (0 - std::uint32_t{left[i]});
            });
    }
    void start(const Sums& total, const Sums* left) {
        w_ = total_w_ = 0;
        terms_ = {};
        for (std::size_t c = 0; c < left_.size(); ++c) {
            left_[c] = left ? (*left)[c] : 0;
            right_[c] = total[c] - left_[c];
            w_ += left_[c];
            total_w_ += total[c];
            terms_.enter(left_[c], right_[c]);
        }
    }
    void add(std::uint32_t tag) { move(class_of(tag), tag >> bits_); }
    template <class Number>
    void count(Number number, const std::uint32_t* tags, std::ptrdiff_t m, std::ptrdiff_t n_values,
               Counter* counts) const {
        count_all(m, n_values * counters, counts,
                  [=, bits = bits_, width = counters](std::ptrdiff_t i, Counter* to) {
                      to[number(i) * width + class_of(tags[i], bits)] += tags[i] >> bits;
                  });
    }
    bool can_scan() const { return kernels_.scan_classes && n_classes_ <= 8; }
    void scan(const Scan& rows, Queue& queue) {
        std::uint32_t left[8], total[8];
        for (std::ptrdiff_t c = 0; c < n_classes_; ++c) {
            left[c] = static_cast<std::uint32_t>(left_[c]);
            total[c] = static_cast<std::uint32_t>(left_[c] + right_[c]);
        }
        kernels_.scan_classes(rows, bits_, n_classes_, total, left, queue);
        for (std::ptrdiff_t c = 0; c < n_classes_; ++c) {
            left_[c] = left[c];
            right_[c] = total[c] - left[c];
        }
    }
    bool empty(const Counter* counter) const {
        return std::all_of(counter, counter + counters, [](Counter c) { return c == 0; });
    }
    // Each class against the others: more than two classes have no order that is surely best.
    std::ptrdiff_t orders() const { return n_classes_; }
    double mean(const Counter* counter, std::ptrdiff_t order) const {
        double w = 0;
        for (std::ptrdiff_t c = 0; c < counters; ++c) w += counter[c];
        return counter[order] / w;
    }
    void add(const Counter* counter) {
        for (std::size_t c = 0; c < left_.size(); ++c)
            if (counter[c]) move(c, counter[c]);
    }
    void put(Queue& queue) {
        queue.w[queue.count] = static_cast<double>(w_);
        queue.left[queue.count] = terms_.left_sum();
        queue.right[queue.count] = terms_.right_sum();
        if constexpr (Terms::entropy)
            std::copy(left_.begin(), left_.end(), queued_.begin() + queue.count * n_classes_);
    }
    double score(Queue& queue, double least) {
        if constexpr (Terms::entropy) {
            const auto total = static_cast<double>(total_w_);
            const double slack =
                4 * near_error * total + 4 * static_cast<double>(n_classes_) * Terms::unit;
            const double sure = kernels_.bound_many(queue.w, queue.left, queue.right, queue.count,
                                                    total, least, slack, queue.proxies);
            return confirm(queue, sure, [&](std::ptrdiff_t s, Sums& left, Sums& right) {
                for (std::ptrdiff_t c = 0; c < n_classes_; ++c) {
                    left[c] = queued_[s * n_classes_ + c];
                    right[c] = static_cast<std::uint32_t>(left_[c] + right_[c]) - left[c];
                }
            });
        }
        return kernels_.gini(queue.w, queue.left, queue.right, queue.count,
                             static_cast<double>(total_w_), least, queue.proxies);
    }

  private:
    void move(std::size_t c, std::uint64_t w) {
        terms_.move(left_[c], right_[c], w);
        left_[c] += w;
        right_[c] -= w;
        w_ += w;
    }

    const SearchKernels& kernels_;
    std::vector<std::uint64_t> left_, right_;
    std::vector<std::uint32_t> queued_;  // class weights of the splits in the queue
    Terms terms_;
    std::uint64_t w_ = 0, total_w_ = 0;
};

}  // namespace fastml
