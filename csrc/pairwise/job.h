#pragma once
// A measure taken apart: what is gathered over the coordinates of a pair, what the norms of the two
// rows do to it, and what is made of the result; and what becomes of a finished block.
#include <cstddef>
#include <cstdint>

#include "common/rows.h"
#include "pairwise/pairwise.h"

namespace fastml {

enum class Gather : int {
    product,
    squared_diff,
    abs_diff,
    max_diff,
    minimum,
    chi2,
    canberra,
    unequal,
    power_diff,
    haversine,
    braycurtis,   // two sums: of |x - y| and of |x + y|
    nan_squared,  // two sums: of (x - y)² and of 1, where neither is NaN
    shared        // sparse rows: of the lesser magnitude where signs agree
};

// Of a row: nothing, Σ x², 1 / |x|, Σ |x|, 1 / (Σ x)^(1/2), Σ x. 1 / 0 counts as 0.
enum class Norm : int { none, squared, inverse, absolute, inverse_root, sum };

// s with the rows' norms a and b: as it is; a + b - 2s, by differences where that cancels; the same
// without another look; s (a b); s / (a + b), 0 if that is 0 / 0; first sum over second; first sum
// times d over second.
enum class Combine : int { none, sqdist, unshared, scale, share, ratio, present };

enum class Map : int { none, times, polynomial, tanh, exp, sqrt, root, cosine_distance, arc };

enum class Sink : int { store, transpose, nearest, apply };

struct Plan {
    Gather gather;
    Norm norm;
    Combine combine;
    Map map;
    bool invariant;  // under translation: rows are shifted to where nothing cancels
    bool fixed_diagonal;
    double diagonal;
};

// Σ |x - y| by differences, instead of from sums of least values.
inline void take_differences(Plan& plan) {
    plan.gather = Gather::abs_diff;
    plan.norm = Norm::none;
    plan.combine = Combine::none;
}

template <class T> struct Job {
    Rows<T> X, Y;
    Plan plan;
    double gamma, coef0, degree;
    const double* weights;
    bool symmetric;  // Y is X
    bool mirrored;   // symmetric, and each pair is taken once and kept twice
    Sink sink;
    T* out;  // store, transpose
    std::ptrdiff_t ld;
    std::int64_t* index;  // nearest
    double* distance;
    const T* V;  // apply
    std::ptrdiff_t r, segments;
    const std::ptrdiff_t* ends;
    double* product;
    const Packed<T>* packed;  // or null: Y is laid out as it comes
};

// Rows [first, first + n) of Y, laid out for the kernels in the precision C that they work in.
template <class C> struct Chunk {
    std::ptrdiff_t first, n;
    const C* values;  // dense: panels. Sparse: columns (d, stride), or the values by column
    const C* norms;
    const C* sizes;  // Norm::sum: the largest Σ |x| of each panel
    std::ptrdiff_t stride;
    const std::int32_t* rows;  // sparse, by column: whose values they are, from rows[start[p]] on
    const std::ptrdiff_t* start;
};

// A rectangle of finished or half-finished quantities: rows i0 and on of X, columns j0 and on of Y.
// ld is a multiple of every vector length, and so much of each row may be written.
template <class C> struct Block {
    C *at, *second;
    std::ptrdiff_t i0, rows, j0, cols, ld;
    const C *norms_a, *norms_b;  // of its first row and column
};

// Rows of X that a thread takes at a time.
constexpr std::ptrdiff_t dense_rows = 48, sparse_rows = 8;

}  // namespace fastml
