#include "power/power.h"

// std headers come before any target region
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/blocks.h"
#include "common/isa.h"
#include "common/scratch.h"

#define FML_KERNEL "power/dense.inl.h"
#include "common/foreach_isa.h"

namespace fastml {
namespace {

// How a product is cut, from its shape alone.
template <class T> struct Plan {
    ptrdiff_t thin = 0;  // k, where features are the lanes; else 0
    ptrdiff_t width;     // columns of V, U, Y and Z as kernels see them
    ptrdiff_t block;     // rows that stay in cache between the two products
    ptrdiff_t parts;     // of the rows, each with its own sums
    double work;

    Plan(const Dense<T>& X, ptrdiff_t k) : work(static_cast<double>(X.n) * X.d * (k + 1)) {
        ptrdiff_t lanes = 0;
        FML_PICK(vector_lanes<T>)(&lanes);
        if (k <= 2) thin = k;
        width = thin ? thin : ceil_div(k, lanes) * lanes;
        const ptrdiff_t fit = (1 << 19) / (X.d * static_cast<ptrdiff_t>(sizeof(T)));
        block = thin ? std::clamp<ptrdiff_t>(fit / 8 * 8, 8, 512)
                     : std::clamp<ptrdiff_t>(fit / 48 * 48, 96, 384);
        const ptrdiff_t room = X.n / (8 * width);
        parts = std::clamp<ptrdiff_t>(std::min(room, ceil_div(X.n, block)), 1, summed_blocks);
    }
    bool packs(const Dense<T>& X) const { return X.mean || X.column != 1; }
};

// V as kernels read it: transposed, or padded with zeros to whole vectors.
template <class T>
void pad(const T* V, ptrdiff_t rows, ptrdiff_t k, const Plan<T>& plan, T* out) {
    for (ptrdiff_t j = 0; j < rows; ++j)
        for (ptrdiff_t c = 0; c < plan.width; ++c)
            out[plan.thin ? c * rows + j : j * plan.width + c] = c < k ? V[j * k + c] : T(0);
}

template <class T>
void copy_rows(const T* from, ptrdiff_t from_width, ptrdiff_t rows, ptrdiff_t to_width, T* to) {
    const ptrdiff_t both = std::min(from_width, to_width);
    for (ptrdiff_t i = 0; i < rows; ++i, from += from_width, to += to_width) {
        std::copy_n(from, both, to);
        std::fill(to + both, to + to_width, T(0));
    }
}

// `rows` rows from `begin`, `cols` columns from `first`, as the kernel takes them: packed into
// `scratch` where they must be.
template <class T> struct Part {
    const T* X;
    ptrdiff_t ld;
    Part(const Dense<T>& all, ptrdiff_t begin, ptrdiff_t rows, ptrdiff_t first, ptrdiff_t cols,
         bool pack, T* scratch)
        : X(all.data + begin * all.row + first * all.column), ld(all.row) {
        if (!pack) return;
        const T* mean = all.mean ? all.mean + first : nullptr;
        FML_PICK(pack_part<T>)(X, all.row, all.column, rows, cols, mean, scratch);
        X = scratch;
        ld = cols;
    }
};

// X' (X V) where V is given, else X' U: summed over parts of the rows, `strip` features at a time.
template <class T>
Status back(const Dense<T>& X, const Plan<T>& plan, const T* V, const T* U, ptrdiff_t k,
            ptrdiff_t strip, T* Z, int n_threads) noexcept {
    const ptrdiff_t size = aligned(X.d * plan.width), strips = ceil_div(X.d, strip);
    const bool pack = plan.packs(X), direct = U && plan.width == k;
    const ptrdiff_t packed = aligned(pack ? plan.block * strip : 0);
    const ptrdiff_t per_thread = packed + aligned(direct ? 0 : plan.block * plan.width);
    n_threads = threads_for(plan.work, n_threads);
    Scratch<T> padded(V ? X.d * plan.width : 0), sums(plan.parts * size),
        scratch(n_threads * per_thread);
    if (!padded || !sums || !scratch) return Status::no_memory;
    if (V) pad(V, X.d, k, plan, padded.get());
    const auto run = FML_PICK(rows_block<T>);
    const ptrdiff_t blocks = ceil_div(X.n, plan.block);
    const Status status = parallel(plan.parts * strips, n_threads, [&](ptrdiff_t task, int worker) {
        const ptrdiff_t p = task / strips, first = task % strips * strip;
        const ptrdiff_t cols = std::min(strip, X.d - first);
        T* const at = scratch.get() + worker * per_thread;
        T* const sum = sums.get() + p * size + first * plan.width;
        std::fill_n(sum, cols * plan.width, T(0));
        for (ptrdiff_t b = blocks * p / plan.parts; b < blocks * (p + 1) / plan.parts; ++b) {
            const ptrdiff_t begin = b * plan.block, rows = std::min(plan.block, X.n - begin);
            const Part<T> part(X, begin, rows, first, cols, pack, at);
            // Only read where U is given, which is when V is not.
            T* const Y = direct ? const_cast<T*>(U) + begin * k : at + packed;
            if (U && !direct) copy_rows(U + begin * k, k, rows, plan.width, Y);
            run(part.X, part.ld, rows, cols, V ? padded.get() : nullptr, plan.thin, plan.width, Y,
                sum);
        }
    });
    if (status != Status::ok) return status;
    return parallel(strips, n_threads, [&](ptrdiff_t s, int) {
        const ptrdiff_t first = s * strip, cols = std::min(strip, X.d - first);
        const T* const sum = sums.get() + first * plan.width;
        for (ptrdiff_t j = 0; j < cols; ++j)
            for (ptrdiff_t c = 0; c < k; ++c) {
                const T* at = sum + (plan.thin ? c * cols + j : j * plan.width + c);
                double total = 0;
                for (ptrdiff_t p = 0; p < plan.parts; ++p) total += at[p * size];
                Z[(first + j) * k + c] = static_cast<T>(total);
            }
    });
}

constexpr ptrdiff_t few_parts = 4;  // too few for threads

}  // namespace

template <class T>
Status times(const Dense<T>& X, const T* V, ptrdiff_t k, T* Y, int n_threads) noexcept {
    const Plan<T> plan(X, k);
    const bool pack = plan.packs(X), direct = plan.width == k;
    const ptrdiff_t packed = aligned(pack ? plan.block * X.d : 0);
    const ptrdiff_t per_thread = packed + aligned(direct ? 0 : plan.block * plan.width);
    n_threads = threads_for(plan.work, n_threads);
    Scratch<T> padded(X.d * plan.width), scratch(n_threads * per_thread);
    if (!padded || !scratch) return Status::no_memory;
    pad(V, X.d, k, plan, padded.get());
    const auto run = FML_PICK(rows_block<T>);
    return parallel(ceil_div(X.n, plan.block), n_threads, [&](ptrdiff_t b, int worker) {
        const ptrdiff_t begin = b * plan.block, rows = std::min(plan.block, X.n - begin);
        T* const at = scratch.get() + worker * per_thread;
        T* const to = direct ? Y + begin * k : at + packed;
        const Part<T> part(X, begin, rows, 0, X.d, pack, at);
        run(part.X, part.ld, rows, X.d, padded.get(), plan.thin, plan.width, to, nullptr);
        if (!direct) copy_rows(to, plan.width, rows, k, Y + begin * k);
    });
}

template <class T>
Status transposed(const Dense<T>& X, const T* U, ptrdiff_t k, T* Z, int n_threads) noexcept {
    const Plan<T> plan(X, k);
    // Narrower strips would be read too far apart.
    const ptrdiff_t strip = plan.parts >= few_parts ? X.d : std::max<ptrdiff_t>(64, X.d / 64);
    return back(X, plan, static_cast<const T*>(nullptr), U, k, strip, Z, n_threads);
}

template <class T>
Status gram(const Dense<T>& X, const T* V, ptrdiff_t k, T* Z, int n_threads) noexcept {
    const Plan<T> plan(X, k);
    if (plan.parts >= few_parts || plan.work < worth_threads)
        return back(X, plan, V, static_cast<const T*>(nullptr), k, X.d, Z, n_threads);
    Scratch<T> Y(X.n * k);
    if (!Y) return Status::no_memory;
    const Status status = times(X, V, k, Y.get(), n_threads);
    return status == Status::ok ? transposed(X, Y.get(), k, Z, n_threads) : status;
}

#define FML_INSTANTIATE(T)                                                              \
    template Status times(const Dense<T>&, const T*, ptrdiff_t, T*, int) noexcept;      \
    template Status transposed(const Dense<T>&, const T*, ptrdiff_t, T*, int) noexcept; \
    template Status gram(const Dense<T>&, const T*, ptrdiff_t, T*, int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
