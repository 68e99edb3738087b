// Rows that repeat: which they are, and lists of them.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "common/blocks.h"
#include "common/scratch.h"
#include "kdtree/query.h"

namespace fastml {
namespace {

constexpr ptrdiff_t block_size = 1 << 14;

template <class T> std::uint64_t hash(const T* x, ptrdiff_t d) {
    std::uint64_t h = 0;
    for (ptrdiff_t j = 0; j < d; ++j) {
        const T value = x[j] + T(0);  // of -0 as well
        std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t> bits;
        std::memcpy(&bits, &value, sizeof bits);
        h = (h ^ bits) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return h * 0xbf58476d1ce4e5b9u;
}

// Whether, going by a sample, rows have half a copy or more on average.
template <class T> Status repeats(const T* X, ptrdiff_t n, ptrdiff_t d, bool* yes) {
    constexpr ptrdiff_t most = 1 << 12, slots = 4 * most;
    constexpr double fewest_pairs = 4;
    const ptrdiff_t sampled = std::min(most, n / 16);
    *yes = false;
    Scratch<std::uint64_t> hashes(slots);
    Scratch<std::int32_t> counts(slots);
    if (!hashes || !counts) return Status::no_memory;
    std::fill_n(counts.get(), slots, 0);
    double pairs = 0;
    for (ptrdiff_t s = 0; s < sampled; ++s) {
        const std::uint64_t bits = (s + 1) * 0x9e3779b97f4a7c15u;  // no stride: grids have periods
        const auto row = static_cast<ptrdiff_t>(static_cast<double>(bits >> 11) * 0x1p-53 *
                                                static_cast<double>(n));
        const std::uint64_t h = hash(X + row * d, d);
        ptrdiff_t at = static_cast<ptrdiff_t>(h >> 50);
        while (counts[at] && hashes[at] != h) at = (at + 1) % slots;
        hashes[at] = h;
        pairs += counts[at]++;
    }
    const double copies = 2 * pairs / sampled * n / sampled;
    *yes = pairs >= fewest_pairs && copies >= 0.5;
    return Status::ok;
}

// Leaders among the rows `run`, whose hashes agree in part: those that differ are few, and go to
// `found`, which has room for all of them. Returns how many.
template <class T, class Int>
ptrdiff_t lead_run(const T* X, ptrdiff_t d, const std::uint64_t* run, ptrdiff_t size,
                   std::uint64_t* found, Int* leader) {
    ptrdiff_t n_found = 0;
    for (ptrdiff_t r = 0; r < size; ++r) {
        const ptrdiff_t row = row_of(run[r]);
        ptrdiff_t f = 0;
        for (; f < n_found; ++f) {
            const T *a = X + row * d, *b = X + row_of(found[f]) * d;
            ptrdiff_t j = 0;
            while (j < d && a[j] == b[j]) ++j;
            if (j == d) break;
        }
        if (f == n_found) found[n_found++] = run[r];
        leader[row] = static_cast<Int>(row_of(found[f]));
    }
    return n_found;
}

}  // namespace

template <class T>
Status find_leaders(const T* X, ptrdiff_t n, ptrdiff_t d, void* leader, ptrdiff_t* distinct,
                    int n_threads) noexcept {
    auto* const leaders = static_cast<typename KDTree<T>::Int*>(leader);
    *distinct = n;
    bool worth = false;
    Status status = repeats(X, n, d, &worth);
    if (status != Status::ok || !worth) return status;
    const ptrdiff_t blocks = ceil_div(n, block_size);
    Scratch<std::uint64_t> keys(2 * n);
    Scratch<ptrdiff_t> found(blocks);
    if (!keys || !found) return Status::no_memory;
    std::uint64_t* const spare = keys.get() + n;
    status = parallel(blocks, n_threads, [&](ptrdiff_t b, int) {
        for (ptrdiff_t i = b * block_size; i < std::min(n, (b + 1) * block_size); ++i)
            keys[i] = hash(X + i * d, d) >> row_bits << row_bits | static_cast<std::uint64_t>(i);
    });
    if (status == Status::ok) status = sort_keys(keys.get(), spare, n, n_threads);
    if (status != Status::ok) return status;
    const auto same = [&](ptrdiff_t i, ptrdiff_t j) {
        return keys[i] >> row_bits == keys[j] >> row_bits;
    };
    status = parallel(blocks, n_threads, [&](ptrdiff_t b, int) {  // runs that begin in a block
        found[b] = 0;
        ptrdiff_t i = b * block_size;
        while (i < n && i > 0 && same(i, i - 1)) ++i;
        while (i < std::min(n, (b + 1) * block_size)) {
            ptrdiff_t end = i + 1;
            while (end < n && same(i, end)) ++end;
            found[b] += lead_run(X, d, keys.get() + i, end - i, spare + i, leaders);
            i = end;
        }
    });
    *distinct = 0;
    for (ptrdiff_t b = 0; b < blocks; ++b) *distinct += found[b];
    return status;
}

template <class T>
Status list_copies(const KDTree<T>& tree, const void* leader, ptrdiff_t n_rows, void* copies,
                   ptrdiff_t* first_copy) noexcept {
    using Int = typename KDTree<T>::Int;
    const Int* const leaders = static_cast<const Int*>(leader);
    Int* const out = static_cast<Int*>(copies);
    const ptrdiff_t slots = tree.leaves * KDTree<T>::fan;
    Scratch<ptrdiff_t> place(n_rows);  // of leaders, in the order of leaves
    if (!place) return Status::no_memory;
    for (ptrdiff_t i = 0; i < tree.n; ++i) place[tree.index[i]] = i;
    std::fill_n(first_copy, slots + 1, 0);
    for (ptrdiff_t row = 0; row < n_rows; ++row)
        if (leaders[row] != row) ++first_copy[place[leaders[row]]];
    ptrdiff_t end = 0;
    for (ptrdiff_t i = 0; i <= slots; ++i) {  // where each point's begin
        const ptrdiff_t count = first_copy[i];
        first_copy[i] = end;
        end += count;
    }
    for (ptrdiff_t row = 0; row < n_rows; ++row)
        if (leaders[row] != row) out[first_copy[place[leaders[row]]]++] = static_cast<Int>(row);
    for (ptrdiff_t i = slots; i > 0; --i) first_copy[i] = first_copy[i - 1];
    first_copy[0] = 0;
    return Status::ok;
}

#define FML_INSTANTIATE(T)                                                                         \
    template Status find_leaders(const T*, ptrdiff_t, ptrdiff_t, void*, ptrdiff_t*, int) noexcept; \
    template Status list_copies(const KDTree<T>&, const void*, ptrdiff_t, void*,                   \
                                ptrdiff_t*) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
