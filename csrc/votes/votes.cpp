#include "votes/votes.h"

namespace fastml {

namespace {

// k neighbours of a query, from `at` on, copied to where a vote may change them.
void take(const Answers<double>& answers, ptrdiff_t query, const std::int64_t* rows,
          const double* weights, ptrdiff_t at, ptrdiff_t k, int worker) {
    std::copy_n(rows + at, k, answers.rows + worker * answers.k);
    if (answers.distances) std::copy_n(weights + at, k, answers.distances + worker * answers.k);
    answers.done(query, worker, k);
}

}  // namespace

Status count_votes(const Vote& vote, ptrdiff_t first, const std::int64_t* rows,
                   const double* weights, ptrdiff_t n_queries, ptrdiff_t k,
                   int n_threads) noexcept {
    constexpr ptrdiff_t together = 256;
    n_threads = threads_for(passed_over * n_queries * k * vote.n_outputs, n_threads);
    return with_vote(vote, k, n_threads, [&](const Answers<double>& answers) {
        return parallel(ceil_div(n_queries, together), n_threads, [&](ptrdiff_t b, int worker) {
            const ptrdiff_t end = std::min(n_queries, (b + 1) * together);
            for (ptrdiff_t i = b * together; i < end; ++i)
                take(answers, first + i, rows, weights, i * k, k, worker);
        });
    });
}

Status count_lists(const Vote& vote, const std::int64_t* offsets, const std::int64_t* rows,
                   const double* weights, ptrdiff_t n_queries, int n_threads) noexcept {
    const std::int64_t total = offsets[n_queries];
    std::int64_t most = 0;
    for (ptrdiff_t i = 0; i < n_queries; ++i) most = std::max(most, offsets[i + 1] - offsets[i]);
    const ptrdiff_t together = 1 + 65536 / (1 + total / std::max<ptrdiff_t>(1, n_queries));
    n_threads = threads_for(passed_over * static_cast<double>(total) * vote.n_outputs, n_threads);
    return with_vote(vote, most, n_threads, [&](const Answers<double>& answers) {
        return parallel(ceil_div(n_queries, together), n_threads, [&](ptrdiff_t b, int worker) {
            const ptrdiff_t end = std::min(n_queries, (b + 1) * together);
            for (ptrdiff_t i = b * together; i < end; ++i)
                take(answers, i, rows, weights, offsets[i], offsets[i + 1] - offsets[i], worker);
        });
    });
}

}  // namespace fastml
