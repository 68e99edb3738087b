#pragma once
// How drivers cut rows into blocks, so that no result depends on the number of threads.
#include <cstddef>

namespace fastml {

using std::ptrdiff_t;

constexpr ptrdiff_t ceil_div(ptrdiff_t a, ptrdiff_t b) { return (a + b - 1) / b; }

// Per-thread scratch starts on a cache line: a multiple of 16 floats.
constexpr ptrdiff_t aligned(ptrdiff_t size) { return ceil_div(size, 16) * 16; }

// Every tile width of every instruction set divides this, so blocks of so many rows (or a
// multiple) are cut into tiles the same way wherever they start.
constexpr ptrdiff_t block_unit = 48;

// Blocks of rows, from n alone: as even as can be, about `wanted` of them.
struct Grid {
    ptrdiff_t n, rows, blocks;
    Grid(ptrdiff_t n_rows, ptrdiff_t wanted)
        : n(n_rows), rows(ceil_div(ceil_div(n_rows, wanted), block_unit) * block_unit),
          blocks(ceil_div(n_rows, rows)) {}
    ptrdiff_t begin(ptrdiff_t b) const { return b * rows; }
    ptrdiff_t end(ptrdiff_t b) const { return b + 1 < blocks ? (b + 1) * rows : n; }
};

// Blocks that are summed apart are few, since each has its own sums; others only need to be small
// enough to balance.
constexpr ptrdiff_t summed_blocks = 64, free_blocks = 512;

// Below this many multiply-adds (15 us in double at best) waking the pool costs about what it brings.
// An entry that is only passed over costs as much as passed_over of them.
constexpr double worth_threads = 1e6, passed_over = 8;

inline int threads_for(double work, int n_threads) { return work < worth_threads ? 1 : n_threads; }

// Of a pass that follows another so soon that threads are awake: it is worth them for less work.
inline int threads_awake(double work, int n_threads) { return threads_for(8 * work, n_threads); }

// Adds the blocks' parts in block order, entry by entry; a few entries at a time, along which the
// parts are read. They are `apart` from one another, or one after the other.
template <class From, class To>
void add_parts(const From* parts, ptrdiff_t n_parts, ptrdiff_t size, To* total,
               ptrdiff_t apart = 0) {
    if (!apart) apart = size;
    constexpr ptrdiff_t strip = 64;
    for (ptrdiff_t e0 = 0; e0 < size; e0 += strip) {
        const ptrdiff_t n = size - e0 < strip ? size - e0 : strip;
        double sum[strip] = {};
        for (ptrdiff_t b = 0; b < n_parts; ++b)
            for (ptrdiff_t e = 0; e < n; ++e) sum[e] += parts[b * apart + e0 + e];
        for (ptrdiff_t e = 0; e < n; ++e) total[e0 + e] = static_cast<To>(sum[e]);
    }
}

}  // namespace fastml
