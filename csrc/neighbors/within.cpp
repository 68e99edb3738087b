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

// Grows as needed; `full` once it could not.
struct Bag : Sink {
    const float* limits = nullptr;
    ptrdiff_t itself = 0;  // the first query, as a row that does not count; far off if all count
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
        void* moved = full ? nullptr : std::realloc(pairs, more * sizeof(Pair));
        full = !moved;
        if (full) return false;
        pairs = static_cast<Pair*>(moved);
        room = more;
        return true;
    }
};

template <class X> bool allocate(X*& array, ptrdiff_t n) {
    array = static_cast<X*>(std::malloc((n ? n : 1) * sizeof(X)));
    return array != nullptr;
}

template <class T> class Ball {
  public:
    Ball(const Neighborhood<T>& in, const double* radius, const Plan& plan, const Filter& filter,
         const Filter* fallback, int n_threads, Within& found) noexcept
        : in_(in), radius_(radius), plan_(plan), filter_(filter), fallback_(fallback),
          n_threads_(n_threads), found_(found), exact_(FML_PICK(exact_distances<T>)) {}

    Status run() noexcept {
        // The first segment tells whether the filter is of use.
        const ptrdiff_t first = std::min<ptrdiff_t>(std::min(in_.n, plan_.segment), 2048);
        found_.n_queries = in_.n_queries;
        found_.block = plan_.block;
        found_.blocks = ceil_div(in_.n_queries, plan_.block);
        ptrdiff_t segment = plan_.segment;
        if (found_.blocks < 2 * n_threads_)
            segment = std::min(segment, std::max<ptrdiff_t>(2048, in_.n / (4 * n_threads_)));
        const ptrdiff_t rest = ceil_div(in_.n - first, segment);
        found_.segments = 1 + rest;
        found_.pieces = new (std::nothrow) Within::Piece[found_.blocks * found_.segments];
        const ptrdiff_t queries =
            std::max(filter_.padded_rows(), fallback_ ? fallback_->padded_rows() : 0);
        const ptrdiff_t bytes =
            std::max(filter_.scratch_bytes(), fallback_ ? fallback_->scratch_bytes() : 0);
        Scratch<char> scratch(bytes * n_threads_);
        Scratch<Costs> costs(queries * n_threads_);
        Scratch<double> norms(queries * n_threads_), wide(aligned(in_.d) * n_threads_);
        Scratch<float> limits(queries * n_threads_);
        if (!found_.pieces || !scratch || !costs || !norms || !wide || !limits)
            return Status::no_memory;

        const auto search = [&](const Filter& filter, ptrdiff_t piece, ptrdiff_t begin,
                                ptrdiff_t end, int worker) {
            const ptrdiff_t b = piece % found_.blocks;
            const ptrdiff_t query = b * plan_.block;
            const ptrdiff_t n = std::min(plan_.block, in_.n_queries - query);
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
            bag.itself = in_.not_itself ? query : -in_.n_queries;
            filter.sweep(begin, end, n, mine, my_limits, &bag);
            if (bag.full ||
                !keep(bag, query, n, wide.get() + worker * aligned(in_.d), found_.pieces[piece]))
                failed_ = true;
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

  private:
    // The radius as exact distances are.
    double reach(ptrdiff_t query) const {
        const double r = radius_[query];
        return in_.metric == Metric::euclidean ? r * r : r;
    }

    // What of the bag is true goes to the piece, by query and row. q: scratch of a query.
    bool keep(const Bag& bag, ptrdiff_t first, ptrdiff_t n, double* q, Within::Piece& piece) {
        if (!allocate(piece.offsets, n + 1) || !allocate(piece.rows, bag.size) ||
            !allocate(piece.distances, bag.size))
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
            exact_(in_.metric, q, in_.data, in_.d, piece.rows + begin, end - begin, distances);
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
    const Plan& plan_;
    const Filter& filter_;
    const Filter* fallback_;
    int n_threads_;
    Within& found_;
    void (*exact_)(Metric, const double*, const T*, ptrdiff_t, const std::int32_t*, ptrdiff_t,
                   double*);
    std::atomic<bool> failed_{false};
    std::atomic<ptrdiff_t> seen_{0}, kept_{0};
};

}  // namespace

template <class T>
Status within(const Neighborhood<T>& in, const double* radius, Within& found,
              int n_threads) noexcept {
    n_threads = threads_for(static_cast<double>(in.n_queries) * in.n * in.d, n_threads);
    const Plan plan(in.n_queries, in.n, in.d, 1, n_threads);
    return with_filters(in, plan.block, [&](const Filter& filter, const Filter* fallback) {
        return Ball<T>(in, radius, plan, filter, fallback, n_threads, found).run();
    });
}

Within::~Within() {
    for (ptrdiff_t p = 0; pieces && p < blocks * segments; ++p) {
        std::free(pieces[p].rows);
        std::free(pieces[p].distances);
        std::free(pieces[p].offsets);
    }
    delete[] pieces;
}

void Within::count(std::int64_t* counts) const noexcept {
    for (ptrdiff_t i = 0; i < n_queries; ++i) {
        counts[i] = 0;
        for (ptrdiff_t s = 0; s < segments; ++s) {
            const ptrdiff_t* offsets = pieces[s * blocks + i / block].offsets + i % block;
            counts[i] += offsets[1] - offsets[0];
        }
    }
}

Status Within::copy(const std::int64_t* offsets, bool sorted, double* distances, std::int64_t* rows,
                    int n_threads) const noexcept {
    std::int64_t most = 0;
    for (ptrdiff_t i = 0; sorted && i < n_queries; ++i)
        most = std::max(most, offsets[i + 1] - offsets[i]);
    n_threads = threads_for(passed_over * static_cast<double>(offsets[n_queries]), n_threads);
    Scratch<Neighbor> scratch(most * n_threads);
    if (!scratch) return Status::no_memory;
    constexpr ptrdiff_t together = 256;
    return parallel(ceil_div(n_queries, together), n_threads, [&](ptrdiff_t t, int worker) {
        Neighbor* all = scratch.get() + worker * most;
        const ptrdiff_t end = std::min(n_queries, (t + 1) * together);
        for (ptrdiff_t i = t * together; i < end; ++i) {
            std::int64_t at = offsets[i];
            for (ptrdiff_t s = 0; s < segments; ++s) {
                const Piece& piece = pieces[s * blocks + i / block];
                const ptrdiff_t* range = piece.offsets + i % block;
                for (ptrdiff_t e = range[0]; e < range[1]; ++e, ++at) {
                    rows[at] = piece.rows[e];
                    if (distances) distances[at] = piece.distances[e];
                    if (sorted) all[at - offsets[i]] = {piece.distances[e], piece.rows[e], 0};
                }
            }
            if (!sorted) continue;
            std::sort(all, all + (at - offsets[i]));
            for (std::int64_t e = offsets[i]; e < at; ++e) {
                rows[e] = all[e - offsets[i]].row;
                if (distances) distances[e] = all[e - offsets[i]].distance;
            }
        }
    });
}

template Status within(const Neighborhood<float>&, const double*, Within&, int) noexcept;
template Status within(const Neighborhood<double>&, const double*, Within&, int) noexcept;

}  // namespace fastml
