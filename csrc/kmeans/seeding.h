#pragma once
#include <cstddef>
#include <cstdint>

#include "common/pool.h"
#include "common/rows.h"

// Greedy k-means++ (Arthur and Vassilvitskii, 2007): what candidates for the next center would
// take off the potential, the weighted sum of squared distances to the nearest center so far.
namespace fastml {

constexpr std::ptrdiff_t max_sketched = 32;  // candidates that one try takes

// Rows rounded to 8 bits an entry, x̂ = code * step: small enough to stay in cache while candidate
// after candidate is tried. By the triangle inequality a candidate c can be nearer to x than the
// closest center so far only if |x̂ - ĉ| < closest + |x - x̂| + |c - ĉ|; only then is x itself read.
// Lengths are in steps, so that nothing overflows single precision. Arrays have sketch_shape's
// padding.
struct Sketch {
    std::uint8_t* codes;    // in panels, see codes.inl.h
    float* half_norm;       // |x̂|²/2; infinite for the padding
    float* error;           // |x - x̂|, rounded up
    float* reach;           // closest + error, rounded up
    std::uint64_t* nearer;  // [c * panels + p]: rows of panel p that may be nearer to candidate c
                            // of the last try, a bit each; max_sketched * panels
    float* rows;            // (n, row): x in steps, to try candidates on; null: x itself
    std::ptrdiff_t row;     // d and padding of zeros, whole cache lines
    double per_step;        // 1 / step
    std::ptrdiff_t panels;  // of all rows
};

// In how many panels a sketch lays n rows out, for how many rows these have room, and how many bytes
// their codes take.
void sketch_shape(std::ptrdiff_t n, std::ptrdiff_t d, std::ptrdiff_t* panels,
                  std::ptrdiff_t* padded, std::ptrdiff_t* bytes) noexcept;

// Fills a sketch, with reaches for "no center yet". Dense rows. *usable: false if the data are so
// large, small or long that products of them leave their range.
template <class T>
Status make_sketch(const Rows<T>& X, Sketch& sketch, bool* usable, int n_threads) noexcept;

// Dense rows, less the shift, as panels of columns that gains takes as they are: laid out once, not
// for every center. How many values they have room for, and filling them.
template <class T> std::ptrdiff_t panels_size(std::ptrdiff_t n, std::ptrdiff_t d) noexcept;
template <class T> Status make_panels(const Rows<T>& X, T* panels, int n_threads) noexcept;

// gain[c] = sum of w * max(0, closest - squared distance to row candidates[c]). closest: n squared
// distances, infinite before the first center. sketch: null to do without, which more candidates
// than max_sketched have to. One that has rows gives gains in single precision if that tells which
// candidate, the first of equal ones, gains most. panels: see above, or null; without a sketch they
// are used.
template <class T>
Status gains(const Rows<T>& X, const T* w, const T* closest, const Sketch* sketch, const T* panels,
             const std::ptrdiff_t* candidates, std::ptrdiff_t n_candidates, double* gain,
             int n_threads) noexcept;

// Blocks of rows whose potentials are summed apart, at most.
constexpr std::ptrdiff_t most_parts = 64;

// Row `center` is a center now: updates closest and the sketch's reaches; parts: the sums of
// w * closest over blocks of rows, *total: over all. candidate: which one it was in the last call
// of gains, or -1.
template <class T>
Status accept(const Rows<T>& X, const T* w, T* closest, const Sketch* sketch, const T* panels,
              std::ptrdiff_t center, std::ptrdiff_t candidate, double* parts, double* total,
              int n_threads) noexcept;

// index[r] = the first i at which the running sum of w[j] * p[j], j <= i, reaches target[r];
// n - 1 if none does. Targets ascend. As if summed one by one in T, as numpy.cumsum does: the same
// draw then picks the same row. p and parts as accept leaves them.
template <class T>
void search_cumulative(const T* p, const T* w, std::ptrdiff_t n, const double* parts,
                       const double* target, std::ptrdiff_t n_targets,
                       std::ptrdiff_t* index) noexcept;

}  // namespace fastml
