#pragma once
// Nodes of few rows, which most nodes are. The rows stay where they are, and so does what is
// gathered of them; what a feature leaves to the next one is an order of a dozen numbers. The rest
// of the next one's work need not wait for it.
#include <cstddef>
#include <cstdint>

#include "trees/replay.h"

namespace fastml {

struct Point {  // a row's weight, and its target times that
    double w, wy;
};

class FewRows {
  public:
    // Takes m <= few rows; what `points` has is by row.
    void take(const std::int32_t* from, std::ptrdiff_t m, const Point* all_points) {
        m_ = m;
        for (std::ptrdiff_t i = 0; i < m; ++i) {
            order[i] = static_cast<std::uint32_t>(i);
            rows[i] = from[i];
            points[i] = all_points[from[i]];
        }
        for (std::ptrdiff_t i = m; i < few; ++i) order[i] = static_cast<std::uint32_t>(i);
    }
    void put_back(std::int32_t* to) const {
        for (std::ptrdiff_t i = 0; i < m_; ++i) to[i] = rows[order[i]];
    }

    alignas(64) std::uint32_t order[few];
    alignas(64) std::int32_t rows[few] = {};
    Point points[few];

  private:
    std::ptrdiff_t m_ = 0;
};

}  // namespace fastml
