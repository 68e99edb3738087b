#include <algorithm>
#include <cstdlib>

#include "common/blocks.h"
#include "common/nearest_first.h"
#include "common/scratch.h"
#include "neighbors/candidates.h"
#include "neighbors/neighbors.h"

namespace fastml {

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
    Scratch<Neighbor> scratch(2 * most * n_threads);
    Scratch<std::uint64_t> keys(2 * most * n_threads);
    if (!scratch || !keys) return Status::no_memory;
    const ptrdiff_t together =
        1 + 65536 / (1 + offsets[n_queries] / std::max<ptrdiff_t>(1, n_queries));
    return parallel(ceil_div(n_queries, together), n_threads, [&](ptrdiff_t t, int worker) {
        Neighbor* all = scratch.get() + 2 * worker * most;
        const ptrdiff_t end = std::min(n_queries, (t + 1) * together);
        for (ptrdiff_t i = t * together; i < end; ++i) {
            std::int64_t at = offsets[i];
            for (ptrdiff_t s = 0; s < segments; ++s) {
                const Piece& piece = pieces[s * blocks + i / block];
                const ptrdiff_t* range = piece.offsets + i % block;
                const ptrdiff_t here = range[1] - range[0];
                if (sorted) {
                    for (ptrdiff_t e = range[0]; e < range[1]; ++e)
                        all[at - offsets[i] + e - range[0]] = {piece.distances[e], piece.rows[e],
                                                               0};
                } else {
                    std::copy_n(piece.rows + range[0], here, rows + at);
                    if (distances) std::copy_n(piece.distances + range[0], here, distances + at);
                }
                at += here;
            }
            if (!sorted) continue;
            sort_nearest_first(all, at - offsets[i], all + most, keys.get() + 2 * worker * most);
            for (std::int64_t e = offsets[i]; e < at; ++e) {
                rows[e] = all[e - offsets[i]].row;
                if (distances) distances[e] = all[e - offsets[i]].distance;
            }
        }
    });
}

Status Within::poll(const Vote& vote, ptrdiff_t first, std::int64_t most,
                    int n_threads) const noexcept {
    const ptrdiff_t together = 1 + 65536 / (1 + most);
    n_threads = threads_for(passed_over * static_cast<double>(most) * n_queries * vote.n_outputs,
                            n_threads);
    return with_vote(vote, most, n_threads, [&](const Answers<double>& answers) {
        return parallel(ceil_div(n_queries, together), n_threads, [&](ptrdiff_t t, int worker) {
            const ptrdiff_t end = std::min(n_queries, (t + 1) * together), at = worker * most;
            for (ptrdiff_t i = t * together; i < end; ++i) {
                ptrdiff_t k = 0;
                for (ptrdiff_t s = 0; s < segments; ++s) {
                    const Piece& piece = pieces[s * blocks + i / block];
                    const ptrdiff_t begin = piece.offsets[i % block];
                    const ptrdiff_t here = piece.offsets[i % block + 1] - begin;
                    std::copy_n(piece.rows + begin, here, answers.rows + at + k);
                    if (answers.distances)
                        std::copy_n(piece.distances + begin, here, answers.distances + at + k);
                    k += here;
                }
                answers.done(first + i, worker, k);
            }
        });
    });
}

}  // namespace fastml
