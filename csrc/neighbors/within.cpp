#include "neighbors/neighbors.h"

// std headers come before any target region
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>

#include "common/blocks.h"
#include "common/isa.h"
#include "common/scratch.h"
#include "neighbors/candidates.h"

#define FML_KERNEL "neighbors/neighbors.inl.h"
#include "common/foreach_isa.h"

#include "neighbors/filter.h"

namespace fastml {
namespace {

struct Pair {
    std::int32_t query, row;
};

template <class X> bool more_room(X*& array, ptrdiff_t n) {
    void* const moved = std::realloc(array, (n ? n : 1) * sizeof(X));
    if (moved) array = static_cast<X*>(moved);
    return moved != nullptr;
}

// Grows as needed; `full` once it could not.
struct Bag : Sink {
    const float* limits = nullptr;
    ptrdiff_t itself = 0;  // the first query, as a row that does not count
    Pair* pairs = nullptr;
    ptrdiff_t size = 0, room = 0;
    bool full = false;

    Bag() : Sink{&Bag::push} {}
    ~Bag() { std::free(pairs); }
    static void push(Sink* sink, ptrdiff_t query, ptrdiff_t row, double, double) {
        Bag& bag = *static_cast<Bag*>(sink);
        if (row == bag.itself + query) return;
        if (bag.size == bag.room && !bag.grow()) return;
        bag.pairs[bag.size++] = {static_cast<std::int32_t>(query), static_cast<std::int32_t>(row)};
    }
    bool grow() {
        const ptrdiff_t more = room ? 2 * room : 256;
        full = full || !more_room(pairs, more);
        if (!full) room = more;
        return !full;
    }
};

template <class T> class Ball {
  public:
    // itself: the row that the first query is, which it is not to find; far off if it may.
    Ball(const Neighborhood<T>& in, const double* radius, ptrdiff_t itself, const Plan& plan,
         const Filter& filter, const Filter* fallback, int n_threads, Within& found) noexcept
        : in_(in), radius_(radius), itself_(itself), plan_(plan), filter_(filter),
          fallback_(fallback), n_threads_(n_threads), found_(found), exact_(in) {}

    Status run() noexcept {
        Scratch<double> wide(aligned(in_.d) * n_threads_);
        if (!wide) return Status::no_memory;
        const bool near = streams(0, in_.n_queries, 0, in_.n, wide.get());
        return near ? run_stream(wide.get()) : run_filter(wide.get());
    }

  private:
    // As many pieces as there are blocks of queries times segments of the data.
    bool cut(ptrdiff_t block, ptrdiff_t segments) {
        found_.n_queries = in_.n_queries;
        found_.block = block;
        found_.blocks = ceil_div(in_.n_queries, block);
        found_.segments = segments;
        found_.pieces = new (std::nothrow) Within::Piece[found_.blocks * segments];
        return found_.pieces != nullptr;
    }

    Status run_stream(double* wide) noexcept {
        // A segment stays in cache while a block of queries goes over it.
        const ptrdiff_t fitting = (1 << 18) / (in_.d * static_cast<ptrdiff_t>(sizeof(T)));
        const ptrdiff_t segment = std::max<ptrdiff_t>(256, fitting);
        const ptrdiff_t block = std::min<ptrdiff_t>(256, ceil_div(in_.n_queries, 8 * n_threads_));
        if (!cut(block, ceil_div(in_.n, segment))) return Status::no_memory;
        const ptrdiff_t pieces = found_.blocks * found_.segments;
        const Status status = parallel(pieces, n_threads_, [&](ptrdiff_t t, int worker) {
            const ptrdiff_t query = t % found_.blocks * block, begin = t / found_.blocks * segment;
            const ptrdiff_t n = std::min(block, in_.n_queries - query);
            if (!stream(query, n, begin, std::min(in_.n, begin + segment),
                        wide + worker * aligned(in_.d), found_.pieces[t]))
                failed_ = true;
        });
        return failed_ ? Status::no_memory : status;
    }

    Status run_filter(double* wide) noexcept {
        // The first segment tells whether the filter is of use.
        const ptrdiff_t first = std::min<ptrdiff_t>(std::min(in_.n, plan_.segment), 2048);
        ptrdiff_t segment = plan_.segment;
        if (ceil_div(in_.n_queries, plan_.block) < 2 * n_threads_)
            segment = std::min(segment, std::max<ptrdiff_t>(2048, in_.n / (4 * n_threads_)));
        const ptrdiff_t rest = ceil_div(in_.n - first, segment);
        const ptrdiff_t queries =
            std::max(filter_.padded_rows(), fallback_ ? fallback_->padded_rows() : 0);
        const ptrdiff_t bytes =
            std::max(filter_.scratch_bytes(), fallback_ ? fallback_->scratch_bytes() : 0);
        Scratch<char> scratch(bytes * n_threads_);
        Scratch<Costs> costs(queries * n_threads_);
        Scratch<double> norms(queries * n_threads_);
        Scratch<float> limits(queries * n_threads_);
        if (!cut(plan_.block, 1 + rest) || !scratch || !costs || !norms || !limits)
            return Status::no_memory;

        const auto search = [&](const Filter& filter, ptrdiff_t piece, ptrdiff_t begin,
                                ptrdiff_t end, int worker) {
            const ptrdiff_t b = piece % found_.blocks;
            const ptrdiff_t query = b * plan_.block;
            const ptrdiff_t n = std::min(plan_.block, in_.n_queries - query);
            double* q = wide + worker * aligned(in_.d);
            if (streams(query, n, begin, end, q)) {
                if (!stream(query, n, begin, end, q, found_.pieces[piece])) failed_ = true;
                return;
            }
            char* mine = scratch.get() + worker * bytes;
            Costs* my_costs = costs.get() + worker * queries;
            float* my_limits = limits.get() + worker * queries;
            filter.load_queries(query, n, mine, my_costs, norms.get() + worker * queries);
            for (ptrdiff_t i = 0; i < filter.padded_rows(); ++i)
                my_limits[i] =
                    i < n ? limit_of(my_costs[i].rate * reach(query + i) + my_costs[i].offset,
                                     my_costs[i])
                          : -std::numeric_limits<float>::infinity();
            Bag bag;
            bag.itself = itself_ + query;
            filter.sweep(begin, end, n, mine, my_limits, &bag);
            if (bag.full || !keep(bag, query, n, q, found_.pieces[piece])) failed_ = true;
        };
        Status status = parallel(found_.blocks, n_threads_, [&](ptrdiff_t t, int worker) {
            search(filter_, t, 0, first, worker);
        });
        if (status != Status::ok || failed_) return failed_ ? Status::no_memory : status;
        const bool poor = fallback_ && seen_ > 4 * kept_ + in_.n_queries * (first / 32 + 8);
        const Filter& filter = poor ? *fallback_ : filter_;
        status = parallel(found_.blocks * rest, n_threads_, [&](ptrdiff_t t, int worker) {
            const ptrdiff_t begin = first + t / found_.blocks * segment;
            search(filter, found_.blocks + t, begin, std::min(in_.n, begin + segment), worker);
        });
        return failed_ ? Status::no_memory : status;
    }

    // The radius as exact distances are.
    double reach(ptrdiff_t query) const {
        const double r = radius_[query];
        return in_.metric == Metric::euclidean && r > 0 ? r * r : r;
    }

    // Whether to take the distances to all rows: few queries are not worth a filter's preparations,
    // and of rows that pass it anyway the exact distances are had sooner in order. A few of them tell.
    bool streams(ptrdiff_t query, ptrdiff_t n, ptrdiff_t begin, ptrdiff_t end, double* q) const {
        constexpr ptrdiff_t few = 4, queries = 8, rows = 32;
        if (n <= few) return true;
        const ptrdiff_t count = std::min(rows, end - begin);
        std::int32_t row[rows];
        double distances[rows];
        for (ptrdiff_t j = 0; j < count; ++j)
            row[j] = static_cast<std::int32_t>(begin + j * (end - begin) / count);
        ptrdiff_t near = 0, seen = 0;
        for (ptrdiff_t s = 0; s < std::min(queries, n); ++s) {
            const ptrdiff_t i = query + s * n / std::min(queries, n);
            widened(in_.queries + i * in_.d, in_.d, q);
            exact_.gather(q, row, count, distances);
            for (ptrdiff_t j = 0; j < count; ++j) near += distances[j] <= reach(i);
            seen += count;
        }
        // As measured: what passes costs as much more as some 60 columns.
        return static_cast<double>(near) * (in_.d + 60) > static_cast<double>(seen) * in_.d;
    }

    // Those within reach among all of [begin, end), without a filter. q: scratch of a query.
    bool stream(ptrdiff_t first, ptrdiff_t n, ptrdiff_t begin, ptrdiff_t end, double* q,
                Within::Piece& piece) {
        if (!more_room(piece.offsets, n + 1)) return false;
        const auto keep_near = FML_PICK(keep_near);
        constexpr ptrdiff_t step = Exact<T>::step;
        const bool roots = in_.metric == Metric::euclidean;
        double apart[step];
        ptrdiff_t kept = 0, room = 0;
        if (!make_room(piece, std::min<ptrdiff_t>(n, 4) * (end - begin), room)) return false;
        for (ptrdiff_t i = 0; i < n; ++i) {
            if (!make_room(piece, kept + (end - begin), room)) return false;
            widened(in_.queries + (first + i) * in_.d, in_.d, q);
            piece.offsets[i] = kept;
            for (ptrdiff_t j = begin; j < end; j += step) {
                const ptrdiff_t here = std::min(step, end - j), itself = itself_ + first + i - j;
                exact_.stream(q, j, here, apart);
                if (itself >= 0 && itself < here)
                    apart[itself] = std::numeric_limits<double>::quiet_NaN();
                kept += keep_near(apart, here, reach(first + i), j, roots, piece.rows + kept,
                                  piece.distances ? piece.distances + kept : nullptr);
            }
        }
        piece.offsets[n] = kept;
        seen_ += kept;
        kept_ += kept;
        return true;
    }

    // Room for so many in a piece, and for as many again as there was.
    bool make_room(Within::Piece& piece, ptrdiff_t wanted, ptrdiff_t& room) const {
        if (wanted <= room) return true;
        room = std::max(wanted, 2 * room);
        return more_room(piece.rows, room) &&
               (!found_.with_distances || more_room(piece.distances, room));
    }

    // What of the bag is true goes to the piece, by query and row. q: scratch of a query.
    bool keep(const Bag& bag, ptrdiff_t first, ptrdiff_t n, double* q, Within::Piece& piece) {
        if (!more_room(piece.offsets, n + 1) || !more_room(piece.rows, bag.size) ||
            !more_room(piece.distances, bag.size))
            return false;
        std::memset(piece.offsets, 0, (n + 1) * sizeof(ptrdiff_t));
        for (ptrdiff_t e = 0; e < bag.size; ++e) ++piece.offsets[bag.pairs[e].query];
        for (ptrdiff_t i = 0, sum = 0; i <= n; ++i) {
            const ptrdiff_t count = piece.offsets[i];
            piece.offsets[i] = sum;
            sum += count;
        }
        for (ptrdiff_t e = 0; e < bag.size; ++e)
            piece.rows[piece.offsets[bag.pairs[e].query]++] = bag.pairs[e].row;
        ptrdiff_t kept = 0;
        for (ptrdiff_t i = 0, begin = 0; i < n; ++i) {
            const ptrdiff_t end = piece.offsets[i];  // where the next one began
            double* distances = piece.distances + begin;
            widened(in_.queries + (first + i) * in_.d, in_.d, q);
            exact_.gather(q, piece.rows + begin, end - begin, distances);
            const double most = reach(first + i);
            piece.offsets[i] = kept;
            for (ptrdiff_t e = begin; e < end; ++e) {
                if (!(piece.distances[e] <= most)) continue;
                const double distance = piece.distances[e];
                piece.distances[kept] =
                    in_.metric == Metric::euclidean ? std::sqrt(distance) : distance;
                piece.rows[kept++] = piece.rows[e];
            }
            begin = end;
        }
        piece.offsets[n] = kept;
        seen_ += bag.size;
        kept_ += kept;
        return true;
    }

    const Neighborhood<T>& in_;
    const double* radius_;
    ptrdiff_t itself_;
    const Plan& plan_;
    const Filter& filter_;
    const Filter* fallback_;
    int n_threads_;
    Within& found_;
    const Exact<T> exact_;
    std::atomic<bool> failed_{false};
    std::atomic<ptrdiff_t> seen_{0}, kept_{0};
};

}  // namespace

template <class T>
Status within(const Neighborhood<T>& in, const double* radius, ptrdiff_t itself, Within& found,
              int n_threads) noexcept {
    if (!in.not_itself) itself = -in.n_queries;
    n_threads = threads_for(static_cast<double>(in.n_queries) * in.n * in.d, n_threads);
    const Plan plan(in.n_queries, in.n, in.d, 1, n_threads);
    return with_filters(in, plan.block, [&](const Filter& filter, const Filter* fallback) {
        return Ball<T>(in, radius, itself, plan, filter, fallback, n_threads, found).run();
    });
}

template <class T>
Status within_vote(const Neighborhood<T>& in, const double* radius, const Vote& vote,
                   std::int64_t* counts, int n_threads) noexcept {
    constexpr ptrdiff_t pairs = 1 << 21;  // about so many neighbours at a time
    ptrdiff_t here = std::max<ptrdiff_t>(1, pairs / in.n);
    for (ptrdiff_t first = 0; first < in.n_queries;) {
        here = std::min(here, in.n_queries - first);
        Neighborhood<T> some = in;
        some.queries += first * in.d;
        some.n_queries = here;
        Within found;
        found.with_distances = vote.weighting != Weighting::same;
        Status status = within(some, radius + first, first, found, n_threads);
        if (status != Status::ok) return status;
        std::int64_t most = 0, total = 0;
        found.count(counts + first);
        for (ptrdiff_t i = first; i < first + here; ++i) {
            most = std::max(most, counts[i]);
            total += counts[i];
        }
        status = found.poll(vote, first, most, n_threads);
        if (status != Status::ok) return status;
        first += here;
        here = std::min<ptrdiff_t>(16 * here, 1 + pairs / (1 + total / here));
    }
    return Status::ok;
}

#define FML_INSTANTIATE(T)                                                                         \
    template Status within(const Neighborhood<T>&, const double*, ptrdiff_t, Within&,              \
                           int) noexcept;                                                          \
    template Status within_vote(const Neighborhood<T>&, const double*, const Vote&, std::int64_t*, \
                                int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
