// Moments and extremes of columns.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/blocks.h"
#include "common/isa.h"
#include "common/scratch.h"
#include "scaling/scaling.h"

namespace fastml {
// What is gathered of rows: the number of their values (or their weight), the mean, and the sum of
// squared deviations from it.
struct Moments {
    double *count, *mean, *square;
};
}  // namespace fastml

#define FML_KERNEL "scaling/statistics.inl.h"
#include "common/foreach_isa.h"

namespace fastml {
namespace {

// A tile is packed first, or read twice, where there are gaps or NaN: it has to stay in cache.
constexpr ptrdiff_t tile_size = 1 << 15;
// Columns that are gathered together: what is known of them stays in L1.
constexpr ptrdiff_t strip_width = 512;
// Rows shorter than this are taken several at a time.
constexpr ptrdiff_t short_row = 64;

// How X is cut, from its shape alone: strips of columns, in each blocks of rows, in each tiles.
struct Cut {
    ptrdiff_t n, d, width, strips, tile_rows, block_rows, blocks, fold;
    Cut(ptrdiff_t n_, ptrdiff_t d_)
        : n(n_), d(d_), width(std::min(d_, strip_width)), strips(ceil_div(d_, width)),
          tile_rows(std::max<ptrdiff_t>(16, tile_size / width)),
          fold(d_ < short_row ? ceil_div(short_row, d_) : 1) {
        constexpr ptrdiff_t block_size = 1 << 18, most_blocks = 256;
        const ptrdiff_t wanted =
            std::max<ptrdiff_t>(1, std::min(n * width / block_size, most_blocks));
        block_rows = ceil_div(ceil_div(n, wanted), tile_rows) * tile_rows;
        blocks = ceil_div(n, block_rows);
    }
    ptrdiff_t tasks() const { return strips * blocks; }
    struct Task {
        ptrdiff_t block, begin, end, column, width;
    };
    Task task(ptrdiff_t t) const {
        const ptrdiff_t b = t / strips, column = t % strips * width;
        return {b, b * block_rows, std::min(n, (b + 1) * block_rows), column,
                std::min(width, d - column)};
    }
};

}  // namespace

template <class T>
Status moments(const Matrix<T>& X, const T* w, double* count, double* mean, double* square,
               bool* infinite, int n_threads) noexcept {
    const Cut cut(X.n, X.d);
    const ptrdiff_t d = X.d, fold = w ? 1 : cut.fold;
    n_threads = threads_for(passed_over * X.n * d, n_threads);
    const bool pack = X.by_columns || (fold > 1 && X.stride != d);
    const ptrdiff_t packed = pack ? aligned(cut.tile_rows * cut.width) : 0;
    const ptrdiff_t per_thread = aligned(4 * fold * cut.width);
    Scratch<double> parts(cut.blocks * 3 * d), work(n_threads * per_thread);
    Scratch<T> tiles(n_threads * packed);
    Scratch<bool> found(cut.tasks());
    if (!parts || !work || !tiles || !found) return Status::no_memory;
    std::memset(parts.get(), 0, cut.blocks * 3 * d * sizeof(double));

    const auto add = FML_PICK(add_tile<T>);
    const auto gather = X.by_columns ? FML_PICK(pack_columns<T>) : FML_PICK(pack_rows<T>);
    const Status status = parallel(cut.tasks(), n_threads, [&](ptrdiff_t t, int worker) {
        const Cut::Task task = cut.task(t);
        double* part = parts.get() + task.block * 3 * d + task.column;
        found[t] = false;
        for (ptrdiff_t i = task.begin; i < task.end; i += cut.tile_rows) {
            const ptrdiff_t rows = std::min(cut.tile_rows, task.end - i);
            const T* tile =
                X.data + (X.by_columns ? task.column * X.stride + i : i * X.stride + task.column);
            ptrdiff_t stride = X.stride;
            if (pack) {
                T* const to = tiles.get() + worker * packed;
                gather(tile, rows, task.width, stride, to);
                tile = to;
                stride = task.width;
            }
            found[t] |= add(tile, w ? w + i : nullptr, rows, task.width, stride, fold,
                            {part, part + d, part + 2 * d}, work.get() + worker * per_thread);
        }
    });
    if (status != Status::ok) return status;
    *infinite = std::any_of(found.get(), found.get() + cut.tasks(), [](bool f) { return f; });
    const auto merge = FML_PICK(merge_moments);
    for (ptrdiff_t b = 1; b < cut.blocks; ++b) {
        double* part = parts.get() + b * 3 * d;
        merge({parts.get(), parts.get() + d, parts.get() + 2 * d}, {part, part + d, part + 2 * d},
              d);
    }
    std::copy_n(parts.get(), d, count);
    std::copy_n(parts.get() + d, d, mean);
    std::copy_n(parts.get() + 2 * d, d, square);
    return Status::ok;
}

template <class T>
Status extremes(const Matrix<T>& X, T* least, T* largest, bool* infinite, int n_threads) noexcept {
    constexpr T inf = std::numeric_limits<T>::infinity();
    const Cut cut(X.n, X.d);
    const ptrdiff_t d = X.d;
    n_threads = threads_for(passed_over * X.n * d, n_threads);
    // A column in one piece is a matrix of one column.
    const ptrdiff_t fold = X.by_columns ? short_row : X.stride == d ? cut.fold : 1;
    const ptrdiff_t per_thread = aligned(2 * fold * (X.by_columns ? 1 : cut.width));
    Scratch<T> parts(cut.blocks * 2 * d), work(n_threads * per_thread);
    if (!parts || !work) return Status::no_memory;
    const auto run = FML_PICK(extremes_of_rows<T>);
    const Status status = parallel(cut.tasks(), n_threads, [&](ptrdiff_t t, int worker) {
        const Cut::Task task = cut.task(t);
        T *low = parts.get() + task.block * 2 * d + task.column, *high = low + d;
        std::fill_n(low, task.width, inf);
        std::fill_n(high, task.width, -inf);
        const ptrdiff_t rows = task.end - task.begin;
        T* mine = work.get() + worker * per_thread;
        if (!X.by_columns) {
            const T* from = X.data + task.begin * X.stride + task.column;
            return run(from, rows, task.width, X.stride, fold, low, high, mine);
        }
        for (ptrdiff_t j = 0; j < task.width; ++j) {
            const T* from = X.data + (task.column + j) * X.stride + task.begin;
            run(from, rows, 1, 1, fold, low + j, high + j, mine);
        }
    });
    if (status != Status::ok) return status;
    std::fill_n(least, d, inf);
    std::fill_n(largest, d, -inf);
    for (ptrdiff_t b = 0; b < cut.blocks; ++b) {
        const T *low = parts.get() + b * 2 * d, *high = low + d;
        for (ptrdiff_t j = 0; j < d; ++j) {
            least[j] = std::min(least[j], low[j]);
            largest[j] = std::max(largest[j], high[j]);
        }
    }
    *infinite = false;
    for (ptrdiff_t j = 0; j < d; ++j) *infinite |= least[j] == -inf || largest[j] == inf;
    return Status::ok;
}

#define FML_INSTANTIATE(T)                                                                \
    template Status moments(const Matrix<T>&, const T*, double*, double*, double*, bool*, \
                            int) noexcept;                                                \
    template Status extremes(const Matrix<T>&, T*, T*, bool*, int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
