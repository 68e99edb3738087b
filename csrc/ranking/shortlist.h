#pragma once
#include <cstddef>
#include <cstdint>

namespace fastml {

template <class T> struct Ranked {
    T score;
    std::int32_t item;
    bool operator<(const Ranked& other) const {
        return score > other.score || (score == other.score && item < other.item);
    }
};

// The best items so far of one user, unordered. Items come in ascending order: one that equals the
// k-th best is behind it, and what the user has seen passes by.
template <class T> struct Shortlist {
    Ranked<T>* found;
    std::ptrdiff_t count, k, capacity;
    const std::int32_t *seen, *seen_end;
};

// Leaves the k best; returns the score that an item has to exceed from now on.
template <class T> T shorten(Shortlist<T>& list) noexcept;

}  // namespace fastml
