#include <algorithm>

#include "common/blocks.h"
#include "common/scratch.h"

namespace fastml {

template <class Run>
Status with_vote(const Vote& vote, ptrdiff_t k, int n_threads, const Run& run) {
    const bool weighted = vote.weighting != Weighting::same;
    Scratch<std::int64_t> rows(n_threads * k);
    Scratch<double> distances(weighted ? n_threads * k : 0), votes(n_threads * vote.scratch_size());
    if (!rows || !distances || !votes) return Status::no_memory;
    std::fill_n(votes.get(), n_threads * vote.scratch_size(), 0.0);
    return run(
        Answers<double>{weighted ? distances.get() : nullptr, rows.get(), k, &vote, votes.get()});
}

}  // namespace fastml
