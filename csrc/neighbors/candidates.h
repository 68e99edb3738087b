#pragma once
// What a search has found so far. The filter compares cheap costs with limits; what passes is kept
// here, with bounds on its true cost, until there is too much of it.
#include <cstddef>
#include <cstdint>

namespace fastml {

using std::ptrdiff_t;

// A true distance. Nearer first, then the lower row.
struct Neighbor {
    double distance;
    std::int32_t row, slot;
    bool operator<(const Neighbor& other) const {
        return distance < other.distance || (distance == other.distance && row < other.row);
    }
};

// How the costs of a query relate to its distances: the true cost is rate * distance + offset, and
// the filter's is in error by at most `error` beyond its slack, and by `relative` times itself.
struct Costs {
    double rate, offset, error, relative;
};

// Where the filter puts data rows whose cost is below the limit of a query. The true cost is at
// least cost - error, at most cost + slack + error.
struct Sink {
    void (*push)(Sink* sink, ptrdiff_t query, ptrdiff_t row, double cost, double slack);
    // Or null: a bound that the costs of as many rows as are sought stay below.
    void (*open)(Sink* sink, ptrdiff_t query, double bound) = nullptr;
};

// The candidates of one query in one part of the data.
struct Candidates {
    float *lower, *upper;  // `capacity` each, as `row`
    std::int32_t* row;
    std::int32_t* count;
    float* limit;     // rows with a higher cost are not among the nearest
    float* smallest;  // the k lowest upper bounds so far, ascending; null if k is large
};

// Those of many.
struct CandidateTable {
    ptrdiff_t capacity;
    float *lower, *upper;
    std::int32_t *row, *count;
    float *limit, *smallest;
    ptrdiff_t k_kept;  // the size of each `smallest`
    Candidates at(ptrdiff_t i) const {
        return {lower + i * capacity,
                upper + i * capacity,
                row + i * capacity,
                count + i,
                limit + i,
                k_kept ? smallest + i * k_kept : nullptr};
    }
};

// Up to this many neighbours the limit follows each candidate; beyond, it is lowered when there
// are enough new ones.
constexpr ptrdiff_t most_kept = 24;

// What costs must stay below to pass: those equal to the bound t have to.
float limit_of(double t, const Costs& costs) noexcept;

// Empties it.
void clear(const Candidates& c, ptrdiff_t k) noexcept;

// Lowers the limit to a bound on the costs of k different rows.
void limit_to(const Candidates& c, const Costs& costs, double bound) noexcept;

// Adds a candidate. There must be room.
void add(const Candidates& c, ptrdiff_t k, const Costs& costs, std::int32_t row, double cost,
         double slack) noexcept;

// Lowers the limit to what the bounds of the candidates tell about the k-th nearest, and drops
// those above it.
void tighten(const Candidates& c, ptrdiff_t k, const Costs& costs) noexcept;

// The same from true distances, one for each candidate: only k are left. `nearest` is scratch for
// all of them.
void settle(const Candidates& c, ptrdiff_t k, const Costs& costs, const double* distances,
            Neighbor* nearest) noexcept;

// The candidates again, their bounds taken from their distances.
void reset(const Candidates& c, ptrdiff_t k, const Costs& costs, const double* distances) noexcept;

}  // namespace fastml
