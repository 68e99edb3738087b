#pragma once
#include <cstdint>
#include <memory>

#include "common/blocks.h"
#include "common/scratch.h"
#include "smo/cache.h"
#include "smo/set.h"
#include "smo/smo.h"
#include "smo/view.h"

namespace fastml {

// A problem's variables, and the kernel's part of their gradient.
struct Variables {
    ptrdiff_t m, n;             // n: distinct rows
    Scratch<std::int32_t> row;  // of each variable, in [0, n)
    Scratch<ptrdiff_t> ids;     // of each row, ascending
    Scratch<double> beta, lower, upper, offset;
    Scratch<double> sums;  // of each row: sum_t beta_t K(row_t, row)

    Variables(ptrdiff_t n_variables, ptrdiff_t n_rows)
        : m(n_variables), n(n_rows), row(m), ids(n), beta(m), lower(m), upper(m), offset(m),
          sums(aligned(n)) {}
    explicit operator bool() const {
        return row && ids && beta && lower && upper && offset && sums;
    }
    // What beta would gain by rising.
    double force(ptrdiff_t s) const { return -(offset[s] + sums[row[s]]); }
    double objective() const {
        double sum = 0;
        for (ptrdiff_t s = 0; s < m; ++s) sum += beta[s] * (sums[row[s]] + 2 * offset[s]);
        return sum / 2;
    }
    bool may_rise(ptrdiff_t s) const { return beta[s] < upper[s]; }
    bool may_fall(ptrdiff_t s) const { return beta[s] > lower[s]; }
};

// The largest force upwards, and the smallest among those that may fall, by sign with nu.
struct Extremes {
    double top[2], bottom[2];
    int parts;
    double gap() const;
};
Extremes extremes(const Variables& x, const SvmProblem& problem, const SvmOptions& options);

// Chooses the variables of the next working set: those that violate most, beside half of the last.
class Selector {
  public:
    Selector(ptrdiff_t m, ptrdiff_t most);
    explicit operator bool() const { return in_ && chosen && keys_ && order_ && queue_; }
    void choose(const Variables& x, const SvmProblem& problem, const Extremes& ends, bool nu,
                ptrdiff_t most);

    ptrdiff_t n = 0, split = 0;  // variables, and those of the first part
    Scratch<std::int32_t> chosen;

  private:
    void take(const Variables& x, const SvmProblem& problem, double limit, bool rising, int part,
              ptrdiff_t most);
    bool in_part(const SvmProblem& problem, ptrdiff_t s, int part) const {
        return parts_ == 1 || (problem.signs[s] > 0) == (part == 0);
    }
    int parts_ = 1;
    std::int32_t now_ = 0;
    Scratch<std::int32_t> queue_, in_, order_;  // in_: the round that chose a variable
    Scratch<double> keys_;
};

}  // namespace fastml
