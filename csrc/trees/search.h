#pragma once
// What the search for splits takes from the instruction set, chosen once.
#include <cstddef>
#include <cstdint>

#include "trees/columns.h"
#include "trees/queue.h"
#include "trees/replay.h"

namespace fastml {

// Rows [begin, end), Queue::room less a vector at most, of those sorted by a feature: pairs of a
// code without `base` and a tag. Places of splits, [first, last], are those of the row behind them.
struct Scan {
    const std::uint64_t* pairs;
    std::ptrdiff_t begin, end, first, last;
    std::uint32_t base;
};

struct SearchKernels {
    std::ptrdiff_t small_node;
    void (*rank_sort)(const std::int32_t* keys, std::ptrdiff_t m, std::int32_t* sorted);
    using Score = double (*)(const double* w, const double* left, const double* right,
                             std::ptrdiff_t count, double total, double least, double* proxies);
    Score squares, gini, poisson;
    double (*binary)(const double* w, const double* left, std::ptrdiff_t count, double total,
                     double total_left, double least, double* proxies);
    // Entropy: bounds of the proxies, and what the best is at least; see screen.inl.h.
    double (*bound_binary)(const double* w, const double* left, std::ptrdiff_t count, double total,
                           double total_left, double least, double slack, double* proxies);
    double (*bound_many)(const double* w, const double* left, const double* right,
                         std::ptrdiff_t count, double total, double least, double slack,
                         double* proxies);
    // The least and the largest of codes (m >= 1) below 2^31.
    void (*range)(const std::uint32_t* codes, std::ptrdiff_t m, std::uint32_t* least,
                  std::uint32_t* largest);
    // In the following, all arrays have row_slack more elements; those that are written may change.
    // left (m) = 1 where the code of a row is at most `last`, or `other`; their sum.
    std::ptrdiff_t (*up_to)(const Column& column, const std::int32_t* rows, std::ptrdiff_t m,
                            std::uint32_t last, std::uint32_t other, std::uint8_t* left);
    // out (m) = words[rows]; returns the bits that are not the same in all of them. m >= 1.
    std::uint64_t (*gather_words)(const std::uint64_t* words, const std::int32_t* rows,
                                  std::ptrdiff_t m, std::uint64_t* out);
    // left (m) = 1 where a word has not the bit of this number; their sum.
    std::ptrdiff_t (*without_bit)(const std::uint64_t* words, std::ptrdiff_t m, int number,
                                  std::uint8_t* left);
    // Codes and tags of those of rows (m), with `tags` (m), whose code is not `common`; their number.
    std::ptrdiff_t (*uncommon)(const Column& column, const std::int32_t* rows,
                               const std::uint32_t* tags, std::ptrdiff_t m, std::uint32_t* codes,
                               std::uint32_t* their_tags);
    // values (m) = x[rows], and the range of those that are not NaN; returns how many are.
    std::ptrdiff_t (*gather_range)(const float* x, const std::int32_t* rows, std::ptrdiff_t m,
                                   float* values, float* least, float* largest);
    // Sums over tags (m) of two classes, of the weight and of the second class's weight.
    void (*pair_sums)(const std::uint32_t* tags, std::ptrdiff_t m, std::uint32_t* sums);
    // left (m) = 1 where the value is at most the threshold, `missing` where it is NaN; returns
    // their sum.
    std::ptrdiff_t (*side)(const float* values, std::ptrdiff_t m, float threshold,
                           std::uint8_t missing, std::uint8_t* left);
    // pair_sums of those with left (m).
    void (*pair_sums_left)(const std::uint8_t* left, const std::uint32_t* tags, std::ptrdiff_t m,
                           std::uint32_t* sums);
    // Sums over tags (m), the weight above `bits` of one of 3 to 8 classes, of each class's weight:
    // of those with left (m), or of all if it is null.
    void (*class_sums)(const std::uint8_t* left, const std::uint32_t* tags, std::ptrdiff_t m,
                       int bits, std::ptrdiff_t n_classes, std::uint32_t* sums);
    // Moves rows and tags (m) with left (m) to the front, in order, and returns how many they are.
    // Uses two more arrays.
    std::ptrdiff_t (*move_left)(const std::uint8_t* left, std::int32_t* rows, std::uint32_t* tags,
                                std::ptrdiff_t m, std::int32_t* other_rows,
                                std::uint32_t* other_tags);
    // Each may be null. Queues the sums before rows that differ from those before them, with both
    // codes; `left`, `w` and so on are the sums before the first row, and become those before `end`.
    // Of two classes, and of 3 to 8 (`bits` as above).
    void (*scan_pair)(const Scan& scan, std::uint32_t* w, std::uint32_t* second, Queue& queue);
    void (*scan_classes)(const Scan& scan, int bits, std::ptrdiff_t n_classes,
                         const std::uint32_t* total, std::uint32_t* left, Queue& queue);
    // The sum of x (m) over those with left (m), or over all if it is null, in any order.
    double (*sum_left)(const std::uint8_t* left, const double* x, std::ptrdiff_t m);
};

const SearchKernels& search_kernels();

// Sorts pairs (key << 32 | payload) of m >= 1 keys below 2^key_bits by key, stably. Uses `spare`
// (m) and returns where the result is: `pairs` or `spare`.
std::uint64_t* radix_sort(std::uint64_t* pairs, std::uint64_t* spare, std::ptrdiff_t m,
                          int key_bits);

}  // namespace fastml
