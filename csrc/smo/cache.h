#pragma once
#include <cstdint>

#include "common/blocks.h"
#include "common/scratch.h"

namespace fastml {

// Kernel rows in single precision, as many as a budget holds; the one not used for longest goes.
// Unless `at_once`, a row that is claimed for the first time gets no place.
class RowCache {
  public:
    RowCache(ptrdiff_t n_rows, ptrdiff_t columns, double bytes, bool at_once)
        : stride_(aligned(columns)), slots_(slots_for(n_rows, bytes)), slab_(slots_ * stride_),
          slot_of_(n_rows), row_of_(slots_), next_(slots_ + 1), previous_(slots_ + 1),
          used_(slots_) {
        if (!*this) return;
        for (ptrdiff_t i = 0; i < n_rows; ++i) slot_of_[i] = at_once ? absent : unseen;
        for (ptrdiff_t s = 0; s < slots_; ++s) row_of_[s] = -1, used_[s] = -1;
        for (ptrdiff_t s = 0; s <= slots_; ++s) {
            next_[s] = static_cast<std::int32_t>(s == slots_ ? 0 : s + 1);
            previous_[s] = static_cast<std::int32_t>(s == 0 ? slots_ : s - 1);
        }
    }
    explicit operator bool() const {
        return slab_ && slot_of_ && row_of_ && next_ && previous_ && used_;
    }

    // From here on rows that are found or claimed stay, until the next call.
    void begin() { ++now_; }

    float* find(ptrdiff_t row) {
        const std::int32_t s = slot_of_[row];
        if (s < 0) return nullptr;
        touch(s);
        return slab_.get() + s * stride_;
    }

    // A place for a row that was not found, or null.
    float* claim(ptrdiff_t row) {
        const std::int32_t s = next_[slots_];
        if (slot_of_[row] == unseen) {
            slot_of_[row] = absent;
            return nullptr;
        }
        if (slots_ == 0 || used_[s] == now_) return nullptr;
        if (row_of_[s] >= 0) slot_of_[row_of_[s]] = absent;
        row_of_[s] = static_cast<std::int32_t>(row);
        slot_of_[row] = s;
        touch(s);
        return slab_.get() + s * stride_;
    }

  private:
    static constexpr std::int32_t absent = -1, unseen = -2;

    ptrdiff_t slots_for(ptrdiff_t n_rows, double bytes) const {
        const double most = bytes / (static_cast<double>(stride_) * sizeof(float));
        return most < n_rows ? static_cast<ptrdiff_t>(most) : n_rows;
    }
    // To the end of the list, whose head is slot slots_.
    void touch(std::int32_t s) {
        const auto head = static_cast<std::int32_t>(slots_);
        used_[s] = now_;
        next_[previous_[s]] = next_[s];
        previous_[next_[s]] = previous_[s];
        previous_[s] = previous_[head];
        next_[s] = head;
        next_[previous_[head]] = s;
        previous_[head] = s;
    }

    ptrdiff_t stride_, slots_;
    Scratch<float> slab_;
    Scratch<std::int32_t> slot_of_, row_of_, next_, previous_;
    Scratch<std::int64_t> used_;
    std::int64_t now_ = 0;
};

}  // namespace fastml
