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

// Groups of 16 queries, and where they come from.
template <class T> struct Groups {
    static constexpr ptrdiff_t fan = KDTree<T>::fan;
    const KDTree<T>& tree;
    const T* Q;                  // null: the points of the tree, leaf by leaf
    const std::uint64_t* order;  // null: as they come
    ptrdiff_t n_q;

    int size(ptrdiff_t g) const { return static_cast<int>(std::min(fan, n_q - g * fan)); }
    ptrdiff_t row(ptrdiff_t g, int i) const {
        const ptrdiff_t at = g * fan + i;
        if (!Q) return tree.index[at];
        return order ? order[at] & ((std::uint64_t{1} << row_bits) - 1) : at;
    }
    void gather(ptrdiff_t g, T* q) const {
        const ptrdiff_t d = tree.d;
        for (int i = 0; i < size(g); ++i) {
            const T* from = Q ? Q + row(g, i) * d : tree.points + g * d * fan + i;
            for (ptrdiff_t j = 0; j < d; ++j) q[i * d + j] = from[Q ? j : j * fan];
        }
    }
    Seed seed() const {
        if (!Q) return Seed::known;
        return order && n_q >= tree.leaves ? Seed::unknown : Seed::none;
    }
};

// Where the point in `row` is among its neighbours; the first of them if it is not there.
template <class Int> ptrdiff_t itself(const Int* rows, ptrdiff_t k, ptrdiff_t row) {
    for (ptrdiff_t r = 0; r < k; ++r)
        if (rows[r] == row) return r;
    return 0;
}

template <class T, class Out>
Status run_groups(const Groups<T>& groups, bool not_itself, const Answers<Out>& to, int n_threads) {
    using Int = typename KDTree<T>::Int;
    constexpr ptrdiff_t fan = KDTree<T>::fan;
    const KDTree<T>& tree = groups.tree;
    const ptrdiff_t k = to.k + not_itself;
    const bool pooled = k > most_listed;
    const ptrdiff_t stride = aligned(k), d = tree.d;
    const ptrdiff_t lists_size = pooled ? stride : fan * stride;
    const ptrdiff_t queries = aligned(fan * d), per_thread = lists_size + queries + aligned(2 * d);
    Scratch<T> values(n_threads * per_thread);
    Scratch<Int> rows(n_threads * lists_size);
    const ptrdiff_t pool_size = pooled ? aligned(2 * k + fan) : 0;
    Scratch<Candidate<T>> pools(n_threads * pool_size);
    if (!values || !rows || !pools) return Status::no_memory;

    const auto run = FML_PICK(choose_nearest<T>)(tree.metric, d);
    const auto roots = FML_PICK(roots_block<T, Out>);
    auto group = [&](ptrdiff_t g, int worker) {
        T* distance = values.get() + worker * per_thread;
        T* q = distance + lists_size;
        Lists<T> lists{k,
                       stride,
                       distance,
                       rows.get() + worker * lists_size,
                       q + queries,
                       pooled ? pools.get() + worker * pool_size : nullptr,
                       0};
        groups.gather(g, q);
        const int m = groups.size(g), step = pooled ? 1 : m;
        for (int i = 0; i < m; i += step) {
            run(tree, q + i * d, step, pooled ? Seed::none : groups.seed(), g, lists);
            for (int l = 0; l < step; ++l) {
                const ptrdiff_t row = groups.row(g, i + l), at = to.place(row, worker);
                T* sums = distance + l * stride;
                Int* found = lists.row + l * stride;
                if (not_itself) {
                    const ptrdiff_t dropped = itself(found, k, row);
                    std::copy(sums + dropped + 1, sums + k, sums + dropped);
                    std::copy(found + dropped + 1, found + k, found + dropped);
                }
                if (to.distances) roots(sums, to.k, tree.metric, tree.p, to.distances + at);
                std::copy_n(found, to.k, to.rows + at);
                to.done(row, worker);
            }
        }
    };
    const ptrdiff_t n_groups = ceil_div(groups.n_q, fan);
    const ptrdiff_t at_once = std::max<ptrdiff_t>(1, queries_at_once(tree) / fan);
    return parallel(ceil_div(n_groups, at_once), n_threads, [&](ptrdiff_t b, int worker) {
        for (ptrdiff_t g = b * at_once; g < std::min(n_groups, (b + 1) * at_once); ++g)
            group(g, worker);
    });
}

template <class T, class Out>
Status search(const KDTree<T>& tree, const T* Q, ptrdiff_t n_q, bool not_itself,
              const Answers<Out>& to, int n_threads) noexcept {
    if (!Q || n_q < worth_order)
        return run_groups(Groups<T>{tree, Q, nullptr, n_q}, not_itself, to, n_threads);
    Scratch<std::uint64_t> order(2 * n_q);
    if (!order) return Status::no_memory;
    const Status status = sort_queries(tree, Q, n_q, order.get(), order.get() + n_q, n_threads);
    if (status != Status::ok) return status;
    return run_groups(Groups<T>{tree, Q, order.get(), n_q}, not_itself, to, n_threads);
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
