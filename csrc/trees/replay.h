#pragma once
// Orders that scikit-learn's trees leave their rows in. A tree sums floats in the order of the rows
// of a node, and every feature that it looks at sorts them anew; among equal values the order that
// results decides the last bits of later sums. What follows yields those orders without the swaps.
#include <cstddef>
#include <cstdint>

#include "common/scratch.h"

namespace fastml {

// Small nodes are loaded and stored as a vector, whatever is behind them.
constexpr std::ptrdiff_t row_slack = 16;

// What sorting or splitting up to m_max elements needs, for one thread: 24 bytes an element; with
// copies, see replay_sort, 28.
struct ReplayScratch {
    explicit ReplayScratch(std::ptrdiff_t m_max, bool copies = false) noexcept
        : front(m_max + slack), back(m_max + slack), spare(m_max / 2 + slack), start(m_max + slack),
          table(m_max < small_size ? m_max + slack : small_size + slack),
          ties(copies ? m_max + slack : 0) {}
    explicit operator bool() const noexcept {
        return front && back && spare && start && table && ties;
    }

    // Up to here positions take 16 bits, and an element 4 bytes instead of 8.
    static constexpr std::ptrdiff_t small_size = 1 << 16;
    // Vectors are stored and loaded past the end; counters of digits live in `start`'s and
    // `spare`'s slack when m is small.
    static constexpr std::ptrdiff_t slack = 1 << 12;

    Scratch<std::uint64_t> front, back, spare;
    Scratch<std::uint32_t> start;
    Scratch<std::int32_t> table;
    Scratch<std::uint32_t> ties;
};

// Sorts codes (m) and with them rows (m), as introsort with a three-way partition sorts (value,
// row) by value: the same permutation, ties included. Codes need only be in the order of the values
// and equal where these are. rows >= 0. m <= m_max of the scratch. If `shared`, by half the code, is
// not null, a scratch with copies: equal ones for which it is zero may be left in any order.
void replay_sort(std::uint32_t* codes, std::int32_t* rows, std::ptrdiff_t m, ReplayScratch& scratch,
                 const std::uint8_t* shared = nullptr) noexcept;

// Moves the rows whose `left` (m) is one, not zero, before the others and returns their number. The
// order is that of an exchange from both ends: a row that goes right changes places with the last
// one not yet looked at, which is looked at next. Behind both there are row_slack more elements,
// which stay as they are.
std::ptrdiff_t replay_partition(std::int32_t* rows, const std::uint8_t* left, std::ptrdiff_t m,
                                ReplayScratch& scratch) noexcept;

// What follows is about up to `few` rows, and order (few), their numbers in the order that they are
// in; see few.h.
constexpr std::ptrdiff_t few = 16;
// The most that introsort sorts by insertion.
constexpr std::ptrdiff_t few_sorted = 15;

// Sorts the order of m <= few_sorted rows (few) by their codes in a column of `width` bytes a row,
// with 3 bytes behind it, below 2^24; of `two_values` the lower one is zero. codes (few) become the
// sorted ones, changes (few) the places where one differs from that before it; returns their number.
std::ptrdiff_t replay_sort_few(const void* column, int width, bool two_values,
                               const std::int32_t* rows, std::ptrdiff_t m, std::uint32_t* order,
                               std::uint32_t* codes, std::uint32_t* changes) noexcept;

// Moves the rows whose value is missing, `present` (m) being zero, behind the others and returns how
// many have one. Each missing row changes places with the last present one behind it: this comes
// before a feature with missing values is sorted.
std::ptrdiff_t replay_missing_last(std::int32_t* rows, const std::uint8_t* present,
                                   std::ptrdiff_t m, ReplayScratch& scratch) noexcept;

}  // namespace fastml
