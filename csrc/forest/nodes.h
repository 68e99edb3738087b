#pragma once
#include <cstdint>
#include <cstring>

namespace fastml {

// A node is followed without a branch: the next one is child() + (x > threshold). A leaf is its own
// child, and its threshold is NaN, which no x exceeds: a walk of fixed length ends in it. The
// payload of that NaN is the row of its value.
//
// Thresholds are given in double and data in float: for the largest float t' <= t, x <= t' holds
// just when x <= t does.

inline std::uint32_t bits_of(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}
inline bool is_leaf_threshold(float threshold) {
    return (bits_of(threshold) & 0x7fffffffu) > 0x7f800000u;  // NaN; cheaper than to compare floats
}
inline float leaf_threshold(std::uint32_t payload) {
    const std::uint32_t bits = 0x7fc00000u | payload;
    float threshold;
    std::memcpy(&threshold, &bits, sizeof bits);
    return threshold;
}

template <int feature_bits> struct SmallNode {
    static constexpr std::uint32_t missing_bit = 1u << feature_bits;
    static constexpr int child_shift = feature_bits + 1;
    // Half of the nodes are leaves, so that 22 bits of payload suffice for 23 of children.
    static constexpr std::int64_t most_nodes = std::int64_t{1} << (32 - child_shift);
    static constexpr std::int64_t most_features = std::int64_t{1} << feature_bits;
    static_assert(most_nodes <= std::int64_t{1} << 23);

    float threshold;
    std::uint32_t link;

    std::uint32_t feature() const { return link & (missing_bit - 1); }
    std::uint32_t missing_goes_left() const { return (link >> feature_bits) & 1; }
    std::uint32_t child() const { return link >> child_shift; }
    bool is_leaf() const { return is_leaf_threshold(threshold); }
    std::uint32_t value_row() const { return bits_of(threshold) & 0x3fffffu; }

    static SmallNode split(float threshold, std::uint32_t feature, bool missing_left) {
        return {threshold, feature | (missing_left ? missing_bit : 0)};
    }
    static SmallNode leaf(std::uint32_t self, std::uint32_t row) {
        return {leaf_threshold(row), self << child_shift | missing_bit};
    }
    void set_child(std::uint32_t child) { link |= child << child_shift; }
};

struct WideNode {
    static constexpr std::int64_t most_nodes = INT32_MAX, most_features = INT32_MAX;

    float threshold;
    std::uint32_t feature_and_missing, first, row;

    std::uint32_t feature() const { return feature_and_missing >> 1; }
    std::uint32_t missing_goes_left() const { return feature_and_missing & 1; }
    std::uint32_t child() const { return first; }
    bool is_leaf() const { return is_leaf_threshold(threshold); }
    std::uint32_t value_row() const { return row; }

    static WideNode split(float threshold, std::uint32_t feature, bool missing_left) {
        return {threshold, feature << 1 | (missing_left ? 1u : 0u), 0, 0};
    }
    static WideNode leaf(std::uint32_t self, std::uint32_t row) {
        return {leaf_threshold(0), 1, self, row};
    }
    void set_child(std::uint32_t child) { first = child; }
};

using NarrowNode = SmallNode<8>;
using MiddleNode = SmallNode<14>;

}  // namespace fastml
