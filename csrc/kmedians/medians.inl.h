#include "common/simd.inl.h"

// What a value parts a column into: the weight up to it, the largest entry of that part and the
// least of the rest (infinite if there is none).
template <class S> struct Parts {
    double upto;
    S last, first;
};

// Entries are padded to whole vectors: with +infinity, of weight zero. w: null for ones.
template <class S>
Parts<S> part(const S* x, const S* w, std::ptrdiff_t n, S pivot) {
    using Vec = typename Simd<S>::Vec;
    constexpr int lanes = Simd<S>::lanes;
    constexpr S inf = std::numeric_limits<S>::infinity();
    const Vec one = broadcast<Vec>(S(1)), zero = broadcast<Vec>(S(0)), at = broadcast<Vec>(pivot);
    Vec last = broadcast<Vec>(-inf), first = broadcast<Vec>(inf);
    double upto = 0;
    constexpr std::ptrdiff_t strip = 1 << 16;  // few enough for a float to count
    for (std::ptrdiff_t begin = 0; begin < n; begin += strip) {
        const std::ptrdiff_t end = n - begin < strip ? n : begin + strip;
        Vec sum = zero;
        for (std::ptrdiff_t i = begin; i < end; i += lanes) {
            const Vec v = load<Vec>(x + i);
            const auto under = at >= v;
            sum += select(under, w ? load<Vec>(w + i) : one, zero);
            last = maximum<S>(last, select(under, v, last));
            first = minimum<S>(first, select(under, first, v));
        }
        for (int l = 0; l < lanes; ++l) upto += sum[l];
    }
    Parts<S> parts{upto, -inf, inf};
    for (int l = 0; l < lanes; ++l) {
        parts.last = last[l] > parts.last ? last[l] : parts.last;
        parts.first = first[l] < parts.first ? first[l] : parts.first;
    }
    return parts;
}

// Floating-point numbers as integers in the same order, and back.
template <class Int> Int ordered(Int bits) {
    return bits >= 0 ? bits : std::numeric_limits<Int>::min() - bits;
}
template <class S> S halfway(S a, S b) {
    typename Simd<S>::Int i, j;
    std::memcpy(&i, &a, sizeof i);
    std::memcpy(&j, &b, sizeof j);
    i = ordered(i);
    j = ordered(j);
    i = ordered((i & j) + ((i ^ j) >> 1));
    std::memcpy(&a, &i, sizeof a);
    return a;
}

// The least entry up to which the weight reaches `goal`, that weight, and the entry after. Entries
// are finite, padded as above, and weigh that much at least; n >= 1 without the padding.
//
// No entry is moved. Vectors count what is below a pivot; the answer lies in [low, high], both
// entries, until they are one. Pivots are interpolated, as if entries were evenly spread, and every
// third is in the middle of what floating point has to offer: at worst some hundred passes, usually
// eight.
template <class S>
void reach(const S* x, const S* w, std::ptrdiff_t padded, double goal, S guess, Reached<S>& found) {
    constexpr S inf = std::numeric_limits<S>::infinity();
    const Parts<S> all = part(x, w, padded, std::numeric_limits<S>::max());
    S low = part(x, w, padded, -inf).first;
    double below = 0;
    found = {all.last, inf, all.upto};
    for (int pass = 0; low < found.value; ++pass) {
        const S high = found.value;
        S pivot = guess;
        if (pass > 0 && pass % 3 < 2) {
            const double share = (goal - below) / (found.upto - below);
            pivot = static_cast<S>(low + (high - low) * share);
        }
        if ((pass > 0 && pass % 3 == 2) || !(pivot >= low && pivot < high))
            pivot = halfway(low, high);
        const Parts<S> parts = part(x, w, padded, pivot);
        if (parts.upto >= goal) {
            found = {parts.last, parts.first, parts.upto};
        } else {
            low = parts.first;
            below = parts.upto;
        }
    }
}

// Columns of a cluster are taken from its rows a chunk at a time, so that both stay in L1.
constexpr std::ptrdiff_t chunk_rows = 256;

// Adds a chunk of n entries of a column to what its bracket has seen. kept_w is null if there are no
// weights. `room` counts chunk_rows of slack, so that none need be counted before it is written.
template <class S>
void narrow(const S* x, const S* w, std::ptrdiff_t n, Bracket<S>& bracket, S* kept, S* kept_w,
            std::ptrdiff_t room) {
    const S lo = bracket.lo, hi = bracket.hi;
    constexpr S inf = std::numeric_limits<S>::infinity();
    const bool whole = lo == -inf && hi == inf;
    if (!whole) {
        S below = 0, at_lo = 0, at_hi = 0;  // of a chunk, counts are exact in float
#pragma omp simd reduction(+ : below, at_lo, at_hi)
        for (std::ptrdiff_t r = 0; r < n; ++r) {
            below += x[r] < lo ? w[r] : S(0);
            at_lo += x[r] == lo ? w[r] : S(0);
            at_hi += x[r] == hi ? w[r] : S(0);
        }
        bracket.below += below;
        bracket.at_lo += at_lo;
        bracket.at_hi += at_hi;
    }
    if (!(lo < hi) || bracket.overflow) return;
    std::ptrdiff_t inside = bracket.inside;
    bracket.overflow = inside + chunk_rows > room;
    if (bracket.overflow) return;
    if (whole) {
        std::memcpy(kept + inside, x, n * sizeof(S));
        if (kept_w) std::memcpy(kept_w + inside, w, n * sizeof(S));
        bracket.inside += n;
        return;
    }
    for (std::ptrdiff_t r = 0; r < n; ++r) {  // without a branch that no processor could foretell
        kept[inside] = x[r];
        if (kept_w) kept_w[inside] = w[r];
        inside += (x[r] > lo) & (x[r] < hi);
    }
    bracket.inside = inside;
}

// Columns [p0, p1), at most strip_columns of them, of the rows listed. kept: columns of `room`.
template <class Search, class T = typename Search::Given, class S = typename Search::In>
void bracket_block(const Rows<T>& X, const T* w, const std::int32_t* rows, std::ptrdiff_t n_rows,
                   std::ptrdiff_t p0, std::ptrdiff_t p1, Bracket<S>* brackets, S* kept, S* kept_w,
                   std::ptrdiff_t room) {
    // Not a power of two: columns would drive each other out of the cache.
    constexpr std::ptrdiff_t stride = chunk_rows + 16;
    S columns[strip_columns * stride], weights[chunk_rows];
    for (std::ptrdiff_t begin = 0; begin < n_rows; begin += chunk_rows) {
        const std::ptrdiff_t n = n_rows - begin < chunk_rows ? n_rows - begin : chunk_rows;
        for (std::ptrdiff_t r = 0; r < n; ++r) {
            const std::ptrdiff_t row = rows[begin + r];
            weights[r] = w ? static_cast<S>(w[row]) : S(1);
            const T* x = X.data + row * X.d;
            for (std::ptrdiff_t p = p0; p < p1; ++p) columns[(p - p0) * stride + r] = x[p];
        }
        for (std::ptrdiff_t p = 0; p < p1 - p0; ++p)
            narrow(columns + p * stride, weights, n, brackets[p], kept + p * room,
                   kept_w ? kept_w + p * room : nullptr, room);
    }
}
