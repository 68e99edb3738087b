#pragma once
#include "common/blocks.h"
#include "common/scratch.h"
#include "smo/smo.h"

namespace fastml {

// Every few rows of a problem make a small one, whose solution tells of all variables, but for those
// near the margin, at which bound they are. Where sums are cheap that saves most of the steps.
class Sample {
  public:
    // Whether it pays, and may be done.
    static bool pays(const View& view, const SvmProblem& problem, const SvmOptions& options);

    // local: the number of each row in the problem, which has n_rows.
    Sample(const SvmProblem& problem, const std::int32_t* local, ptrdiff_t n_rows);
    explicit operator bool() const {
        return rows_ && signs_ && values_ && start && ids_ && sums_ && order_;
    }
    SvmProblem small() const;
    // Makes `start` of the small problem's solution.
    Status spread(View& view, double rho, int n_threads) noexcept;

    Scratch<double> start;

  private:
    void balance(double sum);
    const SvmProblem& problem_;
    const std::int32_t* local_;
    const ptrdiff_t n_rows_;
    ptrdiff_t m_ = 0;
    Scratch<ptrdiff_t> rows_, ids_;
    Scratch<std::int8_t> signs_;
    Scratch<double> values_, sums_;  // linear, upper, alpha, gradient of the small problem
    Scratch<std::int32_t> order_;
};

}  // namespace fastml
