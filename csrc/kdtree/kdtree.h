#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/pool.h"
#include "votes/votes.h"

// A k-d tree of n points in d dimensions, and exact searches in it. Coordinates are finite.
//
// Leaves hold `fan` points each, only the last one fewer; every node has `fan` children, only the
// last of a level fewer. So n alone gives the shape, and no child is pointed to: the children of
// node i are the nodes fan·i … of the level below. What prunes is the tight box around each child,
// fan boxes at a time.
//
// Distances are differences of coordinates, added in order of the coordinates without fused
// multiply-adds: the same bits with every instruction set. Equal distances rank by index.
//
// Where many rows repeat, as on a grid, the points of the tree are those that differ. Each stands
// for the first of its rows, and knows the others.
namespace fastml {

enum class Metric : int { euclidean, manhattan, chebyshev, minkowski };

template <class T> struct KDTree {
    using Int = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
    static constexpr std::ptrdiff_t fan = 16;
    static constexpr int most_levels = 16;

    std::ptrdiff_t n, d, leaves;             // n points, d coordinates
    int levels;                              // of nodes; level 0 has the leaves as children
    std::ptrdiff_t first_node[most_levels];  // of each level, within `boxes` and `lowest`
    Metric metric;
    double p;

    T* points;  // (leaves, d, fan): absent ones are at infinity
    Int*
        index;  // (leaves, fan), ascending in a leaf: the row of each point; absent: the greatest Int
    T* boxes;     // (nodes, d, 2, fan): each child's least coordinates and negated greatest ones
    Int* lowest;  // (nodes, fan): the least row in each child

    // Of the point at i, leaf by leaf: copies[first_copy[i] .. first_copy[i + 1]), ascending. Null
    // if every row has a point of its own.
    const Int* copies = nullptr;
    const std::ptrdiff_t* first_copy = nullptr;  // leaves * fan + 1
    // What is left to look for when the nearest are at distance 0: -1, nothing, if no two points can
    // be; 0 if they can, or it is not known.
    T beyond_zero = 0;

    const Int* copies_begin(std::ptrdiff_t i) const {
        return copies ? copies + first_copy[i] : nullptr;
    }
    const Int* copies_end(std::ptrdiff_t i) const {
        return copies ? copies + first_copy[i + 1] : nullptr;
    }

    // Of all points, with their copies.
    std::ptrdiff_t rows() const { return copies ? n + first_copy[leaves * fan] : n; }

    // Sets the sizes from n and d; returns the number of nodes. n, d >= 1.
    std::ptrdiff_t shape(std::ptrdiff_t n_points, std::ptrdiff_t n_columns) noexcept {
        n = n_points;
        d = n_columns;
        leaves = (n + fan - 1) / fan;
        std::ptrdiff_t nodes = 0, width = leaves;
        levels = 0;
        do {
            width = (width + fan - 1) / fan;
            first_node[levels++] = nodes;
            nodes += width;
        } while (width > 1);
        return nodes;
    }
    void borrow(T* at_points, void* at_index, T* at_boxes, void* at_lowest) noexcept {
        points = at_points;
        index = static_cast<Int*>(at_index);
        boxes = at_boxes;
        lowest = static_cast<Int*>(at_lowest);
    }
    void borrow_copies(void* at_copies, std::ptrdiff_t* at_first, bool told_apart) noexcept {
        beyond_zero = static_cast<T>(told_apart ? -1 : 0);
        copies = static_cast<Int*>(at_copies);
        first_copy = at_first;
    }
};

// Whether squares of differences of these values neither overflow nor lose bits to underflow.
template <class T>
Status squares_fit(const T* values, std::ptrdiff_t n, bool* fits, int n_threads) noexcept;

// leader[i], an Int as all rows are, = the first row equal to row i of X (n, d); *distinct: how many
// first rows there are. *distinct = n, and no leaders, if going by a sample too few rows repeat.
template <class T>
Status find_leaders(const T* X, std::ptrdiff_t n, std::ptrdiff_t d, void* leader,
                    std::ptrdiff_t* distinct, int n_threads) noexcept;

// Fills in points, index, boxes and lowest, which the caller allocates, from the rows `first`
// (tree.n, ascending) of X in C order; null: all. The tree does not depend on n_threads.
template <class T>
Status build(const T* X, const void* first, const KDTree<T>& tree, int n_threads) noexcept;

// What `copies` (n_rows - tree.n) and `first_copy` are to be, of a tree that is built.
template <class T>
Status list_copies(const KDTree<T>& tree, const void* leader, std::ptrdiff_t n_rows, void* copies,
                   std::ptrdiff_t* first_copy) noexcept;

// The k nearest points of each row of Q (n_q, d), nearest first, into distances and indices
// (n_q, k). Q null: of each row of the tree itself. 1 <= k <= rows. Out: T or double.
// not_itself, with Q null: no point is its own neighbour. It is dropped from its k + 1 nearest, or
// the first of them is if it is not there, for all its duplicates; k < rows.
template <class T, class Out>
Status nearest(const KDTree<T>& tree, const T* Q, std::ptrdiff_t n_q, std::ptrdiff_t k,
               bool not_itself, Out* distances, std::int64_t* indices, int n_threads) noexcept;

// What they vote for.
template <class T>
Status nearest_vote(const KDTree<T>& tree, const T* Q, std::ptrdiff_t n_q, std::ptrdiff_t k,
                    bool not_itself, const Vote& vote, int n_threads) noexcept;

// counts[i] = the number of points within radius[i] of row i of Q, the border included.
template <class T>
Status count_within(const KDTree<T>& tree, const T* Q, std::ptrdiff_t n_q, const double* radius,
                    std::int64_t* counts, int n_threads) noexcept;

// The same points: row i's from offsets[i] on, nearest first if `sorted`, else in no order to rely
// on. offsets (n_q + 1) are the running sums of the counts. distances: null to skip.
template <class T>
Status collect_within(const KDTree<T>& tree, const T* Q, std::ptrdiff_t n_q, const double* radius,
                      const std::int64_t* offsets, bool sorted, double* distances,
                      std::int64_t* indices, int n_threads) noexcept;

// What they vote for; counts[i] = how many they are. not_itself: row i of Q is row i of the tree, and
// does not count among its own.
template <class T>
Status within_vote(const KDTree<T>& tree, const T* Q, std::ptrdiff_t n_q, const double* radius,
                   bool not_itself, const Vote& vote, std::int64_t* counts, int n_threads) noexcept;

// log_sums[i] = the logarithm of the sum, over all points, of weight * K(distance / bandwidth) from
// row i of Q, with K(0) = 1. Euclidean trees. weights (n), all positive, or null. What the sums
// leave out is beyond their last bit, however far from all points the query is.
enum class DensityKernel : int { gaussian, tophat, epanechnikov, exponential, linear, cosine };
template <class T>
Status log_kernel_sums(const KDTree<T>& tree, const T* Q, std::ptrdiff_t n_q, DensityKernel kernel,
                       double bandwidth, const double* weights, double* log_sums,
                       int n_threads) noexcept;

// scanned[i] = how many points the search for the k nearest of row i compares it with.
template <class T>
Status count_scanned(const KDTree<T>& tree, const T* Q, std::ptrdiff_t n_q, std::ptrdiff_t k,
                     std::int64_t* scanned, int n_threads) noexcept;

}  // namespace fastml
