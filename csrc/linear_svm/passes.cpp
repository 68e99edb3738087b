#include "linear_svm/passes.h"

// std headers come before any target region
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/isa.h"

#define FML_KERNEL "linear_svm/linear_svm.inl.h"
#include "common/foreach_isa.h"
#include "common/tiling.h"

namespace fastml {
namespace {

// Panels are written in strides of kilobytes, which processors fetch ahead of, several strides far:
// what another thread writes should not lie there.
constexpr ptrdiff_t apart = 1 << 14;

}  // namespace

template <class T> Bodies<T> chosen_bodies() {
    return {FML_PICK(margins_block<T>), FML_PICK(combine_block<T>), FML_PICK(norms_block<T>),
            FML_PICK(gram_block<T>), 2 * baseline::gram_depth + 1};
}
template Bodies<float> chosen_bodies();
template Bodies<double> chosen_bodies();

void factor(const double* H, ptrdiff_t n, ptrdiff_t ld, double ridge, double* L) {
    FML_PICK(factor)(H, n, ld, ridge, L);
}
void solve(const double* L, ptrdiff_t n, ptrdiff_t ld, double* x) { FML_PICK(solve)(L, n, ld, x); }

template <class T>
Status Gram<T>::add(const std::int32_t* rows, const double* kappa, ptrdiff_t m, int n_threads,
                    double* sum) noexcept {
    if (m == 0) return Status::ok;
    const ptrdiff_t size = ld * ld, per_thread = passes_.bodies.gram_scratch * ld + apart;
    const Grid grid(m, std::min(most_, ceil_div(m, 4 * block_unit)));
    const double row = passes_.entries / static_cast<double>(passes_.n);
    n_threads = threads_for(static_cast<double>(m) * row * row, n_threads);
    Scratch<double> packed(n_threads * per_thread);
    if (!packed) return Status::no_memory;
    const Status status = parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int worker) {
        double* part = parts_.get() + b * size;
        std::fill_n(part, size, 0.0);
        passes_.bodies.gram(passes_.X, passes_.bias, rows + grid.begin(b), kappa + grid.begin(b),
                            grid.end(b) - grid.begin(b), ld, packed.get() + worker * per_thread,
                            part);
    });
    if (status != Status::ok) return status;
    for (ptrdiff_t b = 0; b < grid.blocks; ++b)
        for (ptrdiff_t e = 0; e < size; ++e) sum[e] += parts_[b * size + e];
    return Status::ok;
}
template class Gram<float>;
template class Gram<double>;

Status advance(Solver* const* solvers, ptrdiff_t count, bool apart, int n_threads) noexcept {
    Scratch<Solver*> open(count);
    Scratch<Status> statuses(count);
    if (!open || !statuses) return Status::no_memory;
    ptrdiff_t n_open = 0;
    for (ptrdiff_t k = 0; k < count; ++k)
        if (!solvers[k]->done) open[n_open++] = solvers[k];
    std::fill_n(statuses.get(), count, Status::ok);
    // Two threads each, one after the other, against one each, as many as there are at a time.
    if (n_open && open[0]->halves) apart = 2 * ceil_div(n_open, n_threads) < n_open;
    const int within = apart ? 1 : n_threads;
    if (apart && n_open > 1) {
        const Status status = parallel(
            n_open, n_threads, [&](ptrdiff_t k, int) { statuses[k] = open[k]->advance(within); });
        if (status != Status::ok) return status;
    } else {
        for (ptrdiff_t k = 0; k < n_open && (k == 0 || statuses[k - 1] == Status::ok); ++k)
            statuses[k] = open[k]->advance(n_threads);
    }
    for (ptrdiff_t k = 0; k < n_open; ++k)
        if (statuses[k] != Status::ok) return statuses[k];
    return Status::ok;
}

template <class T>
Status scores(const Rows<T>& X, const double* W, const double* offsets, ptrdiff_t k, double* out,
              int n_threads) noexcept {
    const auto margins = FML_PICK(margins_block<T>);
    const double work =
        k * (X.indptr ? passed_over * X.indptr[X.n] : static_cast<double>(X.n) * X.d);
    const Grid grid(X.n, free_blocks);
    n_threads = threads_for(work, n_threads);
    Scratch<double> column(n_threads * block_unit);
    if (!column) return Status::no_memory;
    return parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int worker) {
        double* z = column.get() + worker * block_unit;
        for (ptrdiff_t i = grid.begin(b); i < grid.end(b); i += block_unit) {
            const ptrdiff_t end = std::min(i + block_unit, grid.end(b));
            for (ptrdiff_t m = 0; m < k; ++m) {
                margins(X, i, end, W + m * X.d, offsets[m], z);
                for (ptrdiff_t r = i; r < end; ++r) out[r * k + m] = z[r - i];
            }
        }
    });
}
template Status scores(const Rows<float>&, const double*, const double*, ptrdiff_t, double*,
                       int) noexcept;
template Status scores(const Rows<double>&, const double*, const double*, ptrdiff_t, double*,
                       int) noexcept;

// Strictly, either way: as rows mostly are, which takes a tenth of the time to see.
static bool is_monotonic(const std::int32_t* at, std::int32_t size) {
    std::int32_t rises = 0, falls = 0;
#pragma omp simd reduction(+ : rises, falls)
    for (std::int32_t q = 0; q < size - 1; ++q) {
        rises += at[q] < at[q + 1];
        falls += at[q] > at[q + 1];
    }
    return std::max(rises, falls) >= size - 1;
}

template <class T> Status repeats(const Rows<T>& X, bool* result) noexcept {
    Scratch<std::int32_t> last(X.d);  // the row that a column was last seen in
    if (!last) return Status::no_memory;
    std::fill_n(last.get(), X.d, -1);
    *result = false;
    for (std::int32_t i = 0; i < X.n && !*result; ++i) {
        const std::int32_t *at = X.indices + X.indptr[i], size = X.indptr[i + 1] - X.indptr[i];
        if (is_monotonic(at, size)) continue;
        bool again = false;
        for (std::int32_t q = 0; q < size; ++q) {
            again |= last[at[q]] == i;
            last[at[q]] = i;
        }
        *result = again;
    }
    return Status::ok;
}
template Status repeats(const Rows<float>&, bool*) noexcept;
template Status repeats(const Rows<double>&, bool*) noexcept;

template <class T>
Status combine(const Rows<T>& X, double bias, const double* a, double* out,
               int n_threads) noexcept {
    Passes<T> passes(X, bias);
    if (!passes) return Status::no_memory;
    return passes.sweep(nullptr, nullptr, a, out, n_threads,
                        [](ptrdiff_t, ptrdiff_t, ptrdiff_t) {});
}
template Status combine(const Rows<float>&, double, const double*, double*, int) noexcept;
template Status combine(const Rows<double>&, double, const double*, double*, int) noexcept;

}  // namespace fastml
