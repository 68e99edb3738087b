#include "neighbors/neighbors.h"

// std headers come before any target region
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
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

constexpr float infinity = std::numeric_limits<float>::infinity();

// What a worker needs beside the filter's scratch.
struct Bench {
    Scratch<Costs> costs;
    Scratch<double> norms, distances, query;
    Scratch<float> limits;
    Scratch<Neighbor> nearest;
    Scratch<std::int32_t> rows;
    Bench(ptrdiff_t queries, ptrdiff_t candidates, ptrdiff_t d, int n_threads) noexcept
        : costs(queries * n_threads), norms(queries * n_threads), distances(candidates * n_threads),
          query(aligned(d) * n_threads), limits(queries * n_threads),
          nearest(candidates * n_threads), rows(candidates * n_threads) {}
    explicit operator bool() const noexcept {
        return costs && norms && distances && query && limits && nearest && rows;
    }
};

// The neighbours of a query, in order, as those who asked want them.
void answer(const Answers<double>& to, ptrdiff_t query, int worker, Metric metric,
            const Neighbor* nearest) {
    const ptrdiff_t at = to.place(query, worker);
    for (ptrdiff_t e = 0; e < to.k; ++e) {
        to.rows[at + e] = nearest[e].row;
        if (to.distances)
            to.distances[at + e] =
                metric == Metric::euclidean ? std::sqrt(nearest[e].distance) : nearest[e].distance;
    }
    to.done(query, worker);
}

template <class T> class Search {
  public:
    using ExactRows = void (*)(Metric, const double*, const T*, ptrdiff_t, const std::int32_t*,
                               ptrdiff_t, double*);

    Search(const Neighborhood<T>& in, ptrdiff_t k, const Plan& plan, const Filter& filter,
           const Filter* fallback, int n_threads) noexcept
        : in_(in), k_(k), n_threads_(n_threads), plan_(plan), filter_(filter), fallback_(fallback),
          exact_(FML_PICK(exact_distances<T>)) {}

    Status run(const Answers<double>& to) noexcept {
        const ptrdiff_t states = plan_.batch * plan_.parts, size = states * plan_.capacity;
        const ptrdiff_t tasks = ceil_div(plan_.batch, plan_.block) * plan_.parts;
        queries_ = filter_.padded_rows();
        bytes_ = filter_.scratch_bytes();
        if (fallback_) {
            queries_ = std::max(queries_, fallback_->padded_rows());
            bytes_ = std::max(bytes_, fallback_->scratch_bytes());
        }
        opening_bytes_ = plan_.opening ? filter_.opening_bytes(plan_.opening) : 0;
        gathered_ = plan_.capacity * plan_.parts;
        const ptrdiff_t kept = k_ <= most_kept ? k_ : 0;
        Scratch<float> lower(size), upper(size), limit(states), smallest(states * kept);
        Scratch<std::int32_t> row(size), count(states);
        Scratch<ptrdiff_t> evaluated(tasks);
        Scratch<char> scratch(bytes_ * n_threads_), opening(opening_bytes_ * n_threads_);
        Bench bench(queries_, gathered_, in_.d, n_threads_);
        if (!lower || !upper || !limit || !smallest || !row || !count || !evaluated || !scratch ||
            !opening || !bench)
            return Status::no_memory;
        table_ = {plan_.capacity, lower.get(), upper.get(),    row.get(),
                  count.get(),    limit.get(), smallest.get(), kept};
        evaluated_ = evaluated.get();
        scratch_ = scratch.get();
        opening_ = opening.get();
        bench_ = &bench;
        for (ptrdiff_t first = 0; first < in_.n_queries; first += plan_.batch) {
            const ptrdiff_t here = std::min(plan_.batch, in_.n_queries - first);
            const Status status = run_batch(first, here, to);
            if (status != Status::ok) return status;
        }
        return Status::ok;
    }

  private:
    struct Task {
        ptrdiff_t number, first_query, n_queries, first_state, begin, end;
        bool first, last;
    };

    struct Collector : Sink {
        const Search* search;
        Task task;
        int worker;
        const Costs* costs;
        float* limits;
        ptrdiff_t evaluated = 0;
    };

    Status run_batch(ptrdiff_t first, ptrdiff_t n_queries, const Answers<double>& to) noexcept {
        const ptrdiff_t blocks = ceil_div(n_queries, plan_.block);
        const ptrdiff_t part = ceil_div(in_.n, plan_.parts);
        for (ptrdiff_t s = 0; s < plan_.batch * plan_.parts; ++s) clear(table_.at(s), k_);
        for (ptrdiff_t t = 0; t < blocks * plan_.parts; ++t) evaluated_[t] = 0;
        // Short at first: whether the filter is of use shows soon.
        ptrdiff_t length = std::min(plan_.segment, 16 * plan_.capacity);
        for (ptrdiff_t begin = 0; begin < part; begin += length) {
            if (begin) length = std::min(plan_.segment, 8 * length);
            const Status status =
                parallel(blocks * plan_.parts, n_threads_, [&](ptrdiff_t t, int worker) {
                    const ptrdiff_t b = t % blocks, p = t / blocks;
                    Task task;
                    task.number = t;
                    task.first_query = first + b * plan_.block;
                    task.n_queries = std::min(plan_.block, n_queries - b * plan_.block);
                    task.first_state = p * plan_.batch + b * plan_.block;
                    task.begin = std::min(in_.n, p * part + begin);
                    task.end = std::min({in_.n, (p + 1) * part, task.begin + length});
                    task.first = begin == 0;
                    task.last = begin + length >= part;
                    if (task.begin < task.end) run_task(task, worker);
                });
            if (status != Status::ok) return status;
        }
        constexpr ptrdiff_t together = 32;
        return parallel(ceil_div(n_queries, together), n_threads_, [&](ptrdiff_t t, int worker) {
            const ptrdiff_t end = std::min(n_queries, (t + 1) * together);
            for (ptrdiff_t i = t * together; i < end; ++i) finish(first + i, i, worker, to);
        });
    }

    void run_task(const Task& task, int worker) const noexcept {
        Collector sink{{&Search::push, &Search::open}, this, task, worker, nullptr, nullptr};
        Costs* costs = bench_->costs.get() + worker * queries_;
        double* norms = bench_->norms.get() + worker * queries_;
        float* limits = bench_->limits.get() + worker * queries_;
        char* scratch = scratch_ + worker * bytes_;
        sink.costs = costs;
        sink.limits = limits;
        const bool fell_back = evaluated_[task.number] < 0;
        const Filter& filter = fell_back ? *fallback_ : filter_;
        filter.load_queries(task.first_query, task.n_queries, scratch, costs, norms);
        for (ptrdiff_t i = 0; i < filter.padded_rows(); ++i)
            limits[i] = i < task.n_queries ? table_.limit[task.first_state + i] : -infinity;
        ptrdiff_t begin = task.begin;
        if (task.first && plan_.opening && task.end - begin >= 2 * k_) {
            const ptrdiff_t end = std::min(task.end, begin + plan_.opening);
            filter.open(begin, end, task.n_queries, k_, scratch, opening_ + worker * opening_bytes_,
                        limits, &sink);
            begin = end;
        }
        filter.sweep(begin, task.end, task.n_queries, scratch, limits, &sink);
        if (task.last) {
            for (ptrdiff_t i = 0; i < task.n_queries; ++i)
                tighten(table_.at(task.first_state + i), k_, costs[i]);
        } else if (fallback_ && !fell_back) {
            evaluated_[task.number] += sink.evaluated;
            const ptrdiff_t part_begin = task.begin / ceil_div(in_.n, plan_.parts);
            const ptrdiff_t seen = task.end - part_begin * ceil_div(in_.n, plan_.parts);
            if (evaluated_[task.number] > task.n_queries * (seen / 32 + 2 * plan_.capacity))
                fall_back(task, worker, scratch, costs, norms);
        }
    }

    // From here on this task goes by the other filter: bounds are exact distances.
    void fall_back(const Task& task, int worker, char* scratch, Costs* costs,
                   double* norms) const noexcept {
        evaluated_[task.number] = -1;
        fallback_->load_queries(task.first_query, task.n_queries, scratch, costs, norms);
        for (ptrdiff_t i = 0; i < task.n_queries; ++i) {
            const Candidates c = table_.at(task.first_state + i);
            double* distances = measure(task.first_query + i, c.row, *c.count, worker);
            reset(c, k_, costs[i], distances);
            settle(c, k_, costs[i], distances, bench_->nearest.get() + worker * gathered_);
        }
    }

    double* measure(ptrdiff_t query, const std::int32_t* rows, ptrdiff_t n, int worker) const {
        double* out = bench_->distances.get() + worker * gathered_;
        double* q = bench_->query.get() + worker * aligned(in_.d);
        widened(in_.queries + query * in_.d, in_.d, q);
        exact_(in_.metric, q, in_.data, in_.d, rows, n, out);
        return out;
    }

    static void open(Sink* sink, ptrdiff_t query, double bound) {
        Collector& to = *static_cast<Collector*>(sink);
        const Candidates c = to.search->table_.at(to.task.first_state + query);
        limit_to(c, to.costs[query], bound);
        to.limits[query] = *c.limit;
    }

    static void push(Sink* sink, ptrdiff_t query, ptrdiff_t row, double cost, double slack) {
        Collector& to = *static_cast<Collector*>(sink);
        const Search& search = *to.search;
        if (!(cost < to.limits[query])) return;  // lowered by an entry of the same tile
        const Candidates c = search.table_.at(to.task.first_state + query);
        add(c, search.k_, to.costs[query], static_cast<std::int32_t>(row), cost, slack);
        if (*c.count == search.plan_.capacity) search.make_room(to, query, c);
        to.limits[query] = *c.limit;
    }

    void make_room(Collector& to, ptrdiff_t query, const Candidates& c) const {
        tighten(c, k_, to.costs[query]);
        if (*c.count > plan_.capacity - plan_.capacity / 4) {
            const ptrdiff_t n = *c.count;
            const double* distances = measure(to.task.first_query + query, c.row, n, to.worker);
            settle(c, k_, to.costs[query], distances,
                   bench_->nearest.get() + to.worker * gathered_);
            to.evaluated += n;
        }
    }

    // Takes the candidates of all parts together; i is the query's place in the batch.
    void finish(ptrdiff_t query, ptrdiff_t i, int worker, const Answers<double>& to) const {
        std::int32_t* gathered = bench_->rows.get() + worker * gathered_;
        std::int32_t n = 0;
        for (ptrdiff_t p = 0; p < plan_.parts; ++p) {
            const Candidates c = table_.at(p * plan_.batch + i);
            std::memcpy(gathered + n, c.row, *c.count * sizeof(std::int32_t));
            n += *c.count;
        }
        const double* exact = measure(query, gathered, n, worker);
        Neighbor* nearest = bench_->nearest.get() + worker * gathered_;
        for (std::int32_t e = 0; e < n; ++e) nearest[e] = {exact[e], gathered[e], e};
        if (k_ < n) std::nth_element(nearest, nearest + k_ - 1, nearest + n);
        std::sort(nearest, nearest + k_);
        const ptrdiff_t dropped = in_.not_itself ? itself(query, nearest) : k_;
        std::copy(nearest + std::min(dropped + 1, k_), nearest + k_, nearest + dropped);
        answer(to, query, worker, in_.metric, nearest);
    }

    // Where the query is among its neighbours; the first of them if there are so many duplicates.
    ptrdiff_t itself(ptrdiff_t query, const Neighbor* nearest) const {
        for (ptrdiff_t e = 0; e < k_; ++e)
            if (nearest[e].row == query) return e;
        return 0;
    }

    const Neighborhood<T>& in_;
    ptrdiff_t k_;
    int n_threads_;
    const Plan& plan_;
    const Filter& filter_;
    const Filter* fallback_;
    ExactRows exact_;
    ptrdiff_t queries_ = 0, bytes_ = 0, opening_bytes_ = 0, gathered_ = 0;
    CandidateTable table_{};
    ptrdiff_t* evaluated_ = nullptr;  // of each task; negative once it has fallen back
    char *scratch_ = nullptr, *opening_ = nullptr;
    const Bench* bench_ = nullptr;
};

// For a few queries: to lay out the data as panels would cost more than all distances do.
constexpr ptrdiff_t few = 4;

// Reads the data once, for one query.
template <class T> struct Scan {
    const Exact<T> exact;

    // The k nearest rows among [begin, end), in `found`, in no order; returns how many.
    ptrdiff_t run(const double* q, ptrdiff_t begin, ptrdiff_t end, ptrdiff_t k, ptrdiff_t capacity,
                  Neighbor* found) const {
        constexpr ptrdiff_t step = Exact<T>::step;
        double distances[step];
        double limit = std::numeric_limits<double>::infinity();
        ptrdiff_t count = 0;
        for (ptrdiff_t first = begin; first < end; first += step) {
            const ptrdiff_t here = std::min(step, end - first);
            exact.stream(q, first, here, distances);
            double least = distances[0];
#pragma omp simd reduction(min : least)
            for (ptrdiff_t j = 0; j < here; ++j) least = std::min(least, distances[j]);
            if (count >= k && least >= limit) continue;
            for (ptrdiff_t j = 0; j < here; ++j) {
                // Equals come in the order of their rows: there are k that go before.
                if (distances[j] >= limit && count >= k) continue;
                found[count++] = {distances[j], static_cast<std::int32_t>(first + j), 0};
                if (count < capacity) continue;
                std::nth_element(found, found + k - 1, found + count);
                limit = found[k - 1].distance;
                count = k;
            }
        }
        if (count <= k) return count;
        std::nth_element(found, found + k - 1, found + count);
        return k;
    }
};

template <class T>
Status nearest_to_few(const Neighborhood<T>& in, const Answers<double>& to,
                      int n_threads) noexcept {
    const ptrdiff_t k = to.k, parts = n_threads == 1 ? 1 : 8 * n_threads;
    const ptrdiff_t part = ceil_div(in.n, parts), capacity = std::min(k, part) + k + 64;
    const ptrdiff_t lists = parts * in.n_queries, stride = aligned(in.d);
    Scratch<Neighbor> found(lists * capacity), merged(parts * k);
    Scratch<ptrdiff_t> count(lists);
    Scratch<double> q(in.n_queries * stride);
    if (!found || !merged || !count || !q) return Status::no_memory;
    for (ptrdiff_t i = 0; i < in.n_queries; ++i)
        widened(in.queries + i * in.d, in.d, q.get() + i * stride);
    const Scan<T> scan{Exact<T>(in)};
    auto search = [&](ptrdiff_t t, int) {
        const ptrdiff_t i = t % in.n_queries, begin = std::min(in.n, t / in.n_queries * part);
        count[t] = scan.run(q.get() + i * stride, begin, std::min(in.n, begin + part), k, capacity,
                            found.get() + t * capacity);
    };
    const Status status = parallel(lists, n_threads, search);
    if (status != Status::ok) return status;
    for (ptrdiff_t i = 0; i < in.n_queries; ++i) {
        ptrdiff_t n = 0;
        for (ptrdiff_t t = i; t < lists; t += in.n_queries) {
            std::copy_n(found.get() + t * capacity, count[t], merged.get() + n);
            n += count[t];
        }
        std::partial_sort(merged.get(), merged.get() + k, merged.get() + n);
        answer(to, i, 0, in.metric, merged.get());
    }
    return Status::ok;
}

template <class T>
Status search(const Neighborhood<T>& in, const Answers<double>& to, int n_threads) noexcept {
    const double work = static_cast<double>(in.n_queries) * in.n * in.d;
    if (in.n_queries <= few && !in.not_itself)
        return nearest_to_few(in, to, threads_for(4 * work, n_threads));
    const ptrdiff_t k = to.k + in.not_itself;
    n_threads = threads_for(work, n_threads);
    const Plan plan(in.n_queries, in.n, in.d, k, n_threads);
    return with_filters(in, plan.block, [&](const Filter& filter, const Filter* fallback) {
        return Search<T>(in, k, plan, filter, fallback, n_threads).run(to);
    });
}

}  // namespace

template <class T>
Status nearest(const Neighborhood<T>& in, ptrdiff_t k, double* distances, std::int64_t* rows,
               int n_threads) noexcept {
    return search(in, Answers<double>{distances, rows, k}, n_threads);
}

template <class T>
Status nearest_vote(const Neighborhood<T>& in, ptrdiff_t k, const Vote& vote,
                    int n_threads) noexcept {
    return with_vote(vote, k, n_threads, [&](const Answers<double>& answers) {
        return search(in, answers, n_threads);
    });
}

#define FML_INSTANTIATE(T)                                                             \
    template Status nearest(const Neighborhood<T>&, ptrdiff_t, double*, std::int64_t*, \
                            int) noexcept;                                             \
    template Status nearest_vote(const Neighborhood<T>&, ptrdiff_t, const Vote&, int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
