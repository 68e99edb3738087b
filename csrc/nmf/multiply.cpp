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

template <class T> constexpr ptrdiff_t most_rows = 320 / sizeof(T);  // of a panel stay in L2
constexpr double power_cost = 40;                                    // in multiply-adds

template <class T>
Multiply<T> job_of(const Rows<T>& X, const Factor<T>& B, const Factor<T>& W, double beta) {
    Multiply<T> job{};
    job.X = X;
    job.B = B;
    job.W = W;
    job.beta = static_cast<T>(beta);
    job.rows = block_rows(X) < most_rows<T> ? block_rows(X) : most_rows<T>;
    job.ld_flat = row_length<T>(B.n);
    job.panel = panel_columns<T>(B.n);
    job.ld_panel = row_length<T>(job.panel);
    return job;
}

// Whether a loss looks at V beyond the stored entries.
template <class T> bool everywhere(const Rows<T>& X, double beta, bool cost) {
    return beta != 2 && beta != 1 && (!cost || beta != 0) ? true : !X.indptr && (cost || beta != 2);
}

template <class T> double multiply_work(const Multiply<T>& job, bool all) {
    return work_of(job.X, job.W) + (all ? (job.W.ld + power_cost) * job.W.n * job.B.n : 0);
}

template <class T>
Status run_multiply(const Multiply<T>& job, double work, const Yield<T>& yield, int n_threads) {
    const ptrdiff_t ld = job.W.ld, wide = job.W.k * job.ld_flat, n = job.W.n;
    const ptrdiff_t blocks = yield.num ? wide_parts(n, ld) : Grid(n, summed_blocks).blocks;
    const ptrdiff_t num = yield.num ? wide : 0, den = yield.den ? wide : 0;
    const ptrdiff_t gram = yield.gram ? ld * ld : 0, sums = yield.sums ? ld : 0;
    const ptrdiff_t part = aligned(num + den + gram + sums);
    const ptrdiff_t per_thread = aligned(job.rows * 2 * (ld + job.ld_panel));
    n_threads = threads_awake(work, n_threads);
    Scratch<T> parts(blocks * part), scratch(n_threads * per_thread);
    if (!parts || !scratch) return Status::no_memory;
    const auto run = FML_PICK(multiply_block<T>);
    Status status = parallel(blocks, n_threads, [&](ptrdiff_t b, int worker) {
        T* own = parts.get() + b * part;
        std::memset(own, 0, part * sizeof(T));
        run(job, part_begin(n, b, blocks), part_begin(n, b + 1, blocks),
            scratch.get() + worker * per_thread, num ? own : nullptr, den ? own + num : nullptr,
            gram ? own + num + den : nullptr, sums ? own + num + den + gram : nullptr);
    });
    const auto raise = FML_PICK(raise_strip<T>);
    const auto add = [&](ptrdiff_t first, T* out) {
        if (out && status == Status::ok)
            status = sum_parts(parts.get() + first, blocks, part, job.ld_flat, raise,
                               Factor<T>{out, job.B.n, job.W.k, ld}, n_threads);
    };
    add(0, yield.num);
    add(num, yield.den);
    if (status != Status::ok) return status;
    if (gram) add_parts(parts.get() + num + den, blocks, gram, yield.gram, part);
    if (sums) add_parts(parts.get() + num + den + gram, blocks, sums, yield.sums, part);
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
    const bool all = everywhere(X, how.beta, false), flattened = all || !X.indptr;
    Scratch<T> flat(flattened ? B.ld * job.ld_flat : 0);
    if (!flat) return Status::no_memory;
    job.flat = flat.get();
    Status status = Status::ok;
    if (flattened)
        status = flatten(B, flat.get(), job.ld_flat, FML_PICK(flatten_strip<T>), n_threads);
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
    const ptrdiff_t per_thread = aligned(job.rows * job.ld_panel);
    n_threads = threads_awake(multiply_work(job, all), n_threads);
    Scratch<T> flat(all ? B.ld * job.ld_flat : 0), scratch(n_threads * per_thread);
    Scratch<double> sums(grid.blocks);
    if (!flat || !scratch || !sums) return Status::no_memory;
    job.flat = flat.get();
    Status status = Status::ok;
    if (all) status = flatten(B, flat.get(), job.ld_flat, FML_PICK(flatten_strip<T>), n_threads);
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
