#pragma once
#include <cstdint>
#include <vector>

#include "trees/screen.h"

namespace fastml {

// What the classes' weights on either side add to the score.
struct SquareSums {
    static constexpr bool entropy = false;
    std::uint64_t left = 0, right = 0;

    void enter(std::uint64_t l, std::uint64_t r) {
        left += l * l;
        right += r * r;
    }
    // w moves from r to l: (l + w)^2 = l^2 + w (2 l + w), and the like.
    void move(std::uint64_t l, std::uint64_t r, std::uint64_t w) {
        left += w * (2 * l + w);
        right -= w * (2 * r - w);
    }
    double left_sum() const { return static_cast<double>(left); }
    double right_sum() const { return static_cast<double>(right); }
};
// w log2(w) in units of 2^-31, so that sums do not drift: below 2^62 for weights up to most_weight.
struct EntropySums {
    static constexpr bool entropy = true;
    static constexpr double unit = 1.0 / (std::uint64_t{1} << 31);
    std::int64_t left = 0, right = 0;

    static std::int64_t compute(std::uint64_t w) {
        const auto x = static_cast<double>(w);
        return static_cast<std::int64_t>(x * log2_near(x) / unit);
    }
    // Most weights are small.
    static constexpr std::uint64_t known = 2048;
    static const std::int64_t* known_terms() {
        static const std::vector<std::int64_t> terms = [] {
            std::vector<std::int64_t> t(known);
            for (std::uint64_t w = 0; w < known; ++w) t[w] = compute(w);
            return t;
        }();
        return terms.data();
    }
    const std::int64_t* small = known_terms();
    std::int64_t term(std::uint64_t w) const { return w < known ? small[w] : compute(w); }
    void enter(std::uint64_t l, std::uint64_t r) {
        left += term(l);
        right += term(r);
    }
    void move(std::uint64_t l, std::uint64_t r, std::uint64_t w) {
        left += term(l + w) - term(l);
        right += term(r - w) - term(r);
    }
    double left_sum() const { return static_cast<double>(left) * unit; }
    double right_sum() const { return static_cast<double>(right) * unit; }
};

}  // namespace fastml
