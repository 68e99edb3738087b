#include "trees/search.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/isa.h"
#include "trees/screen.h"

using std::ptrdiff_t;

#define FML_KERNEL "trees/search.inl.h"
#include "common/foreach_isa.h"

namespace fastml {

#define FML_SEARCH(isa)              \
    {isa::small_node,                \
     isa::rank_sort_block,           \
     isa::score_block<isa::Squares>, \
     isa::score_block<isa::Gini>,    \
     isa::score_poisson_block,       \
     isa::score_binary_block,        \
     isa::bound_binary_block,        \
     isa::bound_many_block,          \
     isa::range_block,               \
     isa::up_to_block,               \
     isa::gather_words_block,        \
     isa::without_bit_block,         \
     isa::uncommon_block,            \
     isa::gather_range_block,        \
     isa::pair_sums_block,           \
     isa::side_block,                \
     isa::pair_sums_left_block,      \
     isa::class_sums_block,          \
     isa::move_left_block,           \
     isa::scan_pair_block,           \
     isa::scan_classes_block,        \
     isa::sum_left_block}

const SearchKernels& search_kernels() {
#if FML_X86_REGIONS
    static const SearchKernels kernels = isa() == Isa::avx512 ? SearchKernels FML_SEARCH(avx512)
                                         : isa() == Isa::avx2 ? SearchKernels FML_SEARCH(avx2)
                                                              : SearchKernels FML_SEARCH(baseline);
#else
    static const SearchKernels kernels = FML_SEARCH(baseline);
#endif
    return kernels;
}

std::uint64_t* radix_sort(std::uint64_t* pairs, std::uint64_t* spare, ptrdiff_t m, int key_bits) {
    // Wide digits save passes, but each has a table to clear and to add up.
    const int wanted = m < 2048 ? 8 : 11;
    const int digits = (key_bits + wanted - 1) / wanted;
    if (digits == 0) return pairs;
    const int width = (key_bits + digits - 1) / digits;
    const std::uint32_t mask = (1u << width) - 1;
    std::uint32_t counts[3 << 11];  // or 4 << 8
    std::memset(counts, 0, sizeof *counts * (static_cast<std::size_t>(digits) << width));
    for (ptrdiff_t i = 0; i < m; ++i) {
        const auto key = static_cast<std::uint32_t>(pairs[i] >> 32);
        for (int digit = 0; digit < digits; ++digit)
            ++counts[(digit << width) + (key >> digit * width & mask)];
    }
    for (int digit = 0; digit < digits; ++digit) {
        std::uint32_t* count = counts + (digit << width);
        std::uint32_t begin = 0;
        for (std::uint32_t k = 0; k <= mask; ++k) {
            const std::uint32_t size = count[k];
            count[k] = begin;
            begin += size;
        }
        const int shift = 32 + digit * width;
        for (ptrdiff_t i = 0; i < m; ++i) spare[count[pairs[i] >> shift & mask]++] = pairs[i];
        std::uint64_t* swap = pairs;
        pairs = spare;
        spare = swap;
    }
    return pairs;
}

}  // namespace fastml
