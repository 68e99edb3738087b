// std headers come before any target region
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/isa.h"
#include "nmf/plan.h"

#define FML_KERNEL "nmf/multiply.inl.h"
#include "common/foreach_isa.h"

namespace fastml {

namespace {

constexpr ptrdiff_t most_rows = 48;  // strips of so many rows stay in L1 or close to it
constexpr double power_cost = 40;    // in multiply-adds

template <class T>
Multiply<T> job_of(const Rows<T>& X, const Factor<T>& B, const Factor<T>& W, double beta) {
    Multiply<T> job{};
    job.X = X;
    job.B = B;
    job.W = W;
    job.beta = static_cast<T>(beta);
    job.rows = block_rows(X) < most_rows ? block_rows(X) : most_rows;
    job.ld_flat = ceil_div(B.n, strip_columns) * strip_columns;
    return job;
}

// Whether a loss looks at V beyond the stored entries.
template <class T> bool everywhere(const Rows<T>& X, double beta, bool cost) {
    return beta != 2 && beta != 1 && (!cost || beta != 0) ? true : !X.indptr && (cost || beta != 2);
}

template <class T> Status flatten(Multiply<T>& job, T* flat, int n_threads) {
    job.flat = flat;
    const auto run = FML_PICK(flatten_strip<T>);
    return parallel(job.ld_flat / strip_columns,
                    threads_for(8.0 * job.ld_flat * job.B.k, n_threads),
                    [&](ptrdiff_t s, int) { run(job.B, s * strip_columns, flat, job.ld_flat); });
}

template <class T> double multiply_work(const Multiply<T>& job, bool all) {
    return work_of(job.X, job.W) + (all ? (job.W.ld + power_cost) * job.W.n * job.B.n : 0);
}

template <class T>
Status run_multiply(const Multiply<T>& job, double work, const Yield<T>& yield, int n_threads) {
    const ptrdiff_t ld = job.W.ld, wide = job.B.n * ld;
    const Grid grid(job.W.n, yield.num ? wide_parts(job.W.n, ld) : summed_blocks);
    const ptrdiff_t num = yield.num ? wide : 0, den = yield.den ? wide : 0;
    const ptrdiff_t gram = yield.gram ? ld * ld : 0, sums = yield.sums ? ld : 0;
    const ptrdiff_t part = num + den + gram + sums;
    const ptrdiff_t per_thread = aligned(job.rows * 2 * (ld + strip_columns));
    n_threads = threads_for(work, n_threads);
    Scratch<T> parts(grid.blocks * part), scratch(n_threads * per_thread);
    if (!parts || !scratch) return Status::no_memory;
    const auto run = FML_PICK(multiply_block<T>);
    Status status = parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int worker) {
        T* own = parts.get() + b * part;
        std::memset(own, 0, part * sizeof(T));
        run(job, grid.begin(b), grid.end(b), scratch.get() + worker * per_thread,
            num ? own : nullptr, den ? own + num : nullptr, gram ? own + num + den : nullptr,
            sums ? own + num + den + gram : nullptr);
    });
    const auto add = [&](ptrdiff_t first, ptrdiff_t size, T* out) {
        if (size && status == Status::ok)
            status = sum_parts(parts.get() + first, grid.blocks, size, part, out, n_threads);
    };
    add(0, num, yield.num);
    add(num, den, yield.den);
    add(num + den, gram, yield.gram);
    add(num + den + gram, sums, yield.sums);
    return status;
}

}  // namespace

template <class T>
Status multiply(const Rows<T>& X, const Factor<T>& B, const T* den, const Update<T>& how,
                bool update, const Factor<T>& W, const Yield<T>& yield, int n_threads) noexcept {
    Multiply<T> job = job_of(X, B, W, how.beta);
    job.how = how;
    job.den = den;
    job.one_den = how.beta == 1;
    job.update = update;
    const bool all = everywhere(X, how.beta, false);
    Scratch<T> flat(all ? job.ld_flat * B.k : 0);
    if (!flat) return Status::no_memory;
    const Status status = all ? flatten(job, flat.get(), n_threads) : Status::ok;
    return status == Status::ok ? run_multiply(job, multiply_work(job, all), yield, n_threads)
                                : status;
}

template <class T>
Status multiply_given(const T* num, const T* den, bool one_den, const Update<T>& how,
                      const Factor<T>& W, const Yield<T>& yield, int n_threads) noexcept {
    Multiply<T> job = job_of(Rows<T>{}, Factor<T>{}, W, how.beta);
    job.how = how;
    job.num = num;
    job.den = den;
    job.one_den = one_den;
    const double each = yield.gram ? W.ld : how.gamma != 1 ? power_cost : 4;
    return run_multiply(job, each * W.n * W.ld, yield, n_threads);
}

template <class T>
Status divergence(const Rows<T>& X, const Factor<T>& B, const Factor<T>& W, double beta,
                  double* sum, int n_threads) noexcept {
    Multiply<T> job = job_of(X, B, W, beta);
    const bool all = everywhere(X, beta, true);
    const Grid grid(W.n, summed_blocks);
    const ptrdiff_t per_thread = aligned(job.rows * strip_columns);
    n_threads = threads_for(multiply_work(job, all), n_threads);
    Scratch<T> flat(all ? job.ld_flat * B.k : 0), scratch(n_threads * per_thread);
    Scratch<double> sums(grid.blocks);
    if (!flat || !scratch || !sums) return Status::no_memory;
    Status status = all ? flatten(job, flat.get(), n_threads) : Status::ok;
    if (status != Status::ok) return status;
    const auto run = FML_PICK(cost_block<T>);
    status = parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int worker) {
        sums[b] = 0;
        run(job, grid.begin(b), grid.end(b), scratch.get() + worker * per_thread, &sums[b]);
    });
    *sum = 0;
    for (ptrdiff_t b = 0; status == Status::ok && b < grid.blocks; ++b) *sum += sums[b];
    return status;
}

#define FML_INSTANTIATE(T)                                                                       \
    template Status multiply(const Rows<T>&, const Factor<T>&, const T*, const Update<T>&, bool, \
                             const Factor<T>&, const Yield<T>&, int) noexcept;                   \
    template Status multiply_given(const T*, const T*, bool, const Update<T>&, const Factor<T>&, \
                                   const Yield<T>&, int) noexcept;                               \
    template Status divergence(const Rows<T>&, const Factor<T>&, const Factor<T>&, double,       \
                               double*, int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
