// Scattered reads and writes: nothing here gains from wider vectors.
#include "scaling/sparse.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/blocks.h"
#include "common/scratch.h"
#include "scaling/select.h"

namespace fastml {
namespace {

// A stored value costs about as much as some 8 dense ones that are passed over.
int threads_for_stored(ptrdiff_t stored, int n_threads) {
    return threads_for(4 * passed_over * stored, n_threads);
}

// Blocks of lines. With CSR each block has sums of its own for every column: not more of them
// than there are stored values.
template <class I> Grid grid_of(const Sparsity<I>& X) {
    if (X.by_columns) return Grid(X.lines, free_blocks);
    const ptrdiff_t most = X.indptr[X.lines] / (8 * X.across + 1);
    return Grid(X.lines, std::max<ptrdiff_t>(1, std::min(summed_blocks, most)));
}

// Calls body(block, column, row, value) for each stored value; columns and rows are those of X.
template <class T, class I, class Body>
Status for_each(const T* data, const Sparsity<I>& X, const Grid& grid, int n_threads, Body body) {
    return parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int) {
        for (ptrdiff_t i = grid.begin(b); i < grid.end(b); ++i)
            for (I p = X.indptr[i]; p < X.indptr[i + 1]; ++p)
                X.by_columns ? body(b, i, static_cast<ptrdiff_t>(X.indices[p]), data[p])
                             : body(b, static_cast<ptrdiff_t>(X.indices[p]), i, data[p]);
    });
}

// What one block knows of a column, on one cache line.
struct alignas(32) First {
    double sum, stored, missing;
};
struct alignas(32) Second {
    double mean, first, square;
};

}  // namespace

template <class T, class I>
Status moments(const T* data, const Sparsity<I>& X, const T* w, double* count, double* mean,
               double* square, bool* infinite, int n_threads) noexcept {
    const Grid grid = grid_of(X);
    const ptrdiff_t d = X.d(), parts = X.by_columns ? 1 : grid.blocks;
    n_threads = threads_for_stored(X.indptr[X.lines], n_threads);
    Scratch<First> firsts(parts * d);
    Scratch<Second> seconds(parts * d);
    Scratch<bool> found(grid.blocks);
    if (!firsts || !seconds || !found) return Status::no_memory;
    std::memset(firsts.get(), 0, parts * d * sizeof(First));
    std::memset(found.get(), 0, grid.blocks);
    // A column of CSC is one block's alone.
    const ptrdiff_t apart = X.by_columns ? 0 : d;
    Status status =
        for_each(data, X, grid, n_threads, [&](ptrdiff_t b, ptrdiff_t j, ptrdiff_t i, T x) {
            First& mine = firsts[b * apart + j];
            const double wi = w ? w[i] : 1;
            if (x != x) {
                mine.missing += wi;
                return;
            }
            if (std::fabs(x) == std::numeric_limits<T>::infinity()) found[b] = true;
            mine.sum += wi * x;
            mine.stored += wi;
        });
    if (status != Status::ok) return status;
    *infinite = std::any_of(found.get(), found.get() + grid.blocks, [](bool f) { return f; });

    double weight = w ? 0 : static_cast<double>(X.n());
    for (ptrdiff_t i = 0; w && i < X.n(); ++i) weight += w[i];
    for (ptrdiff_t j = 0; j < d; ++j) {
        First& total = firsts[j];
        for (ptrdiff_t b = 1; b < parts; ++b) {
            const First& part = firsts[b * d + j];
            total.sum += part.sum;
            total.stored += part.stored;
            total.missing += part.missing;
        }
        count[j] = weight - total.missing;
        mean[j] = count[j] != 0 ? total.sum / count[j] : 0;
        for (ptrdiff_t b = 0; b < parts; ++b) seconds[b * d + j] = {mean[j], 0, 0};
    }
    status = for_each(data, X, grid, n_threads, [&](ptrdiff_t b, ptrdiff_t j, ptrdiff_t i, T x) {
        Second& mine = seconds[b * apart + j];
        const double deviation = x - mine.mean, part = (w ? w[i] : 1) * deviation;
        if (x != x) return;
        mine.first += part;
        mine.square += part * deviation;
    });
    if (status != Status::ok) return status;
    for (ptrdiff_t j = 0; j < d; ++j) {
        double first = 0, second = 0;
        for (ptrdiff_t b = 0; b < parts; ++b) {
            first += seconds[b * d + j].first;
            second += seconds[b * d + j].square;
        }
        const double zeros = count[j] - firsts[j].stored;
        // Of values that are all stored nothing must be added: rounding may leave zeros != 0.
        if (std::fabs(zeros) > 1e-12 * weight) {
            first -= zeros * mean[j];
            second += zeros * mean[j] * mean[j];
        }
        const double shift = count[j] != 0 ? first / count[j] : 0;
        mean[j] += shift;
        square[j] = std::max(0.0, second - shift * first);
    }
    return status;
}

template <class T, class I>
Status largest(const T* data, const Sparsity<I>& X, T* largest, double* missing,
               int n_threads) noexcept {
    const Grid grid = grid_of(X);
    const ptrdiff_t d = X.d(), parts = X.by_columns ? 1 : grid.blocks;
    n_threads = threads_for_stored(X.indptr[X.lines], n_threads);
    struct Part {
        double largest, missing;
    };
    Scratch<Part> part(parts * d);
    if (!part) return Status::no_memory;
    std::memset(part.get(), 0, parts * d * sizeof(Part));
    const ptrdiff_t apart = X.by_columns ? 0 : d;
    const Status status =
        for_each(data, X, grid, n_threads, [&](ptrdiff_t b, ptrdiff_t j, ptrdiff_t, T x) {
            Part& mine = part[b * apart + j];
            const double size = std::fabs(x);
            if (size > mine.largest) mine.largest = size;
            mine.missing += x != x;
        });
    if (status != Status::ok) return status;
    for (ptrdiff_t j = 0; j < d; ++j) {
        Part total = part[j];
        for (ptrdiff_t b = 1; b < parts; ++b) {
            total.largest = std::max(total.largest, part[b * d + j].largest);
            total.missing += part[b * d + j].missing;
        }
        largest[j] = static_cast<T>(total.largest);
        missing[j] = total.missing;
    }
    return status;
}

template <class T, class I>
Status scale_columns(const T* data, const Sparsity<I>& X, const double* scale, T floor, T ceiling,
                     T* out, bool* infinite, int n_threads) noexcept {
    const Grid grid(X.lines, free_blocks);
    Scratch<bool> found(grid.blocks);
    if (!found) return Status::no_memory;
    n_threads = threads_for_stored(X.indptr[X.lines], n_threads);
    const Status status = parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int) {
        bool any = false;
        const auto put = [&](I p, double by) {
            any |= std::fabs(data[p]) == std::numeric_limits<T>::infinity();
            const T x = static_cast<T>(data[p] * by);
            out[p] = x < floor ? floor : x > ceiling ? ceiling : x;
        };
        const I begin = X.indptr[grid.begin(b)], end = X.indptr[grid.end(b)];
        if (!X.by_columns) {
            for (I p = begin; p < end; ++p) put(p, scale[X.indices[p]]);
        } else {
            for (ptrdiff_t j = grid.begin(b); j < grid.end(b); ++j)
                for (I p = X.indptr[j]; p < X.indptr[j + 1]; ++p) put(p, scale[j]);
        }
        found[b] = any;
    });
    *infinite = std::any_of(found.get(), found.get() + grid.blocks, [](bool f) { return f; });
    return status;
}

template <class T, class I>
Status normalize_lines(const T* data, const Sparsity<I>& X, Norm kind, T* norm, T* out,
                       bool* finite, int n_threads) noexcept {
    const Grid grid(X.lines, free_blocks);
    Scratch<bool> fine(grid.blocks);
    if (!fine) return Status::no_memory;
    n_threads = threads_for_stored(X.indptr[X.lines], n_threads);
    const Status status = parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int) {
        bool all = true;
        for (ptrdiff_t i = grid.begin(b); i < grid.end(b); ++i) {
            double sum = 0;
            for (I p = X.indptr[i]; p < X.indptr[i + 1]; ++p) {
                const T x = data[p], size = std::fabs(x);
                if (kind == Norm::largest)
                    sum = size > sum || size != size ? size : sum;
                else
                    sum += kind == Norm::l1 ? size : static_cast<T>(x * x);
            }
            all &= sum <= std::numeric_limits<double>::max();
            if (kind == Norm::l2) sum = std::sqrt(sum);
            norm[i] = static_cast<T>(sum);
            const double by = sum != 0 ? sum : 1;
            for (I p = X.indptr[i]; p < X.indptr[i + 1]; ++p) out[p] = static_cast<T>(data[p] / by);
        }
        fine[b] = all;
    });
    *finite = std::all_of(fine.get(), fine.get() + grid.blocks, [](bool f) { return f; });
    return status;
}

template <class T, class I>
Status order_statistics(const T* data, const Sparsity<I>& X, const double* q, ptrdiff_t n_q,
                        T* below, T* above, ptrdiff_t* count, int n_threads) noexcept {
    const ptrdiff_t d = X.lines;
    ptrdiff_t longest = 0;
    for (ptrdiff_t j = 0; j < d; ++j)
        longest = std::max<ptrdiff_t>(longest, X.indptr[j + 1] - X.indptr[j]);
    n_threads = threads_for_stored(4 * X.indptr[d], n_threads);
    Scratch<T> column(n_threads * longest);
    if (!column) return Status::no_memory;
    return parallel(d, n_threads, [&](ptrdiff_t j, int worker) {
        T* const values = column.get() + worker * longest;
        T* end = values;
        ptrdiff_t negative = 0;
        for (I p = X.indptr[j]; p < X.indptr[j + 1]; ++p) {
            if (data[p] == data[p]) *end++ = data[p];
            negative += data[p] < 0;
        }
        const ptrdiff_t missing = X.indptr[j + 1] - X.indptr[j] - (end - values);
        const ptrdiff_t zeros = X.across - (X.indptr[j + 1] - X.indptr[j]);
        count[j] = X.across - missing;
        Selection<T> select(values, end);
        const auto at = [&](ptrdiff_t r) {
            if (r < negative) return select(r);
            return r < negative + zeros ? T(0) : select(r - zeros);
        };
        for (ptrdiff_t k = 0; k < n_q; ++k) {
            const Ranks r(q[k], count[j]);
            below[k * d + j] = count[j] ? at(r.below) : std::numeric_limits<T>::quiet_NaN();
            above[k * d + j] = count[j] ? at(r.above) : std::numeric_limits<T>::quiet_NaN();
        }
    });
}

#define FML_INSTANTIATE(T, I)                                                                    \
    template Status moments(const T*, const Sparsity<I>&, const T*, double*, double*, double*,   \
                            bool*, int) noexcept;                                                \
    template Status largest(const T*, const Sparsity<I>&, T*, double*, int) noexcept;            \
    template Status scale_columns(const T*, const Sparsity<I>&, const double*, T, T, T*, bool*,  \
                                  int) noexcept;                                                 \
    template Status normalize_lines(const T*, const Sparsity<I>&, Norm, T*, T*, bool*,           \
                                    int) noexcept;                                               \
    template Status order_statistics(const T*, const Sparsity<I>&, const double*, ptrdiff_t, T*, \
                                     T*, ptrdiff_t*, int) noexcept;
FML_INSTANTIATE(float, std::int32_t)
FML_INSTANTIATE(double, std::int32_t)
FML_INSTANTIATE(float, std::int64_t)
FML_INSTANTIATE(double, std::int64_t)

}  // namespace fastml
