#include "smo/smo.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <new>
#include <thread>

#include "smo/sample.h"
#include "smo/solver.h"

namespace fastml {
namespace {

// Numbers the rows of a problem in ascending order: local[i] is -1 or the number of row i.
ptrdiff_t number_rows(const SvmProblem& problem, ptrdiff_t n, std::int32_t* local) {
    std::fill_n(local, n, -1);
    for (ptrdiff_t s = 0; s < problem.m; ++s) local[problem.rows[s]] = 0;
    std::int32_t count = 0;
    for (ptrdiff_t i = 0; i < n; ++i)
        if (local[i] == 0) local[i] = count++;
    return count;
}

Status solve_one(const Kernel& kernel, const SvmProblem& given, const SvmOptions& options,
                 SvmWatch& watch, SvmSolution* solution, int n_threads) {
    Scratch<std::int32_t> local(kernel.n);
    const std::unique_ptr<View> view = kernel.view();
    if (!local || !view) return Status::no_memory;
    const ptrdiff_t n = number_rows(given, kernel.n, local.get());
    SvmProblem problem = given;
    std::unique_ptr<Sample> sample;
    std::int64_t steps = 0;
    if (Sample::pays(*view, problem, options)) {
        sample.reset(new (std::nothrow) Sample(given, local.get(), n));
        if (!sample || !*sample) return Status::no_memory;
        Status status = solve_one(kernel, sample->small(), options, watch, solution, n_threads);
        if (status == Status::ok) status = sample->spread(*view, solution->rho, n_threads);
        if (status != Status::ok) return status;
        problem.start = sample->start.get();
        steps = solution->n_iter;
    }
    const std::unique_ptr<Solver> solver(
        new (std::nothrow) Solver(kernel, *view, problem, options, watch, n_threads, n));
    if (!solver || !*solver) return Status::no_memory;
    const Status status = solver->run(local.get(), solution);
    solution->n_iter += steps;
    return status;
}

// Whether each thread may have a problem of its own: their results must be those of one after the
// other, so that either no kernel rows are kept or all that are asked for. Larger ones have enough
// for all threads.
bool may_be_solved_together(const Kernel& kernel, const View& view, ptrdiff_t n_problems,
                            ptrdiff_t largest, const SvmOptions& options, int n_threads) {
    if (n_problems < 2 || largest > 20000 || !kernel.anywhere()) return false;
    const double bytes = 4.0 * largest * aligned(largest) * n_threads;
    return !view.thrift() || bytes <= options.cache_bytes;
}

// solve(p) for all problems p, each thread the next. The caller alone hears of Ctrl-C: it looks on
// until all are done.
template <class Solve>
Status solve_together(ptrdiff_t n_problems, SvmWatch& watch, int n_threads, const Solve& solve) {
    using namespace std::chrono;
    std::atomic<ptrdiff_t> next{0}, done{0};
    return parallel(n_threads, n_threads, [&](ptrdiff_t, int worker) {
        for (ptrdiff_t p; (p = next.fetch_add(1)) < n_problems; done.fetch_add(1)) solve(p);
        const auto start = steady_clock::now();
        while (worker == 0 && done.load() < n_problems) {
            if (steady_clock::now() - start < 1ms) {
                std::this_thread::yield();
                continue;
            }
            std::this_thread::sleep_for(100us);
            watch.look(0, std::numeric_limits<double>::infinity());
        }
    });
}

}  // namespace

Status solve_svm(const Kernel& kernel, const SvmProblem* problems, ptrdiff_t n_problems,
                 const SvmOptions& options, SvmWatch& watch, SvmSolution* solutions,
                 int n_threads) noexcept {
    const std::unique_ptr<View> view = kernel.view();
    if (!view) return Status::no_memory;
    ptrdiff_t largest = 0;
    for (ptrdiff_t p = 0; p < n_problems; ++p) largest = std::max(largest, problems[p].m);
    std::atomic<int> failed{0};
    const auto solve = [&](ptrdiff_t p, int threads) {
        if (failed.load()) return;
        const Status status =
            solve_one(kernel, problems[p], options, watch, solutions + p, threads);
        if (status != Status::ok) failed.store(static_cast<int>(status));
    };
    Status status = Status::ok;
    if (may_be_solved_together(kernel, *view, n_problems, largest, options, n_threads))
        status = solve_together(n_problems, watch, n_threads, [&](ptrdiff_t p) { solve(p, 1); });
    else
        for (ptrdiff_t p = 0; p < n_problems; ++p) solve(p, n_threads);
    return failed.load() ? static_cast<Status>(failed.load()) : status;
}

}  // namespace fastml
