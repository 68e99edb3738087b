#pragma once
// Sorting what was found near a query, by distance, then row.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace fastml {

// Items have a `distance`, which is not NaN, and an order of their own that goes by it first.
// spare: n of them, keys: 2 n. By a radix sort of 32 bits of where they are between the nearest and
// the farthest; those that this does not tell apart are sorted as they are.
template <class Item>
void sort_nearest_first(Item* items, std::ptrdiff_t n, Item* spare, std::uint64_t* keys) {
    constexpr std::ptrdiff_t few = 256;
    constexpr int digit_bits = 11, digits = 1 << digit_bits, passes = 3, row_bits = 32;
    if (n < few) return std::sort(items, items + n);
    double low = items[0].distance, high = low;
    for (std::ptrdiff_t e = 0; e < n; ++e) {
        const double distance = items[e].distance;
        low = std::min(low, distance);
        high = std::max(high, distance);
    }
    const double scale = 4294967295.0 / (high - low);  // of differences, which are exact enough
    if (!(scale <= std::numeric_limits<double>::max()) || scale == 0)
        return std::sort(items, items + n);
    std::uint32_t starts[passes][digits] = {};
    for (std::ptrdiff_t e = 0; e < n; ++e) {
        const double place = std::min((items[e].distance - low) * scale, 4294967295.0);
        const auto key = static_cast<std::uint64_t>(place);
        keys[e] = key << row_bits | static_cast<std::uint64_t>(e);
        for (int p = 0; p < passes; ++p) ++starts[p][key >> p * digit_bits & (digits - 1)];
    }
    std::uint64_t *from = keys, *to = keys + n;
    for (int p = 0; p < passes; ++p) {
        std::uint32_t total = 0;
        for (std::uint32_t& start : starts[p]) {
            const std::uint32_t count = start;
            start = total;
            total += count;
        }
        for (std::ptrdiff_t e = 0; e < n; ++e)
            to[starts[p][from[e] >> (row_bits + p * digit_bits) & (digits - 1)]++] = from[e];
        std::swap(from, to);
    }
    for (std::ptrdiff_t e = 0; e < n; ++e) spare[e] = items[from[e] & 0xffffffffu];
    for (std::ptrdiff_t e = 0, begin = 0; e < n; ++e) {
        items[e] = spare[e];
        if (e + 1 < n && from[e + 1] >> row_bits == from[e] >> row_bits) continue;
        if (begin < e) std::sort(items + begin, items + e + 1);
        begin = e + 1;
    }
}

}  // namespace fastml
