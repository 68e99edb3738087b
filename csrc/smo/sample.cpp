#include "smo/sample.h"

#include <algorithm>
#include <cmath>

namespace fastml {
namespace {

constexpr ptrdiff_t every = 8, worth_sampling = 2000;

}  // namespace

bool Sample::pays(const View& view, const SvmProblem& problem, const SvmOptions& options) {
    if (!view.linear() || problem.m < worth_sampling || problem.start) return false;
    if (options.nu || !options.bias || options.max_iter >= 0) return false;
    for (ptrdiff_t s = 0; s < problem.m; ++s)
        if (!(problem.upper[s] * every < INFINITY)) return false;
    return true;
}

Sample::Sample(const SvmProblem& problem, const std::int32_t* local, ptrdiff_t n_rows)
    : start(problem.m), problem_(problem), local_(local), n_rows_(n_rows), rows_(problem.m),
      ids_(n_rows), signs_(problem.m), values_(4 * problem.m), sums_(n_rows), order_(problem.m) {
    if (!*this) return;
    double *linear = values_.get(), *upper = linear + problem.m;
    for (ptrdiff_t s = 0; s < problem.m; ++s) {
        ids_[local[problem.rows[s]]] = problem.rows[s];
        if (local[problem.rows[s]] % every) continue;
        rows_[m_] = problem.rows[s];
        signs_[m_] = problem.signs[s];
        linear[m_] = problem.linear[s];
        upper[m_++] = problem.upper[s] * every;
    }
}

SvmProblem Sample::small() const {
    double* at = values_.get();
    const ptrdiff_t m = problem_.m;
    return {m_, rows_.get(), signs_.get(), at, at + m, nullptr, at + 2 * m, at + 3 * m};
}

Status Sample::spread(View& view, double rho, int n_threads) noexcept {
    double* beta = values_.get() + 2 * problem_.m;
    for (ptrdiff_t k = 0; k < m_; ++k) beta[k] *= signs_[k];
    std::fill_n(sums_.get(), n_rows_, 0.0);
    Status status = view.set_columns(ids_.get(), n_rows_, n_threads);
    if (status != Status::ok) return status;
    status = view.add_exact(rows_.get(), m_, beta, nullptr, sums_.get(), n_threads);
    if (status != Status::ok) return status;
    double* force = values_.get();  // upwards, over that of the offset
    double sum = 0;
    for (ptrdiff_t s = 0; s < problem_.m; ++s) {
        const double sign = problem_.signs[s];
        force[s] = rho - sign * problem_.linear[s] - sums_[local_[problem_.rows[s]]];
        start[s] = sign * force[s] > 0 ? problem_.upper[s] : 0;
        sum += sign * start[s];
    }
    balance(sum);
    return Status::ok;
}

// Makes the signed sum 0 by variables near the margin.
void Sample::balance(double sum) {
    const double* force = values_.get();
    for (ptrdiff_t s = 0; s < problem_.m; ++s) order_[s] = static_cast<std::int32_t>(s);
    std::sort(order_.get(), order_.get() + problem_.m, [&](std::int32_t a, std::int32_t b) {
        const double x = std::fabs(force[a]), y = std::fabs(force[b]);
        return x < y || (x == y && a < b);
    });
    for (ptrdiff_t k = 0; k < problem_.m && sum != 0; ++k) {
        const ptrdiff_t s = order_[k];
        const double sign = problem_.signs[s];
        const bool less = sum * sign > 0;  // or more of it
        const double room = less ? start[s] : problem_.upper[s] - start[s];
        const double by = std::min(room, std::fabs(sum));
        start[s] = by < room ? start[s] + (less ? -by : by) : less ? 0 : problem_.upper[s];
        sum = by < room ? 0 : sum - (sum > 0 ? by : -by);
    }
}

}  // namespace fastml
