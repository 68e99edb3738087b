#include "votes/votes.h"

namespace fastml {

Status count_votes(const Vote& vote, ptrdiff_t first, const std::int64_t* rows,
                   const double* weights, ptrdiff_t n_queries, ptrdiff_t k,
                   int n_threads) noexcept {
    constexpr ptrdiff_t together = 256;
    n_threads = threads_for(passed_over * n_queries * k * vote.n_outputs, n_threads);
    return with_vote(vote, k, n_threads, [&](const Answers<double>& answers) {
        return parallel(ceil_div(n_queries, together), n_threads, [&](ptrdiff_t b, int worker) {
            const ptrdiff_t end = std::min(n_queries, (b + 1) * together);
            for (ptrdiff_t i = b * together; i < end; ++i) {
                std::copy_n(rows + i * k, k, answers.rows + worker * k);
                if (answers.distances)
                    std::copy_n(weights + i * k, k, answers.distances + worker * k);
                answers.done(first + i, worker);
            }
        });
    });
}

}  // namespace fastml
