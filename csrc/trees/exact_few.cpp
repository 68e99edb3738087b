#include "trees/exact_few.h"

// std headers come before any target region
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/isa.h"

#define FML_KERNEL "trees/exact_few.inl.h"
#include "common/foreach_isa.h"

namespace fastml {

bool take_few(const std::uint32_t* tags, int bits, std::ptrdiff_t m, FewClasses& out) noexcept {
    static const auto block = FML_PICK(take_few_block);
    return block(tags, bits, m, out);
}

std::uint64_t sum_few(const FewClasses& classes, std::uint32_t rows) noexcept {
    static const auto block = FML_PICK(sum_few_block);
    return block(classes, rows);
}

std::ptrdiff_t move_few(std::uint32_t left, std::int32_t* rows, std::uint32_t* tags,
                        std::ptrdiff_t m) noexcept {
    static const auto block = FML_PICK(move_few_block);
    return block(left, rows, tags, m);
}

void take_bits(const std::uint64_t* words, const std::int32_t* rows, std::ptrdiff_t m,
               FewBits& out) noexcept {
    static const auto block = FML_PICK(take_bits_block);
    block(words, rows, m, out);
}

FewBest best_bit(const FewBit* bits, int count, std::ptrdiff_t m, const FewClasses& classes,
                 std::ptrdiff_t least_rows, double least) noexcept {
    static const auto block = FML_PICK(best_bit_block<FewClasses>);
    return block(bits, count, m, classes, least_rows, least);
}

FewBest best_bit(const FewBit* bits, int count, std::ptrdiff_t m, const FewTargets& targets,
                 std::ptrdiff_t least_rows, double least) noexcept {
    static const auto block = FML_PICK(best_bit_block<FewTargets>);
    return block(bits, count, m, targets, least_rows, least);
}

FewSplit split_few(const Column& column, const std::int32_t* rows, std::ptrdiff_t m,
                   const FewClasses& classes, std::ptrdiff_t least_rows, double least) noexcept {
    static const auto block = FML_PICK(split_few_block<FewClasses>);
    return block(column, rows, m, classes, least_rows, least);
}

FewSplit split_few(const Column& column, const std::int32_t* rows, std::ptrdiff_t m,
                   const FewTargets& targets, std::ptrdiff_t least_rows, double least) noexcept {
    static const auto block = FML_PICK(split_few_block<FewTargets>);
    return block(column, rows, m, targets, least_rows, least);
}

}  // namespace fastml
