#pragma once
#include <cstddef>
#include <cstdint>

#include "common/pool.h"
#include "common/rows.h"

// Greedy k-means++ (Arthur and Vassilvitskii, 2007): what candidates for the next center would
// take off the potential, the weighted sum of squared distances to the nearest center so far.
namespace fastml {

// Rows rounded to 8 bits an entry, x̂ = code * step * unit: small enough to stay in cache while
// candidate after candidate is tried. By the triangle inequality a candidate c can be nearer to x
// than the closest center so far only if |x̂ - c| < closest + |x - x̂|; only then is x itself read.
// Everything but `unit` is in units of it, so that nothing overflows single precision.
struct Sketch {
    std::int8_t* codes;       // B panels (see gemm.inl.h) of ceil(n / width) * width rows
    double *step, *per_step;  // d, and its inverse; both 0 for constant columns
    float* half_norm;         // n: |x̂|²/2
    float* error;             // n: |x - x̂|, rounded up
    float* floor;             // n: only a score x̂·c - |c|²/2 above it can be nearer
    std::uint32_t* nearer;    // n: bit c says that candidate c of the last try is nearer
    double unit;
    double slack;  // relative bound on the rounding of norms and scores
};

// Rows a panel of codes holds.
std::ptrdiff_t sketch_width() noexcept;

// Fills a sketch, with floors for "no center yet". Dense rows. *usable: false if the data are so
// large or small that products of them leave double precision.
template <class T>
Status make_sketch(const Rows<T>& X, Sketch& sketch, bool* usable, int n_threads) noexcept;

// gain[c] = sum of w * max(0, closest - squared distance to row candidates[c]). closest: n squared
// distances, infinite before the first center. sketch: null to do without, which more candidates
// than max_sketched also do.
constexpr std::ptrdiff_t max_sketched = 32;
template <class T>
Status gains(const Rows<T>& X, const T* w, const T* closest, const Sketch* sketch,
             const std::ptrdiff_t* candidates, std::ptrdiff_t n_candidates, double* gain,
             int n_threads) noexcept;

// Row `center` is a center now: updates closest and the sketch's floors. candidate: which one it
// was in the last call of gains, or -1.
template <class T>
Status accept(const Rows<T>& X, T* closest, const Sketch* sketch, std::ptrdiff_t center,
              std::ptrdiff_t candidate, int n_threads) noexcept;

// *total = sum of w * p.
template <class T>
Status weighted_total(const T* p, const T* w, std::ptrdiff_t n, double* total,
                      int n_threads) noexcept;

// index[r] = the first i at which the running sum of w[j] * p[j], j <= i, reaches target[r];
// n - 1 if none does. Targets ascend. Summed one by one in T, as numpy.cumsum does: the same
// draw then picks the same row.
template <class T>
void search_cumulative(const T* p, const T* w, std::ptrdiff_t n, const double* target,
                       std::ptrdiff_t n_targets, std::ptrdiff_t* index) noexcept;

}  // namespace fastml
