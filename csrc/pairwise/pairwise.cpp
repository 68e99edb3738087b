#include "pairwise/pairwise.h"

// std headers come before any target region
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>

#include "common/blocks.h"
#include "common/isa.h"
#include "common/scratch.h"
#include "pairwise/job.h"
#include "pairwise/plan.h"

#define FML_KERNEL "pairwise/pairwise.inl.h"
#include "common/foreach_isa.h"
#include "common/tiling.h"

namespace fastml {
namespace {

// What a pair costs, in multiply-adds: how finely to cut, and whether to wake threads.
template <class T> double cost_of(const Job<T>& job) {
    double each = 1;
    if (job.plan.gather == Gather::chi2) each = 5;
    if (job.plan.gather == Gather::canberra) each = 8;
    if (job.plan.gather == Gather::power_diff) each = 40;
    if (job.plan.gather == Gather::haversine) each = 50;
    const bool is_slow = job.plan.map == Map::exp || job.plan.map == Map::tanh;
    return each * job.X.d + (is_slow ? 2 : 1) * passed_over;
}

// A matrix of more bytes than allocators keep is given new pages, whose zeros are in cache when they
// are first written to. Pairs of no more than this cost are better taken twice, row by row, than
// written across all of the pages at once.
constexpr std::size_t kept = std::size_t{32} << 20;
constexpr double cheap_pair = 26;

// Near the mean of the rows, and so near every one as can be: some rows of Y tell where that is.
template <class T> void find_shift(const Rows<T>& Y, T* shift) {
    const ptrdiff_t step = ceil_div(Y.n, 256);
    for (ptrdiff_t p = 0; p < Y.d; ++p) shift[p] = 0;
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < Y.n; i += step, ++count)
        for (ptrdiff_t p = 0; p < Y.d; ++p)
            shift[p] += (Y.data[i * Y.d + p] - shift[p]) / (count + 1);
}

// Rows of Y at a time: so many as stay in L3.
ptrdiff_t dense_width(ptrdiff_t m, ptrdiff_t d, const TileShape& s) {
    const ptrdiff_t most =
        std::max<ptrdiff_t>(block_unit, std::min<ptrdiff_t>(16384, (2 << 20) / d));
    return std::min(most / block_unit * block_unit, ceil_div(m, s.cols) * s.cols);
}

template <class T> Status run_dense(Job<T>& job, int n_threads) noexcept {
    const TileShape s = chosen_shape<T>();
    const ptrdiff_t n = job.X.n, m = job.Y.n, d = job.X.d;
    const Packed<T>* packed = job.packed;
    n_threads =
        threads_for(cost_of(job) * n * m + passed_over * (n + (packed ? 0 : m)) * d, n_threads);
    const ptrdiff_t width = dense_width(m, d, s);
    // Rows of X that stay in L2 beside a panel of them.
    const ptrdiff_t rows = std::min(dense_rows, ceil_div(n, s.rows) * s.rows);
    const ptrdiff_t row_blocks = ceil_div(n, rows);
    const ptrdiff_t per_thread =
        aligned(rows * (d + 1 + 2 * s.cols) + s.cols + spill_size(s, d, rows / s.rows));
    const ptrdiff_t held = packed ? 0 : width;
    Scratch<T> shift(job.plan.invariant && !packed ? d : 0), panels(held * d), norms(held),
        sizes(held / s.cols);
    Scratch<T> scratch(n_threads * per_thread);
    if (!shift || !panels || !norms || !sizes || !scratch) return Status::no_memory;
    if (job.plan.invariant) {
        if (!packed) find_shift(job.Y, shift.get());
        job.X.shift = job.Y.shift = packed ? packed->shift : shift.get();
    }
    const auto pack = FML_PICK(pack_chunk_panel<T>);
    const Gather gather = job.plan.gather;
    const bool sums = gather == Gather::product || gather == Gather::squared_diff;
    const bool few = n <= few_rows, thin_packed = few && sums && packed;
    const bool thin = few && !packed && (sums || gather == Gather::abs_diff);
    const auto run = thin          ? FML_PICK(thin_block<T>)
                     : thin_packed ? FML_PICK(thin_packed_block<T>)
                                   : FML_PICK(dense_block<T>);
    for (ptrdiff_t first = 0; first < m; first += width) {
        Chunk<T> chunk{
            first,  std::min(width, m - first), panels.get(), norms.get(), sizes.get(), 0, nullptr,
            nullptr};
        if (packed) {
            chunk.values = packed->panels + first * d;
            chunk.norms = packed->norms + first;
            chunk.sizes = packed->sizes + first / s.cols;
        }
        const ptrdiff_t count = ceil_div(chunk.n, s.cols);
        // Only storing can be cut by columns: tasks are enough to share out, short, and worth the
        // packing of their rows.
        const bool stores = job.sink == Sink::store || job.sink == Sink::transpose;
        const double of_block = cost_of(job) * rows * chunk.n;
        const double balance = std::min(64.0 / row_blocks, of_block / 2e5);
        // Mirror images touch all rows of a strip, whose memory may have to be given first: the
        // system may take two milliseconds for two MiB.
        const double touched =
            job.mirrored ? static_cast<double>(chunk.n) * job.ld * sizeof(T) / (4 * kept) : 0;
        const double wanted = stores ? std::max({1.0, balance, of_block / 2e8, touched}) : 1.0;
        const ptrdiff_t strip = std::max<ptrdiff_t>(1, static_cast<ptrdiff_t>(count / wanted));
        const ptrdiff_t strips = ceil_div(count, strip);
        const ptrdiff_t blocks =
            job.mirrored ? std::min(row_blocks, ceil_div(first + chunk.n, rows)) : row_blocks;
        auto pack_one = [&](ptrdiff_t j, int) {
            pack(job, first, chunk.n, j, panels.get(), norms.get(), sizes.get());
        };
        // A panel that meets one block of rows only is packed when it does, and still in cache.
        const bool at_once = row_blocks == 1 && stores && !thin;
        Status status =
            at_once || thin || packed ? Status::ok : parallel(count, n_threads, pack_one);
        if (status != Status::ok) return status;
        status = parallel(blocks * strips, n_threads, [&](ptrdiff_t t, int worker) {
            const ptrdiff_t i0 = t / strips * rows, p0 = t % strips * strip;
            const ptrdiff_t p1 = std::min(p0 + strip, count);
            for (ptrdiff_t p = p0; at_once && p < p1; ++p) pack_one(p, worker);
            run(job, chunk, i0, std::min(rows, n - i0), p0, p1,
                scratch.get() + worker * per_thread);
        });
        if (status != Status::ok) return status;
    }
    return Status::ok;
}

// Rows [first, first + n) of Y by column: the values of column p, and whose they are, lie in
// [start[p], start[p + 1]).
template <class T>
void sort_by_column(const Rows<T>& Y, ptrdiff_t first, ptrdiff_t n, ptrdiff_t* start,
                    std::int32_t* rows, double* values) {
    std::memset(start, 0, (Y.d + 1) * sizeof(ptrdiff_t));
    for (std::int32_t q = Y.indptr[first]; q < Y.indptr[first + n]; ++q) ++start[Y.indices[q]];
    for (ptrdiff_t p = 0, sum = 0; p <= Y.d; ++p) {
        const ptrdiff_t count = start[p];
        start[p] = sum += count;
    }
    for (ptrdiff_t r = n; r-- > 0;)
        for (std::int32_t q = Y.indptr[first + r]; q < Y.indptr[first + r + 1]; ++q) {
            const ptrdiff_t t = --start[Y.indices[q]];
            rows[t] = static_cast<std::int32_t>(r);
            values[t] = Y.data[q];
        }
}

// How rows of Y in CSR, or met by such, are laid out: columns of them, or lists by column.
struct SparseShape {
    double filled;
    bool lists;
    ptrdiff_t width, largest;  // rows at a time, and the values of so many at most
};
template <class T> SparseShape sparse_shape(const Rows<T>& Y) {
    const ptrdiff_t m = Y.n, d = Y.d;
    SparseShape s{Y.indptr ? static_cast<double>(Y.indptr[m]) / m / d : 1, false, 0, 0};
    // An addition to a list's row costs some fifteen times one to a lane. Columns stay in L2.
    s.lists = s.filled < 0.06;
    const ptrdiff_t most = s.lists ? 2048 : std::clamp<ptrdiff_t>((1 << 16) / d, 64, 2048);
    s.width = std::min(most / 64 * 64, ceil_div(m, 64) * 64);
    for (ptrdiff_t first = 0; s.lists && first < m; first += s.width)
        s.largest = std::max<ptrdiff_t>(s.largest,
                                        Y.indptr[std::min(first + s.width, m)] - Y.indptr[first]);
    return s;
}

// Rows of Y from `first` on, with room for `width` of them.
template <class T>
Status lay_out(const Rows<T>& Y, Norm norm, const SparseShape& shape, ptrdiff_t first,
               double* values, double* norms, std::int32_t* whose, ptrdiff_t* start,
               int n_threads) {
    const auto spread = FML_PICK(spread_rows<T>);
    const auto measure = FML_PICK(sparse_norms<T>);
    const ptrdiff_t n = std::min(shape.width, Y.n - first);
    const Status status = parallel(ceil_div(shape.width, 64), n_threads, [&](ptrdiff_t b, int) {
        const ptrdiff_t r0 = b * 64, r1 = std::min(r0 + 64, n);
        if (r0 >= r1) return;
        if (!shape.lists) spread(Y, first, r0, r1, shape.width, values);
        measure(Y, norm, first + r0, r1 - r0, norms + r0);
    });
    if (status == Status::ok && shape.lists) sort_by_column(Y, first, n, start, whose, values);
    return status;
}

template <class T> Status run_sparse(Job<T>& job, int n_threads) noexcept {
    const ptrdiff_t n = job.X.n, m = job.Y.n, d = job.X.d;
    const Packed<T>* packed = job.packed;
    const SparseShape shape = sparse_shape(job.Y);
    const ptrdiff_t width = shape.width;
    const double per_row =
        static_cast<double>(job.X.indptr[n]) / n * (shape.lists ? 15 * shape.filled : 1);
    n_threads = threads_for((per_row + passed_over) * n * m, n_threads);
    const ptrdiff_t per_thread = aligned(sparse_rows * (width + 1));
    Scratch<double> values(packed ? 0 : shape.lists ? shape.largest : d * width), norms(width + 16);
    Scratch<std::int32_t> whose(packed ? 0 : shape.largest);
    Scratch<ptrdiff_t> start(shape.lists && !packed ? d + 1 : 0);
    Scratch<double> scratch(n_threads * per_thread);
    if (!values || !norms || !whose || !start || !scratch) return Status::no_memory;
    const auto run = FML_PICK(sparse_block<T>);
    for (ptrdiff_t first = 0; first < m; first += width) {
        Chunk<double> chunk{first,        std::min(width, m - first),
                            values.get(), norms.get(),
                            nullptr,      width,
                            whose.get(),  shape.lists ? start.get() : nullptr};
        Status status = Status::ok;
        if (packed) {
            const ptrdiff_t before = job.Y.indptr[first];
            chunk.values = packed->values + (shape.lists ? before : first * d);
            chunk.norms = packed->long_norms + first;
            chunk.rows = packed->rows + before;
            if (shape.lists) chunk.start = packed->starts + first / width * (d + 1);
        } else {
            status = lay_out(job.Y, job.plan.norm, shape, first, values.get(), norms.get(),
                             whose.get(), start.get(), n_threads);
        }
        if (status != Status::ok) return status;
        constexpr ptrdiff_t rows = 4 * sparse_rows;
        status = parallel(ceil_div(n, rows), n_threads, [&](ptrdiff_t b, int worker) {
            const ptrdiff_t end = std::min((b + 1) * rows, n);
            for (ptrdiff_t i = b * rows; i < end; i += sparse_rows)
                run(job, chunk, i, std::min(sparse_rows, end - i),
                    scratch.get() + worker * per_thread);
        });
        if (status != Status::ok) return status;
    }
    return Status::ok;
}

template <class T> Status run_stored(Job<T>& job, int n_threads) noexcept {
    const auto nearest = FML_PICK(nearest_stored<T>);
    const double stored = static_cast<double>(job.X.indptr[job.X.n]) * job.Y.n +
                          static_cast<double>(job.Y.indptr[job.Y.n]) * job.X.n;
    constexpr ptrdiff_t rows = 4;
    return parallel(
        ceil_div(job.X.n, rows), threads_for(passed_over * stored, n_threads),
        [&](ptrdiff_t b, int) { nearest(job, b * rows, std::min((b + 1) * rows, job.X.n)); });
}

// The plan of a few rows of X would leave packed rows of Y aside.
template <class T>
Job<T> packed_job(const Rows<T>& X, const Rows<T>& Y, const Measure& measure) {
    Job<T> job = job_for(X, Y, measure, Sink::apply);
    job.plan = plan_for(measure, few_rows + 1, X.d, sizeof(T), X.indptr);
    return job;
}

template <class T> Status run(Job<T>& job, int n_threads) noexcept {
    return job.X.indptr ? run_sparse(job, n_threads) : run_dense(job, n_threads);
}

template <class T>
Status apply(Job<T>& job, const T* V, ptrdiff_t r, const ptrdiff_t* ends, ptrdiff_t segments,
             double* out, int n_threads) {
    job.V = V;
    job.r = r;
    job.ends = ends;
    job.segments = segments;
    job.product = out;
    std::fill(out, out + job.X.n * segments * r, 0.0);
    return run(job, n_threads);
}

}  // namespace

bool takes_sparse(Metric metric) noexcept {
    switch (plan_for({metric, 0, 0, 0, nullptr, false}, 1, 1, 8, true).gather) {
        case Gather::product:
        case Gather::shared:
            return true;
        default:
            return false;
    }
}

template <class T>
Status gram(const Rows<T>& X, const Rows<T>& Y, const Measure& measure, bool symmetric,
            bool transposed, T* out, int n_threads) noexcept {
    Job<T> job = job_for(X, Y, measure, transposed ? Sink::transpose : Sink::store);
    job.symmetric = symmetric;
    job.out = out;
    job.ld = transposed ? X.n : Y.n;
    const bool twice = !X.indptr && X.n * job.ld * sizeof(T) > kept && cost_of(job) <= cheap_pair;
    job.mirrored = symmetric && !twice;
    if (symmetric && twice && job.plan.norm == Norm::sum) take_differences(job.plan);
    return run(job, n_threads);
}

template <class T>
Status nearest(const Rows<T>& X, const Rows<T>& Y, const Measure& measure, std::int64_t* index,
               double* distance, int n_threads) noexcept {
    const bool root = measure.metric == Metric::euclidean;
    Job<T> job = job_for(X, Y, measure, Sink::nearest);
    if (root) job.plan.map = Map::none;
    job.index = index;
    job.distance = distance;
    std::fill(distance, distance + X.n, std::numeric_limits<double>::infinity());
    std::fill(index, index + X.n, 0);
    const Status status = X.indptr && !takes_sparse(measure.metric) ? run_stored(job, n_threads)
                                                                    : run(job, n_threads);
    for (ptrdiff_t i = 0; root && i < X.n; ++i) distance[i] = std::sqrt(distance[i]);
    return status;
}

template <class T>
Status gram_apply(const Rows<T>& X, const Rows<T>& Y, const Measure& measure, const T* V,
                  ptrdiff_t r, double* out, int n_threads) noexcept {
    Job<T> job = job_for(X, Y, measure, Sink::apply);
    return apply(job, V, r, &Y.n, 1, out, n_threads);
}

template <class T> PackedSizes packed_sizes(const Rows<T>& Y, const Measure& measure) noexcept {
    const Job<T> job = packed_job(Y, Y, measure);
    if (Y.indptr) {
        const SparseShape s = sparse_shape(Y);
        const ptrdiff_t chunks = ceil_div(Y.n, s.width), stored = Y.indptr[Y.n];
        if (!s.lists) return {chunks * s.width * Y.d, Y.n + 16, 0, 0};
        return {stored, Y.n + 16, stored, chunks * (Y.d + 1)};
    }
    const TileShape s = chosen_shape<T>();
    const ptrdiff_t panels = ceil_div(Y.n, s.cols);
    return {panels * s.cols * Y.d, panels * s.cols, panels, job.plan.invariant ? Y.d : 0};
}

template <class T> Status pack(Packed<T>& packed, int n_threads) noexcept {
    const ptrdiff_t m = packed.Y.n, d = packed.Y.d;
    Job<T> job = packed_job(packed.Y, packed.Y, packed.measure);
    if (job.Y.indptr) {
        const SparseShape s = sparse_shape(job.Y);
        Status status = Status::ok;
        for (ptrdiff_t first = 0; first < m && status == Status::ok; first += s.width) {
            const ptrdiff_t before = job.Y.indptr[first];
            status =
                lay_out(job.Y, job.plan.norm, s, first,
                        packed.values + (s.lists ? before : first * d), packed.long_norms + first,
                        packed.rows + before, packed.starts + first / s.width * (d + 1), n_threads);
        }
        return status;
    }
    if (job.plan.invariant) {
        find_shift(job.Y, packed.shift);
        job.Y.shift = packed.shift;
    }
    const auto panel = FML_PICK(pack_chunk_panel<T>);
    return parallel(ceil_div(m, chosen_shape<T>().cols), n_threads, [&](ptrdiff_t j, int) {
        panel(job, 0, m, j, packed.panels, packed.norms, packed.sizes);
    });
}

template <class T>
Status packed_apply(const Rows<T>& X, const Packed<T>& packed, const T* V, ptrdiff_t r,
                    const ptrdiff_t* ends, ptrdiff_t segments, double* out,
                    int n_threads) noexcept {
    Job<T> job = packed_job(X, packed.Y, packed.measure);
    job.packed = &packed;
    return apply(job, V, r, ends, segments, out, n_threads);
}

template <class T>
void elementary(Elementary function, const T* x, ptrdiff_t n, T parameter, T* out) noexcept {
    FML_PICK(elementary_block<T>)(function, x, n, parameter, out);
}

#define FML_INSTANTIATE(T)                                                                 \
    template Status gram(const Rows<T>&, const Rows<T>&, const Measure&, bool, bool, T*,   \
                         int) noexcept;                                                    \
    template Status nearest(const Rows<T>&, const Rows<T>&, const Measure&, std::int64_t*, \
                            double*, int) noexcept;                                        \
    template Status gram_apply(const Rows<T>&, const Rows<T>&, const Measure&, const T*,   \
                               ptrdiff_t, double*, int) noexcept;                          \
    template PackedSizes packed_sizes(const Rows<T>&, const Measure&) noexcept;            \
    template Status pack(Packed<T>&, int) noexcept;                                        \
    template Status packed_apply(const Rows<T>&, const Packed<T>&, const T*, ptrdiff_t,    \
                                 const ptrdiff_t*, ptrdiff_t, double*, int) noexcept;      \
    template void elementary(Elementary, const T*, ptrdiff_t, T, T*) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
