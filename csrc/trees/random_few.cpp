#include "trees/random_few.h"

// std headers come before any target region
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "common/isa.h"

namespace fastml {
namespace {

// Where a partition of the fewest rows takes its order from: for m rows, of which those of the bits
// `low` are low, eight numbers at 2^m + low.
constexpr std::ptrdiff_t fewest = 8;
const std::uint64_t* moves() {
    static const auto all = [] {
        std::array<std::uint64_t, 2 << fewest> table{};
        for (std::uint32_t m = 1; m <= fewest; ++m)
            for (std::uint32_t low = 0; low < 1u << m; ++low) {
                std::uint8_t from[fewest] = {0, 1, 2, 3, 4, 5, 6, 7};
                for (std::uint32_t begin = 0, end = m; begin < end;)
                    if (low >> from[begin] & 1)
                        ++begin;
                    else
                        std::swap(from[begin], from[--end]);
                std::memcpy(&table[(1u << m) + low], from, sizeof from);
            }
        return table;
    }();
    return all.data();
}

}  // namespace
}  // namespace fastml

#define FML_KERNEL "trees/random_few.inl.h"
#include "common/foreach_isa.h"

namespace fastml {

std::ptrdiff_t range_few(const float* values, std::uint32_t present, float* least,
                         float* largest) noexcept {
    static const auto block = FML_PICK(range_few_block);
    return block(values, present, least, largest);
}

FewChoice replay_sides(const FewSides& sides, const FewSums& rows, const FewNode& node,
                       std::uint8_t* order) noexcept {
    static const auto block = FML_PICK(replay_sides_block);
    return block(sides, rows, node, order, moves());
}

void replay_sums(const FewSides& sides, const FewSums& rows, const FewNode& node,
                 std::uint8_t* order, double* w, double* wy) noexcept {
    static const auto block = FML_PICK(replay_sums_block);
    block(sides, rows, node, order, moves(), w, wy);
}

void replay_side(const FewSides& sides, std::ptrdiff_t m, std::uint8_t* order) noexcept {
    static const auto block = FML_PICK(replay_side_block);
    block(sides, m, order, moves());
}

std::uint32_t left_few(const FewSides& sides, std::uint32_t present) noexcept {
    static const auto block = FML_PICK(left_block);
    return block(sides, 0) & present;
}

FewChoice choose_side(const FewSides& sides, const FewPart& part,
                      const FewClasses& classes) noexcept {
    static const auto block = FML_PICK(choose_side_block<FewClasses>);
    return block(sides, part, classes);
}

FewChoice choose_side(const FewSides& sides, const FewPart& part,
                      const FewTargets& targets) noexcept {
    static const auto block = FML_PICK(choose_side_block<FewTargets>);
    return block(sides, part, targets);
}

void sum_few(const FewTargets& targets, std::uint32_t rows, double* sums) noexcept {
    static const auto block = FML_PICK(sum_targets_block);
    block(targets, rows, sums);
}

}  // namespace fastml
