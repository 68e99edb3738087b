#pragma once
#include <cstddef>
#include <cstdint>

#include "common/pool.h"
#include "votes/votes.h"

// Nearest neighbours by brute force: the rows of X (n, d) that are near the rows of Q (n_q, d),
// both dense in C order, finite, n < 2^31, d >= 1. Distances are those of the values as given, by
// differences in double, so that a row is at distance 0 from itself; which rows are nearest is
// decided by them and by the index among equals. Results do not depend on n_threads.
namespace fastml {

enum class Metric : int {
    euclidean,
    sqeuclidean,
    cosine,  // 1 - q·x within [0, 2], for rows that have norm 1, or 0
    manhattan,
    chebyshev
};

template <class T> struct Neighborhood {
    const T* queries;
    const T* data;
    std::ptrdiff_t n_queries, n, d;
    Metric metric;
    // The data are the queries, and none is its own neighbour. It is dropped from its k + 1 nearest,
    // or the first of them is if it is not there, for all its duplicates.
    bool not_itself;
};

// distances (or null) and rows (n_q, k), the nearest first. k <= n, less 1 with not_itself.
template <class T>
Status nearest(const Neighborhood<T>& in, std::ptrdiff_t k, double* distances, std::int64_t* rows,
               int n_threads) noexcept;

// What they vote for.
template <class T>
Status nearest_vote(const Neighborhood<T>& in, std::ptrdiff_t k, const Vote& vote,
                    int n_threads) noexcept;

// All rows within radius[i] of query i, the border included. Filled by `within`, and then read.
struct Within {
    struct Piece {  // a block of queries and a segment of the data
        std::int32_t* rows = nullptr;
        double* distances = nullptr;
        std::ptrdiff_t* offsets = nullptr;  // of each query, and their end
    };
    Piece* pieces = nullptr;  // (segments, blocks)
    std::ptrdiff_t n_queries = 0, block = 1, blocks = 0, segments = 0;
    bool with_distances = true;  // said before it is filled: else pieces need not have them
    ~Within();

    // counts[i] = how many there are.
    void count(std::int64_t* counts) const noexcept;
    // Row i's go to [offsets[i], offsets[i + 1]), by (distance, row) if sorted, else by row.
    // distances may be null. Both it and sorting need pieces with distances.
    Status copy(const std::int64_t* offsets, bool sorted, double* distances, std::int64_t* rows,
                int n_threads) const noexcept;
    // Lets them vote: the first query here is query `first` of the vote, which may be without
    // neighbours; `most` is the greatest count.
    Status poll(const Vote& vote, std::ptrdiff_t first, std::int64_t most,
                int n_threads) const noexcept;
};

// itself: the row that the first query is, with not_itself.
template <class T>
Status within(const Neighborhood<T>& in, const double* radius, std::ptrdiff_t itself, Within& found,
              int n_threads) noexcept;

// What they vote for, in memory that does not grow with their number; counts[i] = how many those of
// query i are.
template <class T>
Status within_vote(const Neighborhood<T>& in, const double* radius, const Vote& vote,
                   std::int64_t* counts, int n_threads) noexcept;

}  // namespace fastml
