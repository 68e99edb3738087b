// std headers come before any target region
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/blocks.h"
#include "common/isa.h"
#include "common/scratch.h"
#include "kdtree/kdtree.h"

#define FML_KERNEL "kdtree/build.inl.h"
#include "common/foreach_isa.h"

namespace fastml {
namespace {

// Points of a range that all threads split together, and of one task within it.
constexpr ptrdiff_t shared_size = 1 << 15, block_size = 1 << 13;
// Values among which selecting is left to the library.
constexpr ptrdiff_t few = 1 << 9;

// The tree is built top down. A range of leaves [begin, end) is split into two at the widest
// coordinate, until it is one leaf: so the points of each end up next to each other. Columns move
// between two buffers, and keep their order, so that every range is in the order of the rows.
template <class T> struct Builder {
    using Int = typename KDTree<T>::Int;
    static constexpr ptrdiff_t fan = KDTree<T>::fan;

    struct Range {
        ptrdiff_t begin, end;  // leaves
        int buffer;            // where the columns are
    };
    struct Cut {
        ptrdiff_t column;
        T pivot;
        ptrdiff_t left, equal;  // points that go to the left, and how many of them equal the pivot
    };
    struct Workspace {  // of one worker
        T *lo, *hi, *values;
        std::uint16_t* marks;
    };

    const KDTree<T>& tree;
    T* columns[2];
    Int* rows[2];
    int n_threads;

    decltype(&baseline::extent_block<T>) extent = FML_PICK(extent_block<T>);
    decltype(&baseline::bracket_block<T>) bracket = FML_PICK(bracket_block<T>);
    decltype(&baseline::tally_block<T>) tally = FML_PICK(tally_block<T>);
    decltype(&baseline::mark_block<T>) mark = FML_PICK(mark_block<T>);
    decltype(&baseline::deal_block<T>) deal = FML_PICK(deal_block<T>);
    decltype(&baseline::deal_block<Int>) deal_rows = FML_PICK(deal_block<Int>);

    ptrdiff_t first(const Range& r) const { return r.begin * fan; }
    ptrdiff_t size(const Range& r) const { return std::min(r.end * fan, tree.n) - first(r); }
    const T* column(const Range& r, ptrdiff_t j) const {
        return columns[r.buffer] + j * tree.n + first(r);
    }

    // The leaf where a range is cut in two: at a border between children of the node that it is,
    // or is a part of.
    static ptrdiff_t middle(const Range& r) {
        ptrdiff_t unit = 1;
        while (unit * fan < r.end - r.begin) unit *= fan;
        return r.begin + (ceil_div(r.end - r.begin, unit) + 1) / 2 * unit;
    }

    // Writes the box of a range that is a child, of every node that has it for a child.
    void keep_box(const Range& r, const T* lo, const T* hi) const {
        ptrdiff_t unit = 1;
        for (int level = 0; level < tree.levels; ++level, unit *= fan) {
            if (r.begin % unit || r.end != std::min(r.begin + unit, tree.leaves)) continue;
            const ptrdiff_t child = tree.first_node[level] * fan + r.begin / unit;
            tree.lowest[child] = rows[r.buffer][first(r)];
            T* box = tree.boxes + child / fan * tree.d * 2 * fan + child % fan;
            for (ptrdiff_t j = 0; j < tree.d; ++j, box += 2 * fan) {
                box[0] = lo[j];
                box[fan] = -hi[j];
            }
        }
    }

    void keep_leaf(const Range& r) const {
        const ptrdiff_t m = size(r);
        T* out = tree.points + r.begin * tree.d * fan;
        for (ptrdiff_t j = 0; j < tree.d; ++j, out += fan) {
            const T* in = column(r, j);
            for (ptrdiff_t l = 0; l < fan; ++l)
                out[l] = l < m ? in[l] : std::numeric_limits<T>::infinity();
        }
        for (ptrdiff_t l = 0; l < fan; ++l)
            tree.index[r.begin * fan + l] =
                l < m ? rows[r.buffer][first(r) + l] : std::numeric_limits<Int>::max();
    }

    ptrdiff_t widest(const T* lo, const T* hi) const {
        ptrdiff_t best = 0;
        for (ptrdiff_t j = 1; j < tree.d; ++j)
            if (hi[j] - lo[j] > hi[best] - lo[best]) best = j;
        return best;
    }

    // Two values of a sample between which the value of this rank probably lies.
    static void guess(const T* values, ptrdiff_t m, ptrdiff_t rank, T* a, T* b) {
        constexpr ptrdiff_t most = 1024;
        T sample[most];
        const ptrdiff_t s = std::min(most, m / 16), margin = m < 8192 ? s / 4 : s / 12;
        // Multiplicative hashing: a fixed stride would meet the periods that grids have.
        for (ptrdiff_t i = 0; i < s; ++i) {
            const std::uint64_t bits = (i + 1) * 0x9e3779b97f4a7c15u;
            sample[i] = values[static_cast<ptrdiff_t>(static_cast<double>(bits >> 11) * 0x1p-53 *
                                                      static_cast<double>(m))];
        }
        std::sort(sample, sample + s);
        const ptrdiff_t at = static_cast<ptrdiff_t>(static_cast<double>(rank) / m * s);
        *a = sample[std::max<ptrdiff_t>(at - margin, 0)];
        *b = sample[std::min(at + margin, s - 1)];
    }

    // The value of this rank; scratch has room for 2 (m + 16).
    T ranked(const T* values, ptrdiff_t m, ptrdiff_t rank, T* scratch) const {
        T* other = scratch + m + 16;
        while (m > few) {
            T a, b;
            guess(values, m, rank, &a, &b);
            ptrdiff_t n_below, n_kept;
            bracket(values, m, a, b, &n_below, &n_kept, scratch);
            const bool between = rank >= n_below && rank < n_below + n_kept;
            if (!between || n_kept == m) break;
            rank -= n_below;
            m = n_kept;
            if (a == b) return a;
            values = scratch;
            std::swap(scratch, other);
        }
        if (values != scratch) std::copy(values, values + m, scratch);
        std::nth_element(scratch, scratch + rank, scratch + m);
        return scratch[rank];
    }

    // Splits a range on one thread, and what comes of it.
    void split(Range r, const Workspace& w) const {
        for (ptrdiff_t j = 0; j < tree.d; ++j) extent(column(r, j), size(r), &w.lo[j], &w.hi[j]);
        keep_box(r, w.lo, w.hi);
        if (r.end - r.begin == 1) return keep_leaf(r);
        const ptrdiff_t at = middle(r), m = size(r);
        Cut cut{widest(w.lo, w.hi), T(0), at * fan - first(r), 0};
        const T* key = column(r, cut.column);
        cut.pivot = ranked(key, m, cut.left - 1, w.values);
        ptrdiff_t n_below, n_equal;
        tally(key, m, cut.pivot, &n_below, &n_equal);
        mark(key, m, cut.pivot, cut.left - n_below, w.marks);
        const ptrdiff_t to = first(r);
        for (ptrdiff_t j = 0; j < tree.d; ++j) {
            T* out = columns[!r.buffer] + j * tree.n + to;
            deal(column(r, j), m, w.marks, out, out + cut.left);
        }
        Int* out = rows[!r.buffer] + to;
        deal_rows(rows[r.buffer] + to, m, w.marks, out, out + cut.left);
        split({r.begin, at, !r.buffer}, w);
        split({at, r.end, !r.buffer}, w);
    }

    // What all threads share when they split a range together, a block each.
    struct Shared {
        T *lo, *hi;         // (blocks, d)
        T* values;          // (blocks, block_size + chunk): bracketed values
        T* scratch;         // 2 (n + chunk)
        ptrdiff_t* counts;  // (blocks, 2)
        std::uint16_t* marks;
    };

    Status extents(const Range& r, const Shared& w) const {
        const ptrdiff_t m = size(r), blocks = ceil_div(m, block_size), d = tree.d;
        const Status status = parallel(blocks, n_threads, [&](ptrdiff_t b, int) {
            const ptrdiff_t begin = b * block_size, rows_of_block = std::min(block_size, m - begin);
            for (ptrdiff_t j = 0; j < d; ++j)
                extent(column(r, j) + begin, rows_of_block, &w.lo[b * d + j], &w.hi[b * d + j]);
        });
        for (ptrdiff_t b = 1; b < blocks; ++b)
            for (ptrdiff_t j = 0; j < d; ++j) {
                w.lo[j] = std::min(w.lo[j], w.lo[b * d + j]);
                w.hi[j] = std::max(w.hi[j], w.hi[b * d + j]);
            }
        return status;
    }

    Status ranked_together(const T* key, ptrdiff_t m, ptrdiff_t rank, const Shared& w,
                           T* value) const {
        T a, b;
        guess(key, m, rank, &a, &b);
        constexpr ptrdiff_t stride = block_size + 16;
        const ptrdiff_t blocks = ceil_div(m, block_size);
        const Status status = parallel(blocks, n_threads, [&](ptrdiff_t i, int) {
            const ptrdiff_t begin = i * block_size;
            bracket(key + begin, std::min(block_size, m - begin), a, b, &w.counts[2 * i],
                    &w.counts[2 * i + 1], w.values + i * stride);
        });
        if (status != Status::ok) return status;
        ptrdiff_t n_below = 0, n_kept = 0;
        for (ptrdiff_t i = 0; i < blocks; ++i) {
            n_below += w.counts[2 * i];
            const T* kept = w.values + i * stride;
            std::copy(kept, kept + w.counts[2 * i + 1], w.values + n_kept);
            n_kept += w.counts[2 * i + 1];
        }
        const bool between = rank >= n_below && rank < n_below + n_kept;
        *value = between ? ranked(w.values, n_kept, rank - n_below, w.scratch)
                         : ranked(key, m, rank, w.scratch);
        return Status::ok;
    }

    // Splits a range on all threads, into two that are still to be split.
    Status split_together(const Range& r, const Shared& w, Range* halves) const {
        Status status = extents(r, w);
        if (status != Status::ok) return status;
        keep_box(r, w.lo, w.hi);
        const ptrdiff_t at = middle(r), m = size(r), blocks = ceil_div(m, block_size);
        Cut cut{widest(w.lo, w.hi), T(0), at * fan - first(r), 0};
        const T* key = column(r, cut.column);
        status = ranked_together(key, m, cut.left - 1, w, &cut.pivot);
        if (status != Status::ok) return status;
        auto rows_of = [&](ptrdiff_t b) { return std::min(block_size, m - b * block_size); };
        status = parallel(blocks, n_threads, [&](ptrdiff_t b, int) {
            tally(key + b * block_size, rows_of(b), cut.pivot, &w.counts[2 * b],
                  &w.counts[2 * b + 1]);
        });
        if (status != Status::ok) return status;
        // Becomes where each block's left part starts, and how many equal values are in it.
        cut.equal = cut.left;
        for (ptrdiff_t b = 0; b < blocks; ++b) cut.equal -= w.counts[2 * b];
        ptrdiff_t start = 0;
        for (ptrdiff_t b = 0; b < blocks; ++b) {
            const ptrdiff_t equal = std::min(cut.equal, w.counts[2 * b + 1]);
            const ptrdiff_t left = w.counts[2 * b] + equal;
            cut.equal -= equal;
            w.counts[2 * b] = start;
            w.counts[2 * b + 1] = equal;
            start += left;
        }
        status = parallel(blocks, n_threads, [&](ptrdiff_t b, int) {
            const ptrdiff_t begin = b * block_size, left = first(r) + w.counts[2 * b];
            const ptrdiff_t right = first(r) + cut.left + begin - w.counts[2 * b];
            std::uint16_t* marks = w.marks + begin / 16;
            mark(key + begin, rows_of(b), cut.pivot, w.counts[2 * b + 1], marks);
            for (ptrdiff_t j = 0; j < tree.d; ++j) {
                T* out = columns[!r.buffer] + j * tree.n;
                deal(column(r, j) + begin, rows_of(b), marks, out + left, out + right);
            }
            Int* out = rows[!r.buffer];
            deal_rows(rows[r.buffer] + first(r) + begin, rows_of(b), marks, out + left,
                      out + right);
        });
        halves[0] = {r.begin, at, !r.buffer};
        halves[1] = {at, r.end, !r.buffer};
        return status;
    }
};

}  // namespace

template <class T>
Status build(const T* X, const void* first, const KDTree<T>& tree, int n_threads) noexcept {
    using Build = Builder<T>;
    using Range = typename Build::Range;
    using Int = typename KDTree<T>::Int;
    const Int* const chosen = static_cast<const Int*>(first);
    const ptrdiff_t n = tree.n, d = tree.d, blocks = ceil_div(n, block_size);
    n_threads = threads_for(8.0 * n * d, n_threads);
    const bool together = n > shared_size;
    const ptrdiff_t most = std::min(n, shared_size), shared = together ? n : 0;
    const ptrdiff_t per_worker = 2 * aligned(d) + 2 * aligned(most + 16);
    const ptrdiff_t capacity = 128 * (n / shared_size + 1);
    Scratch<T> columns(2 * n * d), workspace(n_threads * per_worker);
    Scratch<Int> rows(2 * n);
    Scratch<std::uint16_t> marks(n_threads * aligned(ceil_div(most, 16)));
    Scratch<T> extents(2 * blocks * d), bracketed(together ? blocks * (block_size + 16) : 0);
    Scratch<T> scratch(together ? 2 * (n + 16) : 0);
    Scratch<ptrdiff_t> counts(2 * blocks);
    Scratch<std::uint16_t> shared_marks(ceil_div(shared, 16));
    Scratch<Range> ranges(capacity), tasks(capacity);
    if (!columns || !workspace || !rows || !marks || !extents || !bracketed || !scratch ||
        !counts || !shared_marks || !ranges || !tasks)
        return Status::no_memory;

    const Build builder{
        tree, {columns.get(), columns.get() + n * d}, {rows.get(), rows.get() + n}, n_threads};
    const typename Build::Shared w{extents.get(),   extents.get() + blocks * d,
                                   bracketed.get(), scratch.get(),
                                   counts.get(),    shared_marks.get()};
    Status status = parallel(blocks, n_threads, [&](ptrdiff_t b, int) {
        for (ptrdiff_t i = b * block_size; i < std::min(n, (b + 1) * block_size); ++i) {
            rows[i] = chosen ? chosen[i] : static_cast<Int>(i);
            for (ptrdiff_t j = 0; j < d; ++j) columns[j * n + i] = X[rows[i] * d + j];
        }
    });
    ptrdiff_t n_tasks = 0, open = 0;
    ranges[open++] = {0, tree.leaves, 0};
    while (open && status == Status::ok) {
        const Range r = ranges[--open];
        if (builder.size(r) > shared_size) {
            status = builder.split_together(r, w, &ranges[open]);
            open += 2;
        } else {
            tasks[n_tasks++] = r;
        }
    }
    if (status != Status::ok) return status;
    return parallel(n_tasks, n_threads, [&](ptrdiff_t i, int worker) {
        T* mine = workspace.get() + worker * per_worker;
        builder.split(tasks[i], {mine, mine + aligned(d), mine + 2 * aligned(d),
                                 marks.get() + worker * aligned(ceil_div(most, 16))});
    });
}

template <class T>
Status squares_fit(const T* values, ptrdiff_t n, bool* fits, int n_threads) noexcept {
    constexpr bool single = sizeof(T) == sizeof(float);
    constexpr T least = single ? 0x1p-36 : 0x1p-450, greatest = single ? 0x1p60 : 0x1p500;
    const ptrdiff_t blocks = ceil_div(n, 8 * block_size);
    Scratch<int> outside(blocks);
    if (!outside) return Status::no_memory;
    const Status status =
        parallel(blocks, threads_for(passed_over * n, n_threads), [&](ptrdiff_t b, int) {
            int found = 0;
            const ptrdiff_t end = std::min(n, (b + 1) * 8 * block_size);
#pragma omp simd reduction(| : found)
            for (ptrdiff_t i = b * 8 * block_size; i < end; ++i) {
                const T x = values[i] < 0 ? -values[i] : values[i];
                found |= (x >= greatest) | ((x < least) & (x > 0));
            }
            outside[b] = found;
        });
    *fits = !std::any_of(outside.get(), outside.get() + blocks, [](int found) { return found; });
    return status;
}

template Status squares_fit(const float*, ptrdiff_t, bool*, int) noexcept;
template Status squares_fit(const double*, ptrdiff_t, bool*, int) noexcept;
template Status build(const float*, const void*, const KDTree<float>&, int) noexcept;
template Status build(const double*, const void*, const KDTree<double>&, int) noexcept;

}  // namespace fastml
