#pragma once
// The order of rows that scikit-learn's trees keep over sparse features. Of each feature that is
// looked at, rows with negative values are exchanged to the front of the node, row by row as they
// ascend, and those with positive ones to its back. Zeros stay where that leaves them.
#include <algorithm>
#include <vector>

#include "trees/columns.h"
#include "trees/fenwick.h"

namespace fastml {

class SparseOrder {
  public:
    // Where the zeros of the node begin, and where they end.
    struct Zeros {
        std::ptrdiff_t begin, end;
    };

    // `rows` stay the caller's.
    SparseOrder(std::vector<std::int32_t>& rows)
        : rows_(rows), place_(rows.size()), ascending_(rows.size()) {}

    void plant(std::ptrdiff_t n_rows) {
        std::fill(place_.begin(), place_.end(), -1);
        settle(0, n_rows);
    }
    void begin(std::ptrdiff_t start, std::ptrdiff_t end) {
        start_ = start;
        end_ = end;
        is_ascending_ = false;
    }
    // Takes note of rows [begin, end), which have been moved.
    void settle(std::ptrdiff_t begin, std::ptrdiff_t end) {
        for (std::ptrdiff_t p = begin; p < end; ++p)
            place_[rows_[p]] = static_cast<std::int32_t>(p);
    }

    // Moves the node's rows, and puts what they have, but for zeros, beside them. of_entry(k) is
    // what the k-th entry has, of_row(row) the same if entries need not be looked for (by_row).
    template <class OfEntry, class OfRow, class Out>
    Zeros extract(const Entries& entries, bool by_row, OfEntry of_entry, OfRow of_row, Out zero,
                  std::vector<Out>& out) {
        Zeros zeros{start_, end_};
        const auto move = [&](Out x, std::int32_t row) {
            if (x == zero) return;
            const std::ptrdiff_t to = x > zero ? --zeros.end : zeros.begin++;
            const std::int32_t other = rows_[to], at = place_[row];
            out[to] = x;
            rows_[to] = row;
            rows_[at] = other;
            place_[other] = at;
            place_[row] = static_cast<std::int32_t>(to);
        };
        const std::int32_t* const rows = entries.rows;
        const std::ptrdiff_t m = end_ - start_, count = entries.count;
        const std::ptrdiff_t steps = by_row ? 1 : 2 * bits_of(count);
        if (m * (steps + (is_ascending_ ? 0 : bits_of(m) / 4)) >= count) {
            for (std::ptrdiff_t k = 0; k < count; ++k) {
                const std::ptrdiff_t at = place_[rows[k]];
                if (at >= start_ && at < end_) move(of_entry(k), rows[k]);
            }
            return zeros;
        }
        ascend();
        if (by_row) {
            for (std::ptrdiff_t i = 0; i < m; ++i) move(of_row(ascending_[i]), ascending_[i]);
            return zeros;
        }
        const std::int32_t* from = rows;
        for (std::ptrdiff_t i = 0; i < m; ++i) {
            from = std::lower_bound(from, rows + count, ascending_[i]);
            if (from == rows + count) break;
            if (*from == ascending_[i]) move(of_entry(from - rows), *from);
        }
        return zeros;
    }

  private:
    void ascend() {
        if (is_ascending_) return;
        std::copy(rows_.data() + start_, rows_.data() + end_, ascending_.begin());
        std::sort(ascending_.begin(), ascending_.begin() + (end_ - start_));
        is_ascending_ = true;
    }

    std::vector<std::int32_t>& rows_;
    std::vector<std::int32_t> place_;      // of each row; -1: not in the tree
    std::vector<std::int32_t> ascending_;  // the node's rows
    std::ptrdiff_t start_ = 0, end_ = 0;
    bool is_ascending_ = false;
};

}  // namespace fastml
