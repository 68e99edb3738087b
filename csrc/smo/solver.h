#pragma once
#include <algorithm>
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

// Problems of at most whole_set variables are one working set. Others begin with sets that stay in L2,
// and whose kernel costs less than the rows of what moves in them, and, as long as it takes, go on with
// larger ones: most of the variables that still move together.
constexpr ptrdiff_t whole_set = 768, least_first_set = 192, first_set = 512, last_set = 2048,
                    last_precise_set = 1024, most_newton = 512;
constexpr int rounds_of_size = 24;

// Steps after which a problem without a limit ends as one that reached it: half a minute or so of a small
// one, and many times what one takes whose C is not enormous.
constexpr std::int64_t most_steps = 20'000'000, most_steps_each = 5'000;

// Everything of a working set but its variables.
template <class T> struct SetMemory {
    ptrdiff_t ld;
    Scratch<T> K, diagonal;
    Scratch<double> values;
    Scratch<float> gain;
    Scratch<T*> rows;
    Scratch<ptrdiff_t> ids;
    ptrdiff_t newton;
    Scratch<double> A, vectors;
    Scratch<ptrdiff_t> free;

    explicit SetMemory(ptrdiff_t most)
        : ld(aligned(most)), K(ld * ld), diagonal(ld), values(7 * ld), gain(ld), rows(most),
          ids(most), newton(std::min(most, most_newton)), A(newton * newton), vectors(3 * newton),
          free(newton) {
        if (!*this) return;
        std::fill_n(K.get(), ld * ld, T(0));
        for (ptrdiff_t k = 0; k < most; ++k) rows[k] = K.get() + k * ld;
    }
    explicit operator bool() const {
        return K && diagonal && values && gain && rows && ids && A && vectors && free;
    }
    NewtonMemory for_newton() const {
        double* x = vectors.get();
        return {newton, A.get(), x, x + newton, x + 2 * newton, free.get()};
    }
    WorkingSet<T> set(ptrdiff_t n, ptrdiff_t split) const {
        double* at = values.get();
        return {n,           split,       ld,          K.get(),     diagonal.get(),
                at,          at + ld,     at + 2 * ld, at + 3 * ld, at + 4 * ld,
                at + 5 * ld, at + 6 * ld, gain.get()};
    }
};

// One problem, from its start to its end.
class Solver {
  public:
    Solver(const Kernel& kernel, View& view, const SvmProblem& problem, const SvmOptions& options,
           SvmWatch& watch, int n_threads, ptrdiff_t n_distinct)
        : kernel_(kernel), view_(view), problem_(problem), options_(options), watch_(watch),
          n_threads_(n_threads), x_(problem.m, n_distinct),
          most_(std::min(problem.m, problem.m <= whole_set ? whole_set : last_set)),
          limit_(options.max_iter >= 0 ? options.max_iter
                                       : most_steps + most_steps_each * problem.m),
          size_(problem.m <= whole_set
                    ? problem.m
                    : std::min({most_, first_set, std::max(least_first_set, problem.m / 4)})),
          selector_(problem.m, most_),
          cache_(n_distinct, n_distinct, keeps() ? options.cache_bytes : 0, view.thrift() > 1),
          delta_(n_distinct), moved_(2 * most_), ids_(most_), coef_(2 * most_), places_(2 * most_) {
    }
    explicit operator bool() const {
        return x_ && selector_ && cache_ && delta_ && moved_ && ids_ && coef_ && places_;
    }

    Status run(const std::int32_t* local, SvmSolution* solution) noexcept;

  private:
    bool whole() const { return problem_.m <= whole_set; }
    bool keeps() const { return view_.thrift() && !whole(); }
    void load(const std::int32_t* local);
    Status refresh();
    Status round(const Extremes& ends, bool* moved);
    template <class T> Status tile(SetMemory<T>& memory);
    template <class T> Status optimise(SetMemory<T>& memory, double gap, bool* moved);
    Status apply();
    void finish(SvmSolution* solution) const;

    const Kernel& kernel_;
    View& view_;
    const SvmProblem& problem_;
    const SvmOptions& options_;
    SvmWatch& watch_;
    const int n_threads_;
    Variables x_;
    const ptrdiff_t most_;
    const std::int64_t limit_;  // of steps
    ptrdiff_t size_;            // of working sets now
    int rounds_ = 0;            // of that size
    Selector selector_;
    RowCache cache_;
    std::unique_ptr<SetMemory<float>> single_;
    std::unique_ptr<SetMemory<double>> wide_;
    Scratch<double> delta_;
    Scratch<ptrdiff_t> moved_, ids_;  // rows whose delta is not 0
    Scratch<double> coef_;
    Scratch<float*> places_;
    ptrdiff_t n_moved_ = 0;
    std::int64_t steps_ = 0;
    bool fresh_ = true;  // sums are as in double
    bool precise_ = false;
    bool settled_ = false;  // as far as the last working set could tell
    ptrdiff_t tiled_ = 0;   // variables whose tile is there to stay
};

}  // namespace fastml
