#pragma once
#include <cstddef>
#include <cstdint>

#include "common/pool.h"
#include "smo/view.h"
#include "smo/view.h"

// The dual of kernel machines, by sequential minimal optimisation over working sets. With
// beta = signs alpha, K the kernel of the problem's rows and b = signs linear, it is
//     min 1/2 beta' K beta + b' beta,  beta between 0 and signs upper,  sum(beta) = const;
// with nu also sum(alpha) = const; without bias, neither. Pairs inside a working set are chosen by
// second-order information (Fan, Chen and Lin, 2005); sets take the rows that violate most.
namespace fastml {

struct SvmProblem {
    std::ptrdiff_t m;            // variables
    const std::ptrdiff_t* rows;  // (m), what each belongs to; a row may have several
    const std::int8_t* signs;    // -1 or 1
    const double *linear, *upper;
    const double* start;       // null for zeros
    double *alpha, *gradient;  // OUT; of the objective, in double
};

struct SvmOptions {
    bool nu, bias, shrinking;
    double tol, cache_bytes;
    std::int64_t max_iter;  // two-variable steps; negative for very many
};

enum class SvmEnd : int { converged, max_iter, stuck };

// `gap` is the largest violation of the optimality conditions, from a gradient in double.
struct SvmSolution {
    double rho, r, objective, gap;
    std::int64_t n_iter;
    SvmEnd end;
};

// Is told of every few steps more, on any thread; anything but Status::ok stops them all.
class SvmWatch {
  public:
    virtual Status look(double steps, double gap) noexcept = 0;
    // Whether to end as if max_iter were reached.
    virtual bool enough() const noexcept = 0;

  protected:
    ~SvmWatch() = default;
};

// Results do not depend on n_threads.
Status solve_svm(const Kernel& kernel, const SvmProblem* problems, std::ptrdiff_t n_problems,
                 const SvmOptions& options, SvmWatch& watch, SvmSolution* solutions,
                 int n_threads) noexcept;

}  // namespace fastml
