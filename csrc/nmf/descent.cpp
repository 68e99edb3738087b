// std headers come before any target region
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/isa.h"
#include "nmf/plan.h"

#define FML_KERNEL "nmf/descent.inl.h"
#include "common/foreach_isa.h"

namespace fastml {

template <class T>
Status gram(const Factor<T>& F, T* out, int n_threads) noexcept {
    const Grid grid(F.n, summed_blocks);
    const ptrdiff_t size = F.ld * F.ld;
    n_threads = threads_for(1.0 * F.n * size, n_threads);
    Scratch<T> parts(grid.blocks * size);
    if (!parts) return Status::no_memory;
    const auto add = FML_PICK(add_gram<T>);
    const Status status = parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int) {
        T* part = parts.get() + b * size;
        std::memset(part, 0, size * sizeof(T));
        add(F.at + grid.begin(b) * F.ld, grid.end(b) - grid.begin(b), F.ld, part);
    });
    if (status == Status::ok) add_parts(parts.get(), grid.blocks, size, out);
    return status;
}

template <class T>
Status times(const Rows<T>& X, const Factor<T>& B, T* out, int n_threads) noexcept {
    const auto run = FML_PICK(rows_times<T>);
    const ptrdiff_t rows = block_rows(X);
    n_threads = threads_for(work_of(X, Factor<T>{out, X.n, B.k, B.ld}), n_threads);
    return parallel(ceil_div(X.n, rows), n_threads, [&](ptrdiff_t b, int) {
        const ptrdiff_t first = b * rows, here = X.n - first < rows ? X.n - first : rows;
        run(X, first, here, B.at, B.ld, out + first * B.ld);
    });
}

template <class T>
Status descend(const Rows<T>& X, const Factor<T>& B, const T* products, const Sweep<T>& sweep,
               const Factor<T>& W, T* gram, double* violation, int n_threads) noexcept {
    const ptrdiff_t ld = W.ld, rows = block_rows(Rows<T>{});
    const Descent<T> job{X, B, W, products, sweep, rows};
    const ptrdiff_t blocks = Grid(W.n, summed_blocks).blocks, square = gram ? ld * ld : 0;
    ptrdiff_t flipped = 0;
    FML_PICK(flipped_rows_of<T>)(&flipped);
    const ptrdiff_t per_thread = aligned((rows + 2 * flipped) * ld);
    n_threads = threads_awake(work_of(products ? Rows<T>{} : X, W), n_threads);
    Scratch<T> grams(blocks * square), scratch(n_threads * per_thread);
    Scratch<double> violations(blocks);
    if (!grams || !scratch || !violations) return Status::no_memory;
    const auto run = FML_PICK(descend_block<T>);
    const Status status = parallel(blocks, n_threads, [&](ptrdiff_t b, int worker) {
        T* own = grams.get() + b * square;
        std::memset(own, 0, square * sizeof(T));
        violations[b] = 0;
        run(job, part_begin(W.n, b, blocks), part_begin(W.n, b + 1, blocks),
            scratch.get() + worker * per_thread, gram ? own : nullptr, &violations[b]);
    });
    if (status != Status::ok) return status;
    *violation = 0;
    for (ptrdiff_t b = 0; b < blocks; ++b) *violation += violations[b];
    if (gram) add_parts(grams.get(), blocks, square, gram);
    return status;
}

#define FML_INSTANTIATE(T)                                                               \
    template Status gram(const Factor<T>&, T*, int) noexcept;                            \
    template Status times(const Rows<T>&, const Factor<T>&, T*, int) noexcept;           \
    template Status descend(const Rows<T>&, const Factor<T>&, const T*, const Sweep<T>&, \
                            const Factor<T>&, T*, double*, int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
