// The order of queries: along a Z-curve through the box of the tree.
#include <algorithm>

#include "common/blocks.h"
#include "common/scratch.h"
#include "kdtree/query.h"

namespace fastml {
namespace {

constexpr int digit_bits = key_bits / 2;
constexpr ptrdiff_t digits = 1 << digit_bits, block_size = 1 << 14;

template <class T> struct Cells {
    ptrdiff_t d;  // coordinates that matter
    int bits;     // of each
    T lo[key_bits], scale[key_bits];

    explicit Cells(const KDTree<T>& tree) : d(std::min<ptrdiff_t>(tree.d, key_bits)) {
        constexpr ptrdiff_t fan = KDTree<T>::fan;
        bits = key_bits / static_cast<int>(d);
        const ptrdiff_t root = tree.first_node[tree.levels - 1];
        const ptrdiff_t children =
            tree.levels == 1 ? tree.leaves : root - tree.first_node[tree.levels - 2];
        for (ptrdiff_t j = 0; j < d; ++j) {
            const T* box = tree.boxes + (root * tree.d + j) * 2 * fan;
            lo[j] = *std::min_element(box, box + children);
            const T hi = -*std::min_element(box + fan, box + fan + children);
            scale[j] = static_cast<T>(1 << bits) / (hi - lo[j]);
        }
    }
    std::uint64_t key(const T* q) const {
        std::uint64_t key = 0;
        for (ptrdiff_t j = 0; j < d; ++j) {
            const T x = (q[j] - lo[j]) * scale[j];
            const T most = static_cast<T>((1 << bits) - 1);
            const unsigned cell = x > 0 ? static_cast<unsigned>(x < most ? x : most) : 0;
            for (int b = 0; b < bits; ++b)
                key |= static_cast<std::uint64_t>(cell >> b & 1) << (b * d + j);
        }
        return key;
    }
};

// One pass of a radix sort by the digit at `shift`, stable.
Status sort_by_digit(const std::uint64_t* from, std::uint64_t* to, ptrdiff_t n, int shift,
                     ptrdiff_t* starts, int n_threads) {
    const ptrdiff_t blocks = ceil_div(n, block_size);
    auto digit = [=](std::uint64_t key) { return key >> shift & (digits - 1); };
    Status status = parallel(blocks, n_threads, [&](ptrdiff_t b, int) {
        ptrdiff_t* count = starts + b * digits;
        std::fill(count, count + digits, 0);
        for (ptrdiff_t i = b * block_size; i < std::min(n, (b + 1) * block_size); ++i)
            ++count[digit(from[i])];
    });
    if (status != Status::ok) return status;
    ptrdiff_t total = 0;
    for (ptrdiff_t v = 0; v < digits; ++v)
        for (ptrdiff_t b = 0; b < blocks; ++b) {
            const ptrdiff_t count = starts[b * digits + v];
            starts[b * digits + v] = total;
            total += count;
        }
    return parallel(blocks, n_threads, [&](ptrdiff_t b, int) {
        ptrdiff_t* start = starts + b * digits;
        for (ptrdiff_t i = b * block_size; i < std::min(n, (b + 1) * block_size); ++i)
            to[start[digit(from[i])]++] = from[i];
    });
}

}  // namespace

Status sort_keys(std::uint64_t* keys, std::uint64_t* spare, ptrdiff_t n, int n_threads) noexcept {
    Scratch<ptrdiff_t> starts(ceil_div(n, block_size) * digits);
    if (!starts) return Status::no_memory;
    const Status status = sort_by_digit(keys, spare, n, row_bits, starts.get(), n_threads);
    if (status != Status::ok) return status;
    return sort_by_digit(spare, keys, n, row_bits + digit_bits, starts.get(), n_threads);
}

template <class T>
Status sort_queries(const KDTree<T>& tree, const T* Q, ptrdiff_t n_q, std::uint64_t* order,
                    std::uint64_t* spare, int n_threads) noexcept {
    const Cells<T> cells(tree);
    const Status status = parallel(ceil_div(n_q, block_size), n_threads, [&](ptrdiff_t b, int) {
        for (ptrdiff_t i = b * block_size; i < std::min(n_q, (b + 1) * block_size); ++i)
            order[i] = cells.key(Q + i * tree.d) << row_bits | static_cast<std::uint64_t>(i);
    });
    return status == Status::ok ? sort_keys(order, spare, n_q, n_threads) : status;
}

template Status sort_queries(const KDTree<float>&, const float*, ptrdiff_t, std::uint64_t*,
                             std::uint64_t*, int) noexcept;
template Status sort_queries(const KDTree<double>&, const double*, ptrdiff_t, std::uint64_t*,
                             std::uint64_t*, int) noexcept;

}  // namespace fastml
