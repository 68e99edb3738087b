// std headers come before any target region
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/blocks.h"
#include "common/isa.h"
#include "common/nearest_first.h"
#include "common/scratch.h"
#include "kdtree/query.h"

namespace fastml {
// How many points are within `reach`, a sum of terms, of q; they go to `found`, unless it is null.
template <class T>
using WithinOne = std::ptrdiff_t (*)(const KDTree<T>&, const T* q, T reach, Candidate<T>* found);
}  // namespace fastml

#define FML_KERNEL "kdtree/radius.inl.h"
#include "common/foreach_isa.h"

namespace fastml {
namespace {

template <class T> T reach(const KDTree<T>& tree, double radius) {
    return static_cast<T>(radius > 0 ? reduced(radius, tree.metric, tree.p) : radius);
}

}  // namespace

template <class T>
Status count_within(const KDTree<T>& tree, const T* Q, ptrdiff_t n_q, const double* radius,
                    std::int64_t* counts, int n_threads) noexcept {
    const auto run = FML_PICK(choose_within<T>)(tree.metric, tree.d);
    const ptrdiff_t rows = queries_at_once(tree, n_q);
    return parallel(ceil_div(n_q, rows), n_threads, [&](ptrdiff_t b, int) {
        for (ptrdiff_t i = b * rows; i < std::min(n_q, (b + 1) * rows); ++i)
            counts[i] = run(tree, Q + i * tree.d, reach(tree, radius[i]), nullptr);
    });
}

template <class T>
Status collect_within(const KDTree<T>& tree, const T* Q, ptrdiff_t n_q, const double* radius,
                      const std::int64_t* offsets, bool sorted, double* distances,
                      std::int64_t* indices, int n_threads) noexcept {
    std::int64_t most = 1;
    for (ptrdiff_t i = 0; i < n_q; ++i) most = std::max(most, offsets[i + 1] - offsets[i]);
    const ptrdiff_t room = aligned(most);
    Scratch<Candidate<T>> candidates(2 * n_threads * room);
    Scratch<std::uint64_t> keys(2 * n_threads * room);
    if (!candidates || !keys) return Status::no_memory;
    const auto run = FML_PICK(choose_within<T>)(tree.metric, tree.d);
    const ptrdiff_t rows = queries_at_once(tree, n_q);
    return parallel(ceil_div(n_q, rows), n_threads, [&](ptrdiff_t b, int worker) {
        Candidate<T>* found = candidates.get() + 2 * worker * room;
        for (ptrdiff_t i = b * rows; i < std::min(n_q, (b + 1) * rows); ++i) {
            const ptrdiff_t n = run(tree, Q + i * tree.d, reach(tree, radius[i]), found);
            if (sorted) sort_nearest_first(found, n, found + room, keys.get() + 2 * worker * room);
            for (ptrdiff_t r = 0; r < n; ++r) {
                indices[offsets[i] + r] = found[r].row;
                if (distances)
                    distances[offsets[i] + r] = root(found[r].distance, tree.metric, tree.p);
            }
        }
    });
}

template <class T>
Status within_vote(const KDTree<T>& tree, const T* Q, ptrdiff_t n_q, const double* radius,
                   bool not_itself, const Vote& vote, std::int64_t* counts,
                   int n_threads) noexcept {
    const ptrdiff_t most = tree.rows();
    Scratch<Candidate<T>> candidates(n_threads * aligned(most));
    if (!candidates) return Status::no_memory;
    const auto run = FML_PICK(choose_within<T>)(tree.metric, tree.d);
    const ptrdiff_t rows = queries_at_once(tree, n_q);
    return with_vote(vote, most, n_threads, [&](const Answers<double>& answers) {
        return parallel(ceil_div(n_q, rows), n_threads, [&](ptrdiff_t b, int worker) {
            Candidate<T>* found = candidates.get() + worker * aligned(most);
            std::int64_t* near = answers.rows + worker * most;
            for (ptrdiff_t i = b * rows; i < std::min(n_q, (b + 1) * rows); ++i) {
                const ptrdiff_t n = run(tree, Q + i * tree.d, reach(tree, radius[i]), found);
                ptrdiff_t k = 0;
                for (ptrdiff_t r = 0; r < n; ++r) {
                    near[k] = found[r].row;
                    if (answers.distances)
                        answers.distances[worker * most + k] =
                            root(found[r].distance, tree.metric, tree.p);
                    k += !not_itself || found[r].row != i;
                }
                counts[i] = k;
                answers.done(i, worker, k);
            }
        });
    });
}

#define FML_INSTANTIATE(T)                                                                  \
    template Status count_within(const KDTree<T>&, const T*, ptrdiff_t, const double*,      \
                                 std::int64_t*, int) noexcept;                              \
    template Status collect_within(const KDTree<T>&, const T*, ptrdiff_t, const double*,    \
                                   const std::int64_t*, bool, double*, std::int64_t*,       \
                                   int) noexcept;                                           \
    template Status within_vote(const KDTree<T>&, const T*, ptrdiff_t, const double*, bool, \
                                const Vote&, std::int64_t*, int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
