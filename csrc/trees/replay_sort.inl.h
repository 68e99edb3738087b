#include "trees/replay.inl.h"

// An element's rank among at most so many is found by comparing it to all.
constexpr std::ptrdiff_t ranked = 2 * FML_VECTOR_BYTES;
constexpr int ranked_bits = 7;

inline int bits_of(std::uint64_t most) {  // to count from 0 to most
    int bits = 0;
    for (; most; most >>= 1) ++bits;
    return bits;
}

// Sorts keys (m), all different and below 2^31, into `out`. Keys may be written a vector beyond m.
inline void rank_sort(std::uint32_t* keys, std::ptrdiff_t m, std::uint32_t* out) {
    typedef Simd<float>::Index Index;
    constexpr std::ptrdiff_t lanes = Simd<float>::lanes;
    for (std::ptrdiff_t l = 0; l < lanes; ++l) keys[m + l] = INT32_MAX;
    for (std::ptrdiff_t j = 0; j < m; j += lanes) {
        Index key, rank{};
        std::memcpy(&key, keys + j, sizeof key);
        for (std::ptrdiff_t i = 0; i < m; ++i) rank -= static_cast<std::int32_t>(keys[i]) < key;
        for (std::ptrdiff_t l = 0; l < lanes && j + l < m; ++l) out[rank[l]] = keys[j + l];
    }
}

// Sorts keys (m) by `bits` bits from `shift` on, stably. Both arrays are written; returns which of
// them holds the result.
template <class K>
K* radix_sort(K* keys, K* other, std::ptrdiff_t m, int shift, int bits, std::uint32_t* counts) {
    const int widest = m < 4096 ? 8 : 11, passes = (bits + widest - 1) / widest;
    const int width = (bits + passes - 1) / passes;
    const std::ptrdiff_t digits = std::ptrdiff_t(1) << width;
    const K mask = static_cast<K>(digits - 1);
    for (int end = shift + bits; shift < end; shift += width) {
        std::memset(counts, 0, static_cast<std::size_t>(digits) * sizeof *counts);
        for (std::ptrdiff_t i = 0; i < m; ++i) ++counts[keys[i] >> shift & mask];
        std::uint32_t total = 0;
        for (std::ptrdiff_t v = 0; v < digits; ++v) {
            const std::uint32_t count = counts[v];
            counts[v] = total;
            total += count;
        }
        for (std::ptrdiff_t i = 0; i < m; ++i) other[counts[keys[i] >> shift & mask]++] = keys[i];
        K* const sorted = other;
        other = keys;
        keys = sorted;
    }
    return keys;
}

// How an element's key tells its row.
struct Layout {
    bool narrow, table;
    int shift;
    Layout(std::ptrdiff_t m, std::ptrdiff_t groups, std::int32_t last_row) {
        const int high = bits_of(static_cast<std::uint64_t>(groups - 1));
        const int row = bits_of(static_cast<std::uint64_t>(last_row));
        const int position = bits_of(static_cast<std::uint64_t>(m - 1));
        table = high + row > 32 && m <= ReplayScratch::small_size && high + position <= 32;
        narrow = table || high + row <= 32;
        shift = !narrow ? 32 : table ? position : row;
    }
};

// a: the keys in their order, in memory for m of 64 bits; so is b.
template <class K>
void replay_keys(K* a, K* b, std::ptrdiff_t m, std::ptrdiff_t groups, const Layout& layout,
                 bool sorted, std::int32_t* rows, const ReplayScratch& memory,
                 const std::uint32_t* known_ties = nullptr) {
    Replay<K> job{layout.shift,
                  memory.start.get(),
                  reinterpret_cast<K*>(memory.spare.get()),
                  rows,
                  layout.table ? memory.table.get() : nullptr,
                  sorted,
                  known_ties};
    if (!sorted && 2 * groups > m) {
        // Ties are rare: first where everything goes without them.
        auto* const kept = reinterpret_cast<std::uint32_t*>(memory.spare.get());
        const auto size = static_cast<std::size_t>(groups) * sizeof *kept;
        std::memcpy(kept, memory.start.get(), size);
        emit_each(job, a, m);
        if (groups == m) return;
        std::memcpy(memory.start.get(), kept, size);
        job.sorted = true;
    }
    // scikit-learn's limit: twice the whole part of log2(m)
    replay_range(job, a, b, m, 0, 0, groups, 2 * (bits_of(static_cast<std::uint64_t>(m)) - 1));
}

// Keys in the order of the elements from those sorted, whose low bits are positions.
template <class K, class Sorted>
void unsort(const Sorted* sorted, int shift, std::ptrdiff_t m, const Layout& layout,
            const std::int32_t* rows, std::uint32_t* start, K* keys) {
    const Sorted mask = (Sorted(1) << shift) - 1;
    std::ptrdiff_t group = -1;
    start[0] = 0;
    for (std::ptrdiff_t k = 0; k < m; ++k) {
        const auto position = static_cast<std::ptrdiff_t>(sorted[k] & mask);
        group += k == 0 || sorted[k] >> shift != sorted[k - 1] >> shift;
        start[group + 1] = static_cast<std::uint32_t>(k + 1);  // unless more follow
        const auto low = static_cast<K>(layout.table ? position : rows[position]);
        keys[position] = static_cast<K>(group) << layout.shift | low;
    }
}

// How many groups before each of the sorted ones have a value that is shared; how many in all.
template <class Sorted>
std::uint32_t count_ties(const Sorted* sorted, int shift, std::ptrdiff_t m, std::uint32_t lowest,
                         const std::uint8_t* shared, std::uint32_t* before) {
    std::uint32_t count = 0;
    for (std::ptrdiff_t k = 0; k < m; ++k) {
        if (k && sorted[k] >> shift == sorted[k - 1] >> shift) continue;
        *before++ = count;
        count += shared[(static_cast<std::uint32_t>(sorted[k] >> shift) + lowest) >> 1];
    }
    *before = count;
    return count;
}

// Values that mostly differ: sorted by any sort, then replayed as far as there are ties.
template <class Sorted>
void replay_sorted(const Sorted* sorted, int shift, std::uint64_t* other, std::uint32_t lowest,
                   std::int32_t last_row, std::uint32_t* codes, std::int32_t* rows,
                   std::ptrdiff_t m, const ReplayScratch& memory, const std::uint8_t* shared) {
    const Sorted mask = (Sorted(1) << shift) - 1;
    std::ptrdiff_t groups = 1;
    for (std::ptrdiff_t k = 1; k < m; ++k) groups += sorted[k] >> shift != sorted[k - 1] >> shift;
    const bool ties =
        groups < m && m > inserted &&
        !(shared && count_ties(sorted, shift, m, lowest, shared, memory.ties.get()) == 0);
    const Layout layout(m, groups, last_row);
    if (ties) {
        if (layout.narrow)
            unsort(sorted, shift, m, layout, rows, memory.start.get(),
                   reinterpret_cast<std::uint32_t*>(other));
        else
            unsort(sorted, shift, m, layout, rows, memory.start.get(), other);
        if (layout.table)
            std::memcpy(memory.table.get(), rows, static_cast<std::size_t>(m) * sizeof *rows);
    }
    auto* const in_order = reinterpret_cast<std::int32_t*>(memory.spare.get());
    for (std::ptrdiff_t k = 0; k < m; ++k) in_order[k] = rows[sorted[k] & mask];
    std::memcpy(rows, in_order, static_cast<std::size_t>(m) * sizeof *rows);
    for (std::ptrdiff_t k = 0; k < m; ++k)
        codes[k] = static_cast<std::uint32_t>(sorted[k] >> shift) + lowest;
    if (!ties) return;
    void* const room = const_cast<Sorted*>(sorted);
    const std::uint32_t* known_ties = shared ? memory.ties.get() : nullptr;
    if (layout.narrow)
        replay_keys(reinterpret_cast<std::uint32_t*>(other), static_cast<std::uint32_t*>(room), m,
                    groups, layout, true, rows, memory, known_ties);
    else
        replay_keys(other, static_cast<std::uint64_t*>(room), m, groups, layout, true, rows, memory,
                    known_ties);
}

template <class K>
void replay_radix(std::uint32_t lowest, std::uint32_t range, int shift, std::int32_t last_row,
                  std::uint32_t* codes, std::int32_t* rows, std::ptrdiff_t m,
                  const ReplayScratch& memory, const std::uint8_t* shared) {
    auto* const keys = reinterpret_cast<K*>(memory.front.get());
    auto* const other = reinterpret_cast<K*>(memory.back.get());
    for (std::ptrdiff_t i = 0; i < m; ++i)
        keys[i] = static_cast<K>(codes[i] - lowest) << shift | static_cast<K>(i);
    const K* sorted = radix_sort(keys, other, m, shift, bits_of(range),
                                 reinterpret_cast<std::uint32_t*>(memory.spare.get()));
    replay_sorted(sorted, shift, sorted == keys ? memory.back.get() : memory.front.get(), lowest,
                  last_row, codes, rows, m, memory, shared);
}

// Codes as numbers from zero on.
struct Numbering {
    std::uint32_t lowest;
    int shift;  // 1 if no code is odd
    std::uint32_t number(std::uint32_t code) const { return (code - lowest) >> shift; }
    std::uint32_t code(std::uint32_t number) const { return (number << shift) + lowest; }
};

// With several counters of each number (size), or equal codes in a row would wait for each other.
template <int copies>
void count_apart(const std::uint32_t* codes, std::ptrdiff_t m, const Numbering as,
                 std::ptrdiff_t size, std::uint32_t* counts) {
    std::memset(counts, 0, static_cast<std::size_t>(size * copies) * sizeof *counts);
    std::ptrdiff_t i = 0;
    for (; i + copies <= m; i += copies)
        for (std::ptrdiff_t l = 0; l < copies; ++l) ++counts[l * size + as.number(codes[i + l])];
    for (; i < m; ++i) ++counts[as.number(codes[i])];
    for (std::ptrdiff_t l = 1; l < copies; ++l)
        for (std::ptrdiff_t v = 0; v < size; ++v) counts[v] += counts[l * size + v];
}

// How often codes (m) have the numbers 0, 1, ... range.
inline void count_codes(const std::uint32_t* codes, std::ptrdiff_t m, const Numbering as,
                        std::uint32_t range, std::uint32_t* counts) {
    if (range == 1) {
        std::uint32_t ones = 0;
        for (std::ptrdiff_t i = 0; i < m; ++i) ones += as.number(codes[i]);
        counts[0] = static_cast<std::uint32_t>(m) - ones;
        counts[1] = ones;
        return;
    }
    const std::ptrdiff_t size = std::ptrdiff_t(range) + 1;
    if (8 * size <= m && size <= 512)
        count_apart<8>(codes, m, as, size, counts);
    else if (size <= 1024)
        count_apart<4>(codes, m, as, size, counts);
    else
        count_apart<1>(codes, m, as, size, counts);
}

template <class K>
void key_codes(const std::uint32_t* codes, const std::int32_t* rows, std::ptrdiff_t m,
               const Numbering as, const std::uint32_t* dense, const Layout& layout, K* keys) {
    const int shift = layout.shift;
    if (!dense && !layout.table)
        for (std::ptrdiff_t i = 0; i < m; ++i)
            keys[i] = static_cast<K>(as.number(codes[i])) << shift | static_cast<K>(rows[i]);
    else
        for (std::ptrdiff_t i = 0; i < m; ++i) {
            const std::uint32_t v = as.number(codes[i]);
            keys[i] = static_cast<K>(dense ? dense[v] : v) << shift |
                      static_cast<K>(layout.table ? i : rows[i]);
        }
}

// Codes by how often each number is there. Whole vectors are written, whose rest the next ones take.
inline void fill_codes(const Numbering as, std::uint32_t range, const std::uint32_t* counts,
                       std::uint32_t* codes, const std::uint32_t* end) {
    constexpr std::uint32_t n = 16;
    for (std::uint32_t v = 0; v <= range; codes += counts[v++]) {
        std::uint32_t k = 0;
        for (; k < counts[v] && end - codes >= static_cast<std::ptrdiff_t>(k + n); k += n)
            for (std::uint32_t l = 0; l < n; ++l) codes[k + l] = as.code(v);
        for (; k < counts[v]; ++k) codes[k] = as.code(v);
    }
}

// Values of which there are few: counted, then replayed.
inline void replay_counted(const Numbering as, std::uint32_t range, std::int32_t last_row,
                           std::uint32_t* codes, std::int32_t* rows, std::ptrdiff_t m,
                           const ReplayScratch& memory) {
    auto* const counts = reinterpret_cast<std::uint32_t*>(memory.spare.get());
    auto* const dense = reinterpret_cast<std::uint32_t*>(memory.back.get());
    count_codes(codes, m, as, range, counts);
    std::ptrdiff_t groups = 0;
    std::uint32_t total = 0;
    for (std::ptrdiff_t v = 0; v <= range; ++v) {
        memory.start[groups] = total;
        dense[v] = static_cast<std::uint32_t>(groups);
        groups += counts[v] != 0;
        total += counts[v];
    }
    const Layout layout(m, groups, last_row);
    const bool gaps = groups <= range;
    auto* const narrow = reinterpret_cast<std::uint32_t*>(memory.front.get());
    if (layout.narrow)
        key_codes(codes, rows, m, as, gaps ? dense : nullptr, layout, narrow);
    else
        key_codes(codes, rows, m, as, gaps ? dense : nullptr, layout, memory.front.get());
    if (layout.table)
        std::memcpy(memory.table.get(), rows, static_cast<std::size_t>(m) * sizeof *rows);
    fill_codes(as, range, counts, codes, codes + m);
    if (layout.narrow)
        replay_keys(narrow, reinterpret_cast<std::uint32_t*>(memory.back.get()), m, groups, layout,
                    false, rows, memory);
    else
        replay_keys(memory.front.get(), memory.back.get(), m, groups, layout, false, rows, memory);
}

inline void replay_sort_block(std::uint32_t* codes, std::int32_t* rows, std::ptrdiff_t m,
                              const ReplayScratch& memory, const std::uint8_t* shared) {
    if (m < 2) return;
    std::uint32_t lowest = codes[0], highest = codes[0], all = 0;
    std::int32_t last_row = 0;
    for (std::ptrdiff_t i = 0; i < m; ++i) {
        lowest = codes[i] < lowest ? codes[i] : lowest;
        highest = codes[i] > highest ? codes[i] : highest;
        all |= codes[i];
        last_row |= rows[i];
    }
    const std::uint32_t range = highest - lowest;
    if (range == 0) return;  // sorted as they are
    const Numbering as{lowest, all & 1 ? 0 : 1};
    const std::uint32_t last = as.number(highest);
    // Counting goes through memory at random, like a gather; a radix sort of much memory does both.
    if (m <= inserted || last >= (m <= ReplayScratch::small_size ? m / 2 : m)) {
        if (m <= ranked && range < 1u << (31 - ranked_bits)) {
            auto* const keys = reinterpret_cast<std::uint32_t*>(memory.front.get());
            auto* const sorted = reinterpret_cast<std::uint32_t*>(memory.back.get());
            for (std::ptrdiff_t i = 0; i < m; ++i)
                keys[i] = (codes[i] - lowest) << ranked_bits | static_cast<std::uint32_t>(i);
            rank_sort(keys, m, sorted);
            return replay_sorted(sorted, ranked_bits, memory.front.get(), lowest, last_row, codes,
                                 rows, m, memory, shared);
        }
        const int position = bits_of(static_cast<std::uint64_t>(m - 1));
        if (bits_of(range) + position <= 32)
            return replay_radix<std::uint32_t>(lowest, range, position, last_row, codes, rows, m,
                                               memory, shared);
        return replay_radix<std::uint64_t>(lowest, range, 32, last_row, codes, rows, m, memory,
                                           shared);
    }
    replay_counted(as, last, last_row, codes, rows, m, memory);
}

inline std::ptrdiff_t replay_partition_block(std::int32_t* rows, const std::uint8_t* left,
                                             std::ptrdiff_t m, const ReplayScratch& memory) {
    auto* const a = reinterpret_cast<std::uint32_t*>(rows);
#ifdef FML_LANES
    if (m <= Lanes<std::uint32_t>::n) {
        const __m128i marks = _mm_loadu_si128((const __m128i*)left);
        const unsigned low = _mm_test_epi8_mask(marks, marks) & ((1u << m) - 1);
        return low + 1 == 1u << m ? m : settle_few(a, m, low);
    }
#endif
    auto* const high = reinterpret_cast<std::uint32_t*>(memory.spare.get());
    auto* const other = reinterpret_cast<std::uint32_t*>(memory.back.get());
    std::ptrdiff_t M = 0;
    for (std::ptrdiff_t i = 0; i < m; ++i) M += left[i] != 0;
    if (M == m) return m;
    const Marked is_low{left};
    gather_low(a, M, m, is_low, other + M);
    const std::ptrdiff_t moved = settle_low(a, M, is_low, other + M, high);
    settle_high(a, M, m, is_low, high, moved, other);
    std::memcpy(a + M, other + M, static_cast<std::size_t>(m - M) * sizeof *a);
    return M;
}

inline std::ptrdiff_t replay_missing_last_block(std::int32_t* rows, const std::uint8_t* present,
                                                std::ptrdiff_t m, const ReplayScratch& memory) {
    auto* const a = reinterpret_cast<std::uint32_t*>(rows);
    auto* const high = reinterpret_cast<std::uint32_t*>(memory.spare.get());
    auto* const low = reinterpret_cast<std::uint32_t*>(memory.back.get());
    std::ptrdiff_t M = 0;
    for (std::ptrdiff_t i = 0; i < m; ++i) M += present[i] != 0;
    const Marked is_low{present};
    const std::ptrdiff_t found = gather_low(a, M, m, is_low, low);
    if (!found) return M;
    settle_low(a, M, is_low, low, high);
    for (std::ptrdiff_t x = m - 1, k = 0; k < found; --x)
        if (present[x]) a[x] = high[k++];
    return M;
}

#include "trees/replay_few.inl.h"
