#pragma once
#include <cstddef>
#include <cstdint>

namespace fastml {

// The best items so far of one user, in ascending order of the items, as which they come: one that
// equals the k-th best is behind it. What the user has seen passes by.
template <class T> struct Shortlist {
    T* scores;  // capacity of them, a multiple of list_unit
    std::int32_t* items;
    std::ptrdiff_t count, k, capacity;
    const std::int32_t *seen, *seen_end;
};

constexpr std::ptrdiff_t list_unit = 16;  // every vector length divides it
constexpr std::ptrdiff_t most_counted =
    256;  // of longer lists, to count who is ahead takes longest

}  // namespace fastml
