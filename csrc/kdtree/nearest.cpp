// std headers come before any target region
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/blocks.h"
#include "common/isa.h"
#include "common/scratch.h"
#include "kdtree/query.h"

namespace fastml {

// Whether the queries of a group are close to each other, and a leaf close to them is known.
enum class Seed { none, unknown, known };

// The k nearest of each of a group of queries: sorted, `stride` apart, distances short of the root.
template <class T> struct Lists {
    std::ptrdiff_t k, stride;
    T* distance;
    typename KDTree<T>::Int* row;
    T* box;              // scratch, 2 d values
    Candidate<T>* pool;  // scratch, 2 k + 16 candidates, for a k beyond most_listed; else null
    std::ptrdiff_t scanned;
};

// Up to here a sorted list is faster than a pool that is thinned out now and then.
constexpr std::ptrdiff_t most_listed = 256;

template <class T>
using NearestGroup = void (*)(const KDTree<T>&, const T* q, int m, Seed, std::ptrdiff_t leaf,
                              Lists<T>&);

// Outside the regions, where the library's templates belong.
template <class T> void thin_out(Candidate<T>* begin, std::ptrdiff_t k, std::ptrdiff_t size) {
    std::nth_element(begin, begin + k - 1, begin + size);
}
template <class T> void sort_candidates(Candidate<T>* begin, std::ptrdiff_t k) {
    std::sort(begin, begin + k);
}
template void thin_out(Candidate<float>*, std::ptrdiff_t, std::ptrdiff_t);
template void thin_out(Candidate<double>*, std::ptrdiff_t, std::ptrdiff_t);
template void sort_candidates(Candidate<float>*, std::ptrdiff_t);
template void sort_candidates(Candidate<double>*, std::ptrdiff_t);

}  // namespace fastml

#define FML_KERNEL "kdtree/nearest.inl.h"
#include "common/foreach_isa.h"

namespace fastml {
namespace {

// From so many queries on, putting them in order pays.
constexpr ptrdiff_t worth_order = 512;

// Queries, and where they come from.
template <class T> struct Queries {
    static constexpr ptrdiff_t fan = KDTree<T>::fan;
    const KDTree<T>& tree;
    const T* Q;                  // null: the points of the tree, leaf by leaf
    const std::uint64_t* order;  // null: as they come
    ptrdiff_t n;

    ptrdiff_t row(ptrdiff_t at) const {
        if (!Q) return tree.index[at];
        return order ? row_of(order[at]) : at;
    }
    // Gathers queries from `begin` on, up to `fan` of them, and passes over those that equal the
    // one before: query i gathered stands for those from start[i] to start[i + 1].
    int gather(ptrdiff_t begin, ptrdiff_t end, T* q, ptrdiff_t* start) const {
        const ptrdiff_t d = tree.d, step = Q ? 1 : fan;
        int m = 0;
        ptrdiff_t at = begin;
        for (; at < end; ++at) {
            const T* from = Q ? Q + row(at) * d : tree.points + at / fan * d * fan + at % fan;
            if (Q && m && std::equal(from, from + d, q + (m - 1) * d)) continue;
            if (m == fan) break;
            start[m] = at;
            for (ptrdiff_t j = 0; j < d; ++j) q[m * d + j] = from[j * step];
            ++m;
        }
        start[m] = at;
        return m;
    }
    // Calls `take` with each row that query `at` is.
    template <class Take> void each_row(ptrdiff_t at, const Take& take) const {
        take(row(at));
        if (Q) return;
        for (const auto* c = tree.copies_begin(at); c != tree.copies_end(at); ++c) take(*c);
    }
    Seed seed() const {
        if (!Q) return Seed::known;
        return order && n >= tree.leaves ? Seed::unknown : Seed::none;
    }
};

// Where the point in `row` is among its neighbours; the first of them if it is not there.
template <class Int> ptrdiff_t itself(const Int* rows, ptrdiff_t k, ptrdiff_t row) {
    for (ptrdiff_t r = 0; r < k; ++r)
        if (rows[r] == row) return r;
    return 0;
}

template <class T, class Out>
Status answer(const Queries<T>& queries, bool not_itself, const Answers<Out>& to, int n_threads) {
    using Int = typename KDTree<T>::Int;
    constexpr ptrdiff_t fan = KDTree<T>::fan;
    const KDTree<T>& tree = queries.tree;
    const ptrdiff_t k = to.k + not_itself;
    const bool pooled = k > most_listed;
    const ptrdiff_t stride = aligned(k), d = tree.d;
    const ptrdiff_t lists_size = pooled ? stride : fan * stride;
    const ptrdiff_t q_size = aligned(fan * d), per_thread = lists_size + q_size + aligned(2 * d);
    Scratch<T> values(n_threads * per_thread);
    Scratch<Int> rows(n_threads * lists_size);
    const ptrdiff_t pool_size = pooled ? aligned(2 * k + fan) : 0;
    Scratch<Candidate<T>> pools(n_threads * pool_size);
    if (!values || !rows || !pools) return Status::no_memory;

    const auto run = FML_PICK(choose_nearest<T>)(tree.metric, d);
    const auto roots = FML_PICK(roots_block<T, Out>);
    auto put = [&](ptrdiff_t row, const T* sums, const Int* found, int worker) {
        const ptrdiff_t kept = not_itself ? itself(found, k, row) : k;
        const ptrdiff_t at = to.place(row, worker), rest = to.k - kept;
        if (to.distances) {
            roots(sums, kept, tree.metric, tree.p, to.distances + at);
            roots(sums + kept + 1, rest, tree.metric, tree.p, to.distances + at + kept);
        }
        std::copy_n(found, kept, to.rows + at);
        std::copy_n(found + kept + 1, rest, to.rows + at + kept);
        to.done(row, worker);
    };
    auto group = [&](ptrdiff_t begin, ptrdiff_t end, int worker) {
        T* distance = values.get() + worker * per_thread;
        T* q = distance + lists_size;
        Lists<T> lists{k,          stride,
                       distance,   rows.get() + worker * lists_size,
                       q + q_size, pooled ? pools.get() + worker * pool_size : nullptr,
                       0};
        ptrdiff_t start[fan + 1];
        const int m = queries.gather(begin, end, q, start), step = pooled ? 1 : m;
        for (int i = 0; i < m; i += step) {
            run(tree, q + i * d, step, pooled ? Seed::none : queries.seed(), begin / fan, lists);
            for (int l = 0; l < step; ++l)
                for (ptrdiff_t at = start[i + l]; at < start[i + l + 1]; ++at)
                    queries.each_row(at, [&](ptrdiff_t row) {
                        put(row, distance + l * stride, lists.row + l * stride, worker);
                    });
        }
        return start[m];
    };
    const ptrdiff_t size = ceil_div(queries_at_once(tree, queries.n), fan) * fan;
    return parallel(ceil_div(queries.n, size), n_threads, [&](ptrdiff_t b, int worker) {
        const ptrdiff_t end = std::min(queries.n, (b + 1) * size);
        for (ptrdiff_t at = b * size; at < end;) at = group(at, end, worker);
    });
}

template <class T, class Out>
Status search(const KDTree<T>& tree, const T* Q, ptrdiff_t n_q, bool not_itself,
              const Answers<Out>& to, int n_threads) noexcept {
    if (!Q) n_q = tree.n;
    if (!Q || n_q < worth_order)
        return answer(Queries<T>{tree, Q, nullptr, n_q}, not_itself, to, n_threads);
    Scratch<std::uint64_t> order(2 * n_q);
    if (!order) return Status::no_memory;
    const Status status = sort_queries(tree, Q, n_q, order.get(), order.get() + n_q, n_threads);
    if (status != Status::ok) return status;
    return answer(Queries<T>{tree, Q, order.get(), n_q}, not_itself, to, n_threads);
}

}  // namespace

template <class T, class Out>
Status nearest(const KDTree<T>& tree, const T* Q, ptrdiff_t n_q, ptrdiff_t k, bool not_itself,
               Out* distances, std::int64_t* indices, int n_threads) noexcept {
    return search(tree, Q, n_q, not_itself, Answers<Out>{distances, indices, k}, n_threads);
}

template <class T>
Status nearest_vote(const KDTree<T>& tree, const T* Q, ptrdiff_t n_q, ptrdiff_t k, bool not_itself,
                    const Vote& vote, int n_threads) noexcept {
    return with_vote(vote, k, n_threads, [&](const Answers<double>& answers) {
        return search(tree, Q, n_q, not_itself, answers, n_threads);
    });
}

template <class T>
Status count_scanned(const KDTree<T>& tree, const T* Q, ptrdiff_t n_q, ptrdiff_t k,
                     std::int64_t* scanned, int n_threads) noexcept {
    using Int = typename KDTree<T>::Int;
    const ptrdiff_t per_thread = aligned(k) + aligned(2 * tree.d), pool_size = aligned(2 * k + 16);
    const bool pooled = k > most_listed;
    Scratch<T> values(n_threads * per_thread);
    Scratch<Int> rows(n_threads * aligned(k));
    Scratch<Candidate<T>> pools(pooled ? n_threads * pool_size : 0);
    if (!values || !rows || !pools) return Status::no_memory;
    const auto run = FML_PICK(choose_nearest<T>)(tree.metric, tree.d);
    return parallel(n_q, n_threads, [&](ptrdiff_t i, int worker) {
        T* distance = values.get() + worker * per_thread;
        Lists<T> lists{k,
                       aligned(k),
                       distance,
                       rows.get() + worker * aligned(k),
                       distance + aligned(k),
                       pooled ? pools.get() + worker * pool_size : nullptr,
                       0};
        run(tree, Q + i * tree.d, 1, Seed::none, -1, lists);
        scanned[i] = lists.scanned;
    });
}

#define FML_INSTANTIATE(T, Out)                                                           \
    template Status nearest(const KDTree<T>&, const T*, ptrdiff_t, ptrdiff_t, bool, Out*, \
                            std::int64_t*, int) noexcept;
FML_INSTANTIATE(float, float)
FML_INSTANTIATE(float, double)
FML_INSTANTIATE(double, float)
FML_INSTANTIATE(double, double)
template Status nearest_vote(const KDTree<float>&, const float*, ptrdiff_t, ptrdiff_t, bool,
                             const Vote&, int) noexcept;
template Status nearest_vote(const KDTree<double>&, const double*, ptrdiff_t, ptrdiff_t, bool,
                             const Vote&, int) noexcept;
template Status count_scanned(const KDTree<float>&, const float*, ptrdiff_t, ptrdiff_t,
                              std::int64_t*, int) noexcept;
template Status count_scanned(const KDTree<double>&, const double*, ptrdiff_t, ptrdiff_t,
                              std::int64_t*, int) noexcept;

}  // namespace fastml
