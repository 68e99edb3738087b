#pragma once
#include <cstddef>
#include <cstdint>

#include "common/pool.h"

namespace fastml {

// Scores u·v + bias of items for users; both are (·, f), f >= 1, and bias may be null. Items
// seen[seen_begin[i]:seen_end[i]], in ascending order, are not for user i; null: there are none.
template <class T> struct Scores {
    const T *users, *items, *bias;
    std::ptrdiff_t n_users, n_items, f;
    const std::ptrdiff_t *seen_begin, *seen_end;
    const std::int32_t* seen;
};

// items and scores (n_users, k): those of largest score, the largest first, the lower item first among
// equals. Where there are fewer than k the rest is item -1 of score -infinity. The matrix of scores is
// never formed. 1 <= k <= n_items < 2^31; results do not depend on n_threads.
template <class T>
Status rank_items(const Scores<T>& of, std::ptrdiff_t k, std::int32_t* items, T* scores,
                  int n_threads) noexcept;

}  // namespace fastml
