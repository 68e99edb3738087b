#pragma once
// How rows are labelled: shared by the drivers of this family.
#include <cstddef>
#include <cstdint>

#include "common/pool.h"
#include "common/rows.h"
#include "common/scratch.h"

namespace fastml {

// Sums of a few clusters, k * d of them, fit in L2 beside the data: each block of rows has its own.
constexpr std::ptrdiff_t fused_sums = 1 << 14;

// For every row (n of each, or null): its label's center is at most `upper` away, every other
// center at least `lower`.
struct Bounds {
    float *upper, *lower;
};

// Bounds are kept in single precision: outward by more than it rounds.
constexpr float bound_up = 1 + 1e-6f, bound_down = 1 - 1e-6f;

// A score x·c - |c|²/2 is wrong by no more than gamma * |c| (|x| + |c|), and by what rounding the
// operands costs: |x - x̂| |c| + |x̂| |c - ĉ|. |c| <= reach, |c - ĉ| <= lost.
template <class T> struct Margin {
    T gamma, reach, lost;
};

// That of scores in T.
template <class T>
Margin<T> margin_of(const T* centers, std::ptrdiff_t k, std::ptrdiff_t d) noexcept;

// Outside of this range squares leave single precision, in which bounds are kept.
inline bool in_range(double reach) { return reach > 1e-12 && reach < 1e15; }

// Centers as A panels with their starting scores.
template <class T> struct Packed {
    const T *panels, *bias;
    std::ptrdiff_t n_panels;
    Margin<T> margin;
};

// All rows in lower precision, once they have been looked at in it: half as long or less, and in the
// order that the kernels take them. See kept_size; null if they are not kept.
struct KeptRows {
    float *words, *norms, *lost;
    bool filled;
};

// How many values that takes (single: rows are floats), of which the last *stride are those of lost and those before them of
// norms; 0 if that would be too much to keep.
std::ptrdiff_t kept_size(std::ptrdiff_t n, std::ptrdiff_t d, bool single,
                         std::ptrdiff_t* stride) noexcept;

// Labels (and bounds, if they are not null) of n rows, those of `list` or all. `work`, n entries,
// may be the list itself, which is lost then. Sooner than with `packed` alone where scores in
// lower precision tell most rows' labels; the same labels in any case. kept, or null: filled and
// used where all rows are looked at. *changed, if not null: how many are new.
template <class T>
Status label_rows(const Rows<T>& X, const std::int32_t* list, std::ptrdiff_t n, const T* centers,
                  std::ptrdiff_t k, const Bounds& bounds, std::int32_t* labels, std::int32_t* work,
                  KeptRows* kept, std::ptrdiff_t* changed, int n_threads) noexcept;

// near[i] = at most the distance from row i to the nearest of the centers.
template <class T>
Status reach_rows(const Rows<T>& X, const T* centers, std::ptrdiff_t k, const KeptRows& kept,
                  float* near, int n_threads) noexcept;

}  // namespace fastml
