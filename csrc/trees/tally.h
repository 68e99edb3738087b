#pragma once
// What a criterion adds up, where the sums are exact in any order: see exact.h. The tallies are in
// class_tally.h and target_tally.h; a row is known to them by its tag of 32 bits.
#include <algorithm>
#include <cstddef>

namespace fastml {

// Sums of squares up to here are exact.
constexpr double most_weight = 1 << 26;

// counts (size) = what add(i, counts) adds for each of m rows. Rows in a row that go to the same
// counter wait for each other, so that some go to counters of their own first.
template <class Counter, class Add>
void count_all(std::ptrdiff_t m, std::ptrdiff_t size, Counter* counts, Add add) {
    constexpr std::ptrdiff_t most = 256, others = 3;
    std::fill_n(counts, size, Counter{});
    std::ptrdiff_t i = 0;
    if (size <= most && m >= (others + 1) * size) {
        Counter other[others * most];
        std::fill_n(other, others * size, Counter{});
        for (; i + others < m; i += others + 1) {
            add(i, counts);
            for (std::ptrdiff_t k = 0; k < others; ++k) add(i + 1 + k, other + k * size);
        }
        for (std::ptrdiff_t k = 0; k < others; ++k)
            for (std::ptrdiff_t c = 0; c < size; ++c) counts[c] += other[k * size + c];
    }
    for (; i < m; ++i) add(i, counts);
}

}  // namespace fastml
