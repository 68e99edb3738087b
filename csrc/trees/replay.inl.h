#include "common/simd.inl.h"
#include "trees/replay_pass.inl.h"

// Elements are keys: the group, which is the rank of the value among the distinct ones, above
// `shift` bits that tell the row. Groups have no gaps, and start[g] is where group g goes in the
// end: so the bounds of every partition are known before it is made.
template <class K> struct Replay {
    int shift;
    std::uint32_t* start;
    K* high;                    // elements that a pass moves right, half as many as there are
    std::int32_t* out;          // rows in the order wanted
    const std::int32_t* table;  // row by low bits, or null where these are the row
    bool sorted;                // out is right except among ties
    const std::uint32_t* ties;  // how many groups before each are ties that matter, or null: all

    std::ptrdiff_t group(K key) const { return static_cast<std::ptrdiff_t>(key >> shift); }
    // Whether nothing is left to do for n elements of groups [begin, end).
    bool is_done(std::ptrdiff_t begin, std::ptrdiff_t end, std::ptrdiff_t n) const {
        return sorted && (ties ? ties[begin] == ties[end] : end - begin == n);
    }
    K key(std::ptrdiff_t group) const { return static_cast<K>(group) << shift; }
    std::int32_t row(K key) const {
        const auto bits = static_cast<std::int32_t>(key & ((K(1) << shift) - 1));
        return table ? table[bits] : bits;
    }
};

// Below this insertion sort takes over: ties stay in the order they are in.
constexpr std::ptrdiff_t inserted = 15;
// Ties of a pivot that are followed one by one, as long as they are rare.
constexpr std::ptrdiff_t few_equal = 64;

template <class K>
void emit_all(const Replay<K>& job, const K* a, std::ptrdiff_t n, std::ptrdiff_t at) {
    std::int32_t* out = job.out + at;
    const K mask = (K(1) << job.shift) - 1;
    const std::int32_t* table = job.table;
#ifdef FML_LANES
    using L = Lanes<K>;
    const auto low = L::fill(mask);
    for (std::ptrdiff_t i = 0; i < n; i += L::n) {
        const auto there = first<K>(n - i < L::n ? n - i : L::n);
        L::store_rows(out + i, L::both(L::load(a + i), low), table, there);
    }
#else
    if (table)
        for (std::ptrdiff_t i = 0; i < n; ++i) out[i] = table[a[i] & mask];
    else
        for (std::ptrdiff_t i = 0; i < n; ++i) out[i] = static_cast<std::int32_t>(a[i] & mask);
#endif
}

// Every element to its group, in the order they are in.
template <class K> void emit_each(const Replay<K>& job, const K* a, std::ptrdiff_t n) {
    for (std::ptrdiff_t i = 0; i < n; ++i) job.out[job.start[job.group(a[i])]++] = job.row(a[i]);
}

template <class K>
void sift_down(const Replay<K>& job, K* a, std::ptrdiff_t root, std::ptrdiff_t end) {
    for (;;) {
        const std::ptrdiff_t child = 2 * root + 1;
        std::ptrdiff_t largest = root;
        if (child < end && job.group(a[largest]) < job.group(a[child])) largest = child;
        if (child + 1 < end && job.group(a[largest]) < job.group(a[child + 1])) largest = child + 1;
        if (largest == root) return;
        const K moved = a[root];
        a[root] = a[largest];
        a[largest] = moved;
        root = largest;
    }
}

template <class K> void heap_sort(const Replay<K>& job, K* a, std::ptrdiff_t n) {
    for (std::ptrdiff_t root = (n - 2) / 2; root >= 0; --root) sift_down(job, a, root, n);
    for (std::ptrdiff_t end = n - 1; end > 0; --end) {
        const K moved = a[0];
        a[0] = a[end];
        a[end] = moved;
        sift_down(job, a, 0, end);
    }
}

// The elements equal to the pivot are a queue, whose front goes to its back whenever one that is
// less passes. As an array, equal[i] is what the queue takes in when the i-th low element is met:
// itself, or equal[front], and in the end the queue is equal[less..M).
#ifdef FML_LANES
// For a vector of elements from the i-th on, of which `below` are less than the pivot.
template <class K>
FML_INLINE typename Lanes<K>::V queue_up(typename Lanes<K>::V v, typename Lanes<K>::Mask below,
                                         std::ptrdiff_t passed, const K* equal,
                                         std::ptrdiff_t front, std::ptrdiff_t i) {
    using L = Lanes<K>;
    v = L::spread(v, L::load(equal + front), below);
    if (front + passed > i) {
        // What some take in comes from this very vector: lane `from`, and so on from there.
        const auto lanes = L::numbers();
        auto from = L::spread(lanes, L::add(lanes, L::fill(static_cast<K>(front - i))), below);
        from = L::choose(L::below(from, L::fill(static_cast<K>(L::n))), lanes, from);
        FML_UNROLL
        for (int hops = 1; hops < L::n; hops *= 2) from = L::pick(from, from);
        v = L::pick(from, v);
    }
    return v;
}
#endif

// For few equal ones, at the places `at` among M: turns the queue once for each of them.
template <class K>
void queue_few(const K* equal, const std::uint32_t* at, std::ptrdiff_t count, std::ptrdiff_t M,
               K* queue) {
    std::ptrdiff_t front = 0, next = 0;  // a ring, full up to j
    for (std::ptrdiff_t j = 0; j < count; ++j) {
        if (j) front = (front + at[j] - next) % j;
        // the back of the ring is before its front
        for (std::ptrdiff_t k = j; k > front; --k) queue[k] = queue[k - 1];
        queue[front++] = equal[j];
        next = at[j] + 1;
    }
    front = (front + M - next) % count;
    K turned[few_equal];
    for (std::ptrdiff_t j = 0; j < count; ++j) turned[j] = queue[(front + j) % count];
    for (std::ptrdiff_t j = 0; j < count; ++j) queue[j] = turned[j];
}

// Of a[0..M), with high elements replaced as in settle_low, those below `least` come to the front
// of a in order. The others, equal to the pivot, are left in equal[less..M) in queue order.
// Returns the number of high ones.
template <class K>
std::ptrdiff_t deal_low(K* a, std::ptrdiff_t M, [[maybe_unused]] std::ptrdiff_t less,
                        const UpTo<K>& is_low, K least, const K* low, K* high, K* equal) {
    std::ptrdiff_t count = 0, front = 0, i = 0;
#ifdef FML_LANES
    using L = Lanes<K>;
    const auto wide = L::fill(least);
    const std::ptrdiff_t ties = M - less;
    const bool few = ties <= few_equal && 16 * ties <= M;
    std::uint32_t at[few_equal + L::n];
    K met[few_equal + L::n];
    std::ptrdiff_t n_met = 0;
    for (; i < M; i += L::n) {
        const std::ptrdiff_t width = M - i < L::n ? M - i : L::n;
        const auto there = first<K>(width);
        auto v = width < L::n ? L::load(a + i, there) : L::load(a + i);
        const auto out = static_cast<typename L::Mask>(~is_low.up(i, v) & there);
        L::store(high + count, L::squeeze(v, out));
        v = L::spread(v, L::load(low + count), out);
        count += count_bits(out);
        const auto below = static_cast<typename L::Mask>(L::below(v, wide) & there);
        const std::ptrdiff_t passed = count_bits(below);
        const auto kept = L::squeeze(v, below);
        if (few) {
            unsigned same = static_cast<unsigned>(~below & there);
            if (same) {
                L::store(met + n_met, L::squeeze(v, static_cast<typename L::Mask>(same)));
                for (; same; same &= same - 1)
                    at[n_met++] = static_cast<std::uint32_t>(i + __builtin_ctz(same));
            }
        } else {
            L::store(equal + i, queue_up(v, below, passed, equal, front, i), there);
        }
        if (width < L::n)
            L::store(a + front, kept, first<K>(passed));
        else
            L::store(a + front, kept);
        front += passed;
    }
    if (few) queue_few(met, at, ties, M, equal + less);
#else
    for (; i < M; ++i) {
        K v = a[i];
        const bool out = !is_low(i, v);
        high[count] = v;
        v = out ? low[count] : v;
        count += out;
        const bool below = v < least;
        a[front] = v;
        equal[i] = below ? equal[front] : v;
        front += below;
    }
#endif
    return count;
}

// Leaves in job.out the rows of a[0..n), which are groups [begin, end), as introsort would with so
// many levels left before it turns to heap sort. They go to job.out from `at` on. b: as much room.
template <class K>
void replay_range(const Replay<K>& job, K* a, K* b, std::ptrdiff_t n, std::ptrdiff_t at,
                  std::ptrdiff_t begin, std::ptrdiff_t end, int levels) {
    for (;;) {
        if (job.is_done(begin, end, n)) return;
        if (n <= inserted) return emit_each(job, a, n);
        if (levels-- <= 0) heap_sort(job, a, n);  // which stirs equal ones too
        if (levels < 0 || end - begin == 1) return emit_all(job, a, n, at);
        const K x = a[0], y = a[n / 2], z = a[n - 1], xy = x < y ? x : y, yx = x < y ? y : x;
        const std::ptrdiff_t pivot = job.group(z < xy ? xy : z < yx ? z : yx);
        const std::ptrdiff_t less = job.start[pivot] - at;
        const std::ptrdiff_t M = pivot + 1 < end ? job.start[pivot + 1] - at : n;
        const UpTo<K> is_low{static_cast<K>(job.key(pivot + 1) - 1)};
        if (M < n) gather_low(a, M, n, is_low, b + M);
        const std::ptrdiff_t moved =
            deal_low(a, M, less, is_low, job.key(pivot), b + M, job.high, b);
        emit_all(job, b + less, M - less, at + less);
        if (M < n && !job.is_done(pivot + 1, end, n - M))
            settle_high(a, M, n, is_low, job.high, moved, b);
        replay_range(job, a, b, less, at, begin, pivot, levels);
        K* const freed = a + M;
        a = b + M;
        b = freed;
        n -= M;
        at += M;
        begin = pivot + 1;
    }
}
