#pragma once
// The best split of few rows, which most nodes have, where sums are exact in any order. Codes, sums
// and scores of them stay in registers; see exact_best.cpp.
#include <cstddef>
#include <cstdint>

#include "trees/columns.h"
#include "trees/replay.h"

namespace fastml {

// What rows (few) add to the sums, and nothing behind the last one. Of up to 8 classes, each of
// whose weights has a byte, together at most most_few_weight; or of targets.
constexpr std::uint32_t most_few_weight = 127;
struct FewClasses {
    alignas(64) std::uint64_t of[few];
    std::uint64_t total;
    double total_w;
};
struct FewTargets {
    alignas(64) double w[few];
    double wy[few], wyy[few];
    double total_w, total_wy;
};

// Rows are told by bits, in the order of the node. A proxy of -infinity: too little is on a side.
struct FewSplit {
    enum Kind { constant, close, varied } kind;  // close: some values are nearer than near_value
    double proxy;
    std::uint32_t left, lower, upper;  // codes on both sides of it
};

// Takes m <= few rows' tags, the weight above `bits` of the class; whether they are not too heavy.
bool take_few(const std::uint32_t* tags, int bits, std::ptrdiff_t m, FewClasses& out) noexcept;
std::uint64_t sum_few(const FewClasses& classes, std::uint32_t rows) noexcept;
// Moves those that are `left` to the front of both arrays (m), and returns how many they are.
std::ptrdiff_t move_few(std::uint32_t left, std::int32_t* rows, std::uint32_t* tags,
                        std::ptrdiff_t m) noexcept;

// The first of the best splits of m <= few rows (few) by a column without missing values, with
// codes below 2^24. A side has `least_rows` and the weight `least` at least.
FewSplit split_few(const Column& column, const std::int32_t* rows, std::ptrdiff_t m,
                   const FewClasses& classes, std::ptrdiff_t least_rows, double least) noexcept;
FewSplit split_few(const Column& column, const std::int32_t* rows, std::ptrdiff_t m,
                   const FewTargets& targets, std::ptrdiff_t least_rows, double least) noexcept;
// What few rows have of 64 features of two values, and which of these features vary among them.
struct FewBits {
    alignas(64) std::uint64_t of[few];  // a bit is set where the value is the upper one
    std::uint64_t varying;
};
void take_bits(const std::uint64_t* words, const std::int32_t* rows, std::ptrdiff_t m,
               FewBits& out) noexcept;
// A feature that varies.
struct FewBit {
    const FewBits* word;
    int number;
};
constexpr int most_bits = 8;  // that are scored together
// The first of the best splits of m rows by `count` <= most_bits features; see split_few.
struct FewBest {
    double proxy;
    std::uint32_t left;
    int which;
};
FewBest best_bit(const FewBit* bits, int count, std::ptrdiff_t m, const FewClasses& classes,
                 std::ptrdiff_t least_rows, double least) noexcept;
FewBest best_bit(const FewBit* bits, int count, std::ptrdiff_t m, const FewTargets& targets,
                 std::ptrdiff_t least_rows, double least) noexcept;
}  // namespace fastml
