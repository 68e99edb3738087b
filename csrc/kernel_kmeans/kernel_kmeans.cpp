#include "kernel_kmeans/kernel_kmeans.h"

// std headers come before any target region
#include <algorithm>
#include <cmath>
#include <limits>

#include "common/blocks.h"
#include "common/isa.h"
#include "common/scratch.h"

#define FML_KERNEL "kernel_kmeans/kernel_kmeans.inl.h"
#include "common/foreach_isa.h"

namespace fastml {

template <class T>
Status move_rows(const T* K, ptrdiff_t n, const ptrdiff_t* rows, const std::int32_t* from,
                 const std::int32_t* to, const double* w, ptrdiff_t m, ptrdiff_t k, double* sums,
                 int n_threads) noexcept {
    // The sums of a block of columns fill half of L2, but a row is read by lines at least.
    constexpr ptrdiff_t most = 2048, least = 64, held = 1 << 16;
    const ptrdiff_t columns = std::max(least, std::min(most, held / k / 16 * 16));
    // Few enough rows a task that none keeps Ctrl-C waiting; each adds to the sums of the last.
    const ptrdiff_t at_once = std::max<ptrdiff_t>(1, (1 << 25) / columns);
    n_threads = threads_for(passed_over * static_cast<double>(m) * n, n_threads);
    const auto run = FML_PICK(move_rows_block<T>);
    Status status = Status::ok;
    for (ptrdiff_t r = 0; r < m && status == Status::ok; r += at_once)
        status = parallel(ceil_div(n, columns), n_threads, [&](ptrdiff_t b, int) {
            run(K, n, rows + r, from ? from + r : nullptr, to + r, w + r, std::min(at_once, m - r),
                b * columns, std::min(n, (b + 1) * columns), sums);
        });
    return status;
}

Status nearest_centers(const double* sums, ptrdiff_t n, ptrdiff_t k, const double* norm,
                       const double* scale, std::int32_t* labels, double* closeness,
                       ptrdiff_t* changed, int n_threads) noexcept {
    const Grid grid(n, free_blocks);
    Scratch<ptrdiff_t> moved(grid.blocks);
    if (!moved) return Status::no_memory;
    const auto run = FML_PICK(nearest_block);
    n_threads = threads_for(static_cast<double>(n) * k, n_threads);
    const Status status = parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int) {
        moved[b] = run(sums, n, k, norm, scale, grid.begin(b), grid.end(b), labels, closeness);
    });
    *changed = 0;
    for (ptrdiff_t b = 0; status == Status::ok && b < grid.blocks; ++b) *changed += moved[b];
    return status;
}

template Status move_rows(const float*, ptrdiff_t, const ptrdiff_t*, const std::int32_t*,
                          const std::int32_t*, const double*, ptrdiff_t, ptrdiff_t, double*,
                          int) noexcept;
template Status move_rows(const double*, ptrdiff_t, const ptrdiff_t*, const std::int32_t*,
                          const std::int32_t*, const double*, ptrdiff_t, ptrdiff_t, double*,
                          int) noexcept;

}  // namespace fastml
