#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace fastml {

// The two ranks between which the quantile q of c values lies.
struct Ranks {
    std::ptrdiff_t below, above;
    Ranks(double q, std::ptrdiff_t c)
        : below(static_cast<std::ptrdiff_t>(std::floor(q * static_cast<double>(c - 1)))),
          above(std::min(below + 1, c - 1)) {}
};

// Values of ascending ranks, each found among those that are left of the last ones.
template <class T> class Selection {
  public:
    Selection(T* begin, T* end) : begin_(begin), from_(begin), end_(end) {}
    T operator()(std::ptrdiff_t rank) {
        T* const at = begin_ + rank;
        if (at < from_) return *at;
        if (at == from_)
            std::swap(*at, *std::min_element(at, end_));
        else
            std::nth_element(from_, at, end_);
        from_ = at + 1;
        return *at;
    }

  private:
    T *begin_, *from_, *end_;
};

}  // namespace fastml
