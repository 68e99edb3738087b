#include "trees/replay.h"

// std headers come before any target region
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/isa.h"

#define FML_KERNEL "trees/replay_sort.inl.h"
#include "common/foreach_isa.h"

namespace fastml {

void replay_sort(std::uint32_t* codes, std::int32_t* rows, std::ptrdiff_t m, ReplayScratch& scratch,
                 const std::uint8_t* shared) noexcept {
    static const auto block = FML_PICK(replay_sort_block);
    block(codes, rows, m, scratch, shared);
}

std::ptrdiff_t replay_partition(std::int32_t* rows, const std::uint8_t* left, std::ptrdiff_t m,
                                ReplayScratch& scratch) noexcept {
    static const auto block = FML_PICK(replay_partition_block);
    return block(rows, left, m, scratch);
}

std::ptrdiff_t replay_sort_few(const void* column, int width, bool two_values,
                               const std::int32_t* rows, std::ptrdiff_t m, std::uint32_t* order,
                               std::uint32_t* codes, std::uint32_t* changes) noexcept {
    static const auto block = FML_PICK(replay_sort_few_block);
    return block(column, width, two_values, rows, m, order, codes, changes);
}

std::ptrdiff_t replay_missing_last(std::int32_t* rows, const std::uint8_t* present,
                                   std::ptrdiff_t m, ReplayScratch& scratch) noexcept {
    static const auto block = FML_PICK(replay_missing_last_block);
    return block(rows, present, m, scratch);
}

}  // namespace fastml
