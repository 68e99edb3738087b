#pragma once
// Class weights to the left and to the right of a place that moves right; all are whole numbers.
#include <algorithm>
#include <vector>

#include "trees/queue.h"
#include "trees/search.h"

namespace fastml {

// A row's class, in the low bits, and its weight.
inline int class_bits(std::ptrdiff_t n_classes) {
    int bits = 1;
    while (std::ptrdiff_t{1} << bits < n_classes) ++bits;
    return bits;
}

class TwoClasses {
  public:
    static constexpr std::ptrdiff_t counters = 1;  // 64-bit words a value needs in a histogram

    explicit TwoClasses(std::ptrdiff_t) {}
    // All on the right, but for `left` (n_classes), if not null.
    void start(const std::uint32_t* total, const std::uint32_t* left) {
        w_ = left ? left[0] + left[1] : 0;
        second_ = left ? left[1] : 0;
        total_w_ = total[0] + total[1];
        total_second_ = total[1];
    }
    void add(std::uint32_t tag) {
        const std::uint32_t w = tag >> 1;
        w_ += w;
        second_ += w & (0 - (tag & 1));
    }
    static void count(std::uint64_t* counter, std::uint32_t tag) {
        const std::uint64_t w = tag >> 1;
        *counter += w | (w & (0 - static_cast<std::uint64_t>(tag & 1))) << 32;
    }
    static bool empty(const std::uint64_t* counter) { return *counter == 0; }
    void add(const std::uint64_t* counter) {
        w_ += static_cast<std::uint32_t>(*counter);
        second_ += static_cast<std::uint32_t>(*counter >> 32);
    }
    void put(Queue& queue) const {
        queue.w[queue.count] = w_;
        queue.left[queue.count] = second_;
    }
    double score(const SearchKernels& kernels, Queue& queue, double least) const {
        return kernels.binary(queue.w, queue.left, queue.count, total_w_, total_second_, least,
                              queue.proxies);
    }

  private:
    std::uint32_t w_ = 0, second_ = 0, total_w_ = 0, total_second_ = 0;
};

class ManyClasses {
  public:
    explicit ManyClasses(std::ptrdiff_t n_classes)
        : counters((n_classes + 1) / 2), bits_(class_bits(n_classes)), left_(n_classes),
          right_(n_classes) {}
    const std::ptrdiff_t counters;

    void start(const std::uint32_t* total, const std::uint32_t* left) {
        w_ = total_w_ = left_squares_ = right_squares_ = 0;
        for (std::size_t c = 0; c < left_.size(); ++c) {
            left_[c] = left ? left[c] : 0;
            right_[c] = total[c] - left_[c];
            w_ += left_[c];
            total_w_ += total[c];
            left_squares_ += left_[c] * left_[c];
            right_squares_ += right_[c] * right_[c];
        }
    }
    void add(std::uint32_t tag) { move(tag & ((1u << bits_) - 1), tag >> bits_); }
    void count(std::uint64_t* counter, std::uint32_t tag) const {
        reinterpret_cast<std::uint32_t*>(counter)[tag & ((1u << bits_) - 1)] += tag >> bits_;
    }
    bool empty(const std::uint64_t* counter) const {
        return std::all_of(counter, counter + counters, [](std::uint64_t c) { return c == 0; });
    }
    void add(const std::uint64_t* counter) {
        const auto* weights = reinterpret_cast<const std::uint32_t*>(counter);
        for (std::size_t c = 0; c < left_.size(); ++c)
            if (weights[c]) move(c, weights[c]);
    }
    void put(Queue& queue) const {
        queue.w[queue.count] = static_cast<double>(w_);
        queue.left[queue.count] = static_cast<double>(left_squares_);
        queue.right[queue.count] = static_cast<double>(right_squares_);
    }
    double score(const SearchKernels& kernels, Queue& queue, double least) const {
        return kernels.gini(queue.w, queue.left, queue.right, queue.count,
                            static_cast<double>(total_w_), least, queue.proxies);
    }

  private:
    // (l + w)^2 = l^2 + w (2 l + w), and the like on the right.
    void move(std::size_t c, std::uint64_t w) {
        left_squares_ += w * (2 * left_[c] + w);
        right_squares_ -= w * (2 * right_[c] - w);
        left_[c] += w;
        right_[c] -= w;
        w_ += w;
    }

    int bits_;
    std::vector<std::uint64_t> left_, right_;
    std::uint64_t w_ = 0, total_w_ = 0, left_squares_ = 0, right_squares_ = 0;
};

}  // namespace fastml
