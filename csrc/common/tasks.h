#pragma once
// How drivers cut the rows of a sparse matrix into tasks of about equal work, from the entries alone.
#include <algorithm>
#include <cstddef>

#include "common/blocks.h"
#include "common/scratch.h"

namespace fastml {

struct Tasks {
    Scratch<ptrdiff_t> begin;  // and the end of the last
    ptrdiff_t count = 0;
    double work = 0;

    // A row costs `entry` multiply-adds an entry and `row` besides.
    Tasks(const ptrdiff_t* indptr, ptrdiff_t n, double entry, double row) noexcept
        : begin(std::min<ptrdiff_t>(n, most) + 2) {
        if (!begin) return;
        work = (indptr[n] - indptr[0]) * entry + n * row;
        // A few milliseconds: long enough to be worth a turn, short enough for Ctrl-C.
        const double wanted = std::max(work / (most - 1), 4e6);
        begin[0] = 0;
        double sum = 0;
        for (ptrdiff_t i = 0; i < n; ++i) {
            sum += (indptr[i + 1] - indptr[i]) * entry + row;
            if (sum < wanted && i + 1 < n) continue;
            begin[++count] = i + 1;
            sum = 0;
        }
    }

  private:
    static constexpr ptrdiff_t most = 2048;
};

}  // namespace fastml
