#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "common/pool.h"

// What the neighbours of queries make of their targets. A search hands over the neighbours of one
// query after the other, so that there never is a table of all of them.
namespace fastml {

using std::ptrdiff_t;

enum class Poll : int {
    winner,  // the class with most votes, the lower one on ties; -1 if all neighbours weigh nothing
    share,   // what each class has of the votes; NaN if all neighbours weigh nothing
    mean     // the mean of the targets
};
enum class Weighting : int {
    same,
    inverse,  // of the distance; where there are neighbours at distance 0, they alone count
    given     // the weights come in place of distances
};

// Targets (n, n_outputs) of n rows: codes of classes, or values for the mean. Classes of all
// outputs are numbered through: those of output j are [first_class[j], first_class[j + 1]).
struct Vote {
    Poll poll;
    Weighting weighting;
    ptrdiff_t n_outputs, n_classes;   // all outputs together; 0 for the mean
    const std::int64_t* codes;        // without first_class
    const std::int64_t* first_class;  // n_outputs + 1
    const double* values;
    std::int64_t* winners;  // (n_queries, n_outputs)
    double* shares;         // (n_queries, n_classes); for the mean (n_queries, n_outputs)
    bool may_be_none;       // votes that come to nothing are shares of 0, not NaN

    // From so many neighbours on there are several sums side by side: to wait for one another costs
    // more than to bring them together.
    static constexpr ptrdiff_t many = 64, lanes = 4;

    // Values of scratch that `take` needs, zero before and after it.
    ptrdiff_t scratch_size() const noexcept { return lanes * n_classes; }

    // Of the neighbours rows[0..k) of a query, at these distances (or null). Overwrites distances
    // with weights.
    void take(ptrdiff_t query, const std::int64_t* rows, double* distances, ptrdiff_t k,
              double* votes) const noexcept {
        if (weighting == Weighting::inverse) weigh(distances, k);
        const double* weights = weighting == Weighting::same ? nullptr : distances;
        for (ptrdiff_t j = 0; j < n_outputs; ++j)
            if (poll == Poll::mean)
                shares[query * n_outputs + j] = mean(rows, weights, k, j);
            else
                count(query, rows, weights, k, j, votes + first_class[j]);
    }

  private:
    static void weigh(double* distances, ptrdiff_t k) noexcept {
        bool at_once = false;
        for (ptrdiff_t e = 0; e < k; ++e) {
            distances[e] = 1 / distances[e];
            at_once |= std::isinf(distances[e]);
        }
        for (ptrdiff_t e = 0; at_once && e < k; ++e) distances[e] = std::isinf(distances[e]);
    }

    double mean(const std::int64_t* rows, const double* weights, ptrdiff_t k,
                ptrdiff_t output) const noexcept {
        const double* target = values + output;
        const ptrdiff_t aside = k < many ? 0 : k / lanes * lanes;
        double sum = 0, total = 0, sums[lanes] = {}, totals[lanes] = {};
        for (ptrdiff_t e = 0; e < aside; e += lanes)
            for (ptrdiff_t l = 0; l < lanes; ++l) {
                const double weight = weights ? weights[e + l] : 1;
                sums[l] += target[rows[e + l] * n_outputs] * weight;
                totals[l] += weight;
            }
        for (ptrdiff_t l = 0; l < lanes; ++l) {
            sum += sums[l];
            total += totals[l];
        }
        for (ptrdiff_t e = aside; e < k; ++e) {
            const double weight = weights ? weights[e] : 1;
            sum += target[rows[e] * n_outputs] * weight;
            total += weight;
        }
        return sum / total;
    }

    // Adds the weights to the votes of their classes; returns their sum.
    double tally(const std::int64_t* rows, const double* weights, ptrdiff_t k, ptrdiff_t output,
                 double* votes) const noexcept {
        const std::int64_t* code = codes + output;
        const ptrdiff_t aside = k < many ? 0 : k / lanes * lanes;
        double total = 0, totals[lanes] = {};
        for (ptrdiff_t e = 0; e < aside; e += lanes)
            for (ptrdiff_t l = 0; l < lanes; ++l) {
                const double weight = weights ? weights[e + l] : 1;
                votes[l * n_classes + code[rows[e + l] * n_outputs]] += weight;
                totals[l] += weight;
            }
        for (ptrdiff_t e = aside; e < k; ++e) {
            const double weight = weights ? weights[e] : 1;
            votes[code[rows[e] * n_outputs]] += weight;
            total += weight;
        }
        if (!aside) return total;
        const ptrdiff_t classes = first_class[output + 1] - first_class[output];
        for (ptrdiff_t l = 1; l < lanes; ++l) {
            for (ptrdiff_t c = 0; c < classes; ++c) {
                votes[c] += votes[l * n_classes + c];
                votes[l * n_classes + c] = 0;
            }
            totals[0] += totals[l];
        }
        return total + totals[0];
    }

    void count(ptrdiff_t query, const std::int64_t* rows, const double* weights, ptrdiff_t k,
               ptrdiff_t output, double* votes) const noexcept {
        const std::int64_t* code = codes + output;
        const ptrdiff_t classes = first_class[output + 1] - first_class[output];
        double total = tally(rows, weights, k, output, votes);
        bool nothing = weights != nullptr;
        for (ptrdiff_t e = 0; nothing && e < k; ++e) nothing = weights[e] == 0;
        if (poll == Poll::winner) {
            std::int64_t best = code[rows[0] * n_outputs];
            for (ptrdiff_t e = 1; e < k; ++e) {
                const std::int64_t other = code[rows[e] * n_outputs];
                if (votes[other] > votes[best] || (votes[other] == votes[best] && other < best))
                    best = other;
            }
            winners[query * n_outputs + output] = nothing ? -1 : best;
        } else {
            if (may_be_none)
                total = total == 0 ? 1 : total;
            else if (nothing)
                total = std::numeric_limits<double>::quiet_NaN();
            double* out = shares + query * n_classes + first_class[output];
            for (ptrdiff_t c = 0; c < classes; ++c) out[c] = votes[c] / total;
        }
        if (k < classes)
            for (ptrdiff_t e = 0; e < k; ++e) votes[code[rows[e] * n_outputs]] = 0;
        else
            for (ptrdiff_t c = 0; c < classes; ++c) votes[c] = 0;
    }
};

// Where the neighbours of a query go: into its row of a table (n_queries, k), or into a vote. Then
// there is a row for each thread, and what the vote needs beside it; `done` may be told that there are
// fewer than k.
template <class Out> struct Answers {
    Out* distances;  // or null
    std::int64_t* rows;
    ptrdiff_t k;
    const Vote* vote = nullptr;
    double* scratch = nullptr;

    ptrdiff_t place(ptrdiff_t query, int worker) const noexcept {
        return (vote ? worker : query) * k;
    }
    void done(ptrdiff_t query, int worker) const noexcept { done(query, worker, k); }
    void done(ptrdiff_t query, int worker, ptrdiff_t found) const noexcept {
        const ptrdiff_t at = worker * k;
        if constexpr (sizeof(Out) == sizeof(double))
            if (vote)
                vote->take(query, rows + at, distances ? distances + at : nullptr, found,
                           scratch + worker * vote->scratch_size());
    }
};

// The vote of neighbours that are in tables (n_queries, k) already; the first of these is query
// `first`. weights: distances or weights, or null.
Status count_votes(const Vote& vote, ptrdiff_t first, const std::int64_t* rows,
                   const double* weights, ptrdiff_t n_queries, ptrdiff_t k, int n_threads) noexcept;

// The same of as many neighbours as each query has: those of query i are
// rows[offsets[i]..offsets[i + 1]).
Status count_lists(const Vote& vote, const std::int64_t* offsets, const std::int64_t* rows,
                   const double* weights, ptrdiff_t n_queries, int n_threads) noexcept;

// run(answers) with room for a vote of k neighbours on so many threads.
template <class Run> Status with_vote(const Vote& vote, ptrdiff_t k, int n_threads, const Run& run);

}  // namespace fastml

#include "votes/votes.inl.h"
