// std headers come before any target region
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/blocks.h"
#include "common/isa.h"
#include "common/scratch.h"
#include "kmedians/kmedians.h"

namespace fastml {

// Columns of a task: a cache line of float.
constexpr ptrdiff_t strip_columns = 16;

// An open interval that should hold the median of a column, the weight of the entries below it and
// at its ends, and how many were found inside: those, kept elsewhere, are all that is left to search.
template <class S> struct Bracket {
    S lo = -std::numeric_limits<S>::infinity(), hi = std::numeric_limits<S>::infinity();
    double below = 0, at_lo = 0, at_hi = 0;
    ptrdiff_t inside = 0;
    bool overflow = false;
};

// Medians are searched in double if there are weights, whose sums need it.
template <class T, class S> struct Search {
    typedef T Given;
    typedef S In;
};

template <class S> struct Reached {
    S value, next;
    double upto;
};

}  // namespace fastml

#define FML_KERNEL "kmedians/medians.inl.h"
#include "common/foreach_isa.h"

namespace fastml {
namespace {

// Beside what is kept: chunk_rows of the body, more than its padding.
constexpr ptrdiff_t slack = 256;
// A strip of so many rows stays in L2.
constexpr ptrdiff_t kept_whole = 4096;

// How many rows of a larger cluster to sample for its brackets: n / sqrt(m) stay inside.
ptrdiff_t sample_size(ptrdiff_t n) {
    return n <= kept_whole ? 0 : static_cast<ptrdiff_t>(std::pow(double(n), 0.6));
}

// Room for what is inside: twice what is expected with equal weights.
constexpr double deviations = 3.3;
ptrdiff_t room_for(ptrdiff_t n) {
    const ptrdiff_t m = sample_size(n);
    const double share = m ? std::fmin(1.0, 2 * deviations / std::sqrt(double(m))) : 1.0;
    return aligned(static_cast<ptrdiff_t>(std::ceil(n * share)) + slack) + 16;
}

// The rows of each cluster that have weight, in ascending order: those of j are order[first(j)] to
// order[end[j]].
struct Members {
    Scratch<ptrdiff_t> end;
    Scratch<std::int32_t> order;
    Members(ptrdiff_t n, ptrdiff_t k) : end(k + 1), order(n) {}
    ptrdiff_t first(ptrdiff_t j) const { return j ? end[j - 1] : 0; }
    ptrdiff_t size(ptrdiff_t j) const { return end[j] - first(j); }

    template <class T>
    void sort(const T* w, const std::int32_t* labels, ptrdiff_t n, ptrdiff_t k, double* weights) {
        std::memset(end.get(), 0, (k + 1) * sizeof(ptrdiff_t));
        std::memset(weights, 0, k * sizeof(double));
        for (ptrdiff_t i = 0; i < n; ++i) {
            if (w && !(w[i] > 0)) continue;
            ++end[labels[i]];
            weights[labels[i]] += w ? w[i] : 1;
        }
        for (ptrdiff_t j = 0, sum = 0; j <= k; ++j) {
            const ptrdiff_t count = j < k ? end[j] : 0;
            end[j] = sum;
            sum += count;
        }
        for (ptrdiff_t i = 0; i < n; ++i)
            if (!w || w[i] > 0) order[end[labels[i]]++] = static_cast<std::int32_t>(i);
    }
};

template <class S> S midpoint(S a, S b) {
    const S sum = a + b;
    return std::isfinite(sum) ? sum / 2 : a / 2 + b / 2;
}

// Half of a cluster's weight: reached from `least` on and passed above `most`, which differ by what
// rounding may do to sums of weights.
struct Half {
    double least, most;
    Half(double total, ptrdiff_t n, bool weighted) {
        const double e = std::numeric_limits<double>::epsilon();
        const double rounding = weighted ? total * static_cast<double>(n) * e : 0;
        least = total / 2 - rounding;
        most = total / 2 + rounding;
    }
};

// The median of a column, given its bracket; false if that does not hold it. kept has room for the
// padding; kept_w may be null.
template <class S>
bool median_of(const Bracket<S>& b, S* kept, S* kept_w, const Half& half, S guess, S* median) {
    if (b.overflow || (b.below > 0 && b.below >= half.least)) return false;
    double inside = kept_w ? 0 : static_cast<double>(b.inside);
    for (ptrdiff_t i = 0; kept_w && i < b.inside; ++i) inside += kept_w[i];
    const double at_hi = b.lo < b.hi ? b.at_hi : 0, upto = b.below + b.at_lo;
    // Found at the lower end, inside, or at the upper one.
    Reached<S> found{b.lo, std::numeric_limits<S>::infinity(), upto};
    const bool low = b.at_lo > 0 && upto >= half.least;
    if (!low && upto + inside < half.least) {
        *median = b.hi;
        return at_hi > 0 && upto + inside + at_hi > half.most;
    }
    if (!low || upto <= half.most) {
        const ptrdiff_t padded = aligned(b.inside);
        for (ptrdiff_t i = b.inside; i < padded; ++i) {
            kept[i] = std::numeric_limits<S>::infinity();
            if (kept_w) kept_w[i] = 0;
        }
        const double goal = std::fmin(half.least - upto, inside);
        if (!low) {
            FML_PICK(reach<S>)(kept, kept_w, padded, goal, guess, found);
            found.upto += upto;
        } else {
            for (ptrdiff_t i = 0; i < b.inside; ++i) found.next = std::fmin(found.next, kept[i]);
        }
    }
    *median = found.value;
    if (found.upto > half.most) return true;
    if (found.next == std::numeric_limits<S>::infinity() && at_hi > 0) found.next = b.hi;
    *median = midpoint(found.value, found.next);
    return found.next < std::numeric_limits<S>::infinity();
}

// Brackets for columns [p0, p1) from a sample of the rows; x and weights: padded room for it.
template <class T, class S>
void sample_brackets(const Rows<T>& X, const T* w, const std::int32_t* rows, ptrdiff_t n,
                     ptrdiff_t p0, ptrdiff_t p1, S* x, S* weights, Bracket<S>* brackets) {
    const ptrdiff_t m = sample_size(n);
    for (ptrdiff_t p = p0; p < p1; ++p) brackets[p - p0] = {};
    if (!m) return;
    const ptrdiff_t stride = n / m, padded = aligned(m);
    for (ptrdiff_t p = p0; p < p1; ++p) {
        double total = 0, squares = 0;
        for (ptrdiff_t s = 0; s < padded; ++s) {
            // Not evenly: data may have a period.
            const auto jump = static_cast<ptrdiff_t>((s * std::uint64_t{0x9E3779B97F4A7C15}) >> 40);
            const ptrdiff_t row = s < m ? rows[s * stride + jump % stride] : 0;
            const S weight = s < m ? (w ? static_cast<S>(w[row]) : S(1)) : S(0);
            x[s] =
                s < m ? static_cast<S>(X.data[row * X.d + p]) : std::numeric_limits<S>::infinity();
            if (weights) weights[s] = weight;
            total += weight;
            squares += static_cast<double>(weight) * weight;
        }
        const double margin = deviations / 2 * std::sqrt(squares);
        Reached<S> end;
        if (margin >= total / 2) continue;
        FML_PICK(reach<S>)(x, weights, padded, total / 2 - margin, S(0), end);
        brackets[p - p0].lo = end.value;
        FML_PICK(reach<S>)(x, weights, padded, total / 2 + margin, end.value, end);
        brackets[p - p0].hi = end.value;
    }
}

template <class Search, class T = typename Search::Given, class S = typename Search::In>
Status medians_in(const Rows<T>& X, const T* w, const Members& members, ptrdiff_t k, T* centers,
                  const double* weights, int n_threads) noexcept {
    ptrdiff_t room = 0;
    for (ptrdiff_t j = 0; j < k; ++j) room = std::max(room, room_for(members.size(j)));
    const ptrdiff_t width = std::min(strip_columns, X.d), strips = ceil_div(X.d, strip_columns);
    const ptrdiff_t per_thread = room * width;
    Scratch<S> values(n_threads * per_thread), their_weights(w ? n_threads * per_thread : 0);
    if (!values || !their_weights) return Status::no_memory;

    std::atomic<bool> no_memory{false};
    const auto scan = FML_PICK(bracket_block<Search>);
    const Status status = parallel(k * strips, n_threads, [&](ptrdiff_t t, int worker) {
        const ptrdiff_t j = t / strips, n = members.size(j);
        const ptrdiff_t p0 = t % strips * strip_columns, p1 = std::min(p0 + strip_columns, X.d);
        const std::int32_t* rows = members.order.get() + members.first(j);
        if (n == 0) return;
        const Half half(weights[j], n, w != nullptr);
        S* kept = values.get() + worker * per_thread;
        S* kept_w = w ? their_weights.get() + worker * per_thread : nullptr;
        Bracket<S> brackets[strip_columns];
        sample_brackets(X, w, rows, n, p0, p1, kept, kept_w, brackets);
        scan(X, w, rows, n, p0, p1, brackets, kept, kept_w, room);
        for (ptrdiff_t p = p0, at = 0; p < p1; ++p, at += room) {
            T& center = centers[j * X.d + p];
            const S guess = center;
            S median;
            if (!median_of(brackets[p - p0], kept + at, w ? kept_w + at : nullptr, half, guess,
                           &median)) {
                // One column in hundreds, unless the order of the rows conspires: all of it.
                const ptrdiff_t all_rows = aligned(n + slack);
                Scratch<S> all(all_rows), all_w(w ? all_rows : 0);
                Bracket<S> whole;
                if (!all || !all_w) {
                    no_memory = true;
                    return;
                }
                S* pw = w ? all_w.get() : nullptr;
                scan(X, w, rows, n, p, p + 1, &whole, all.get(), pw, all_rows);
                median_of(whole, all.get(), pw, half, guess, &median);
            }
            center = static_cast<T>(median);
        }
    });
    return no_memory ? Status::no_memory : status;
}

}  // namespace

template <class T>
Status medians(const Rows<T>& X, const T* w, const std::int32_t* labels, ptrdiff_t k, T* centers,
               double* weights, int n_threads) noexcept {
    Members members(X.n, k);
    if (!members.end || !members.order) return Status::no_memory;
    members.sort(w, labels, X.n, k, weights);
    n_threads = threads_for(passed_over * X.n * X.d, n_threads);
    return w ? medians_in<Search<T, double>>(X, w, members, k, centers, weights, n_threads)
             : medians_in<Search<T, T>>(X, w, members, k, centers, weights, n_threads);
}

namespace {

// The median of a cluster that has `zeros` of weight at zero besides its n entries, none of them
// zero; both arrays have room for padding.
double sparse_median(double* x, double* w, ptrdiff_t n, double zeros, const Half& half) {
    Bracket<double> bracket;
    double negative = 0, median = 0;
    for (ptrdiff_t i = 0; i < n; ++i) negative += x[i] < 0 ? w[i] : 0.0;
    if (zeros > 0) {
        const bool below = negative > 0 && negative >= half.least;
        if (!below && negative + zeros > half.most) return 0;
        if (below) {
            bracket.hi = 0;
            bracket.at_hi = zeros;
        } else {
            bracket.lo = 0;
            bracket.below = negative;
            bracket.at_lo = zeros;
        }
        ptrdiff_t inside = 0;
        for (ptrdiff_t i = 0; i < n; ++i) {
            x[inside] = x[i];
            w[inside] = w[i];
            inside += below ? x[i] < 0 : x[i] > 0;
        }
        n = inside;
    }
    bracket.inside = n;
    median_of(bracket, x, w, half, 0.0, &median);
    return median;
}

}  // namespace

template <class T>
Status sparse_medians(const Rows<T>& columns, const T* w, const std::int32_t* labels, ptrdiff_t k,
                      T* centers, double* weights, int n_threads) noexcept {
    const ptrdiff_t d = columns.n, n = columns.d;
    ptrdiff_t most = 0;
    for (ptrdiff_t p = 0; p < d; ++p)
        most = std::max<ptrdiff_t>(most, columns.indptr[p + 1] - columns.indptr[p]);
    most = aligned(most + 16 * k);  // each cluster's entries are padded
    const double work = columns.indptr[d] + static_cast<double>(k) * d;
    n_threads = threads_for(passed_over * work, n_threads);
    Members members(n, k);
    Scratch<double> values(n_threads * most), their_weights(n_threads * most);
    Scratch<ptrdiff_t> ends(n_threads * k);
    if (!members.end || !members.order || !values || !their_weights || !ends)
        return Status::no_memory;
    members.sort(w, labels, n, k, weights);

    return parallel(d, n_threads, [&](ptrdiff_t p, int worker) {
        double *x = values.get() + worker * most, *wx = their_weights.get() + worker * most;
        ptrdiff_t* end = ends.get() + worker * k;
        const std::int32_t begin = columns.indptr[p], stop = columns.indptr[p + 1];
        const auto counts = [&](std::int32_t q) {
            return columns.data[q] != 0 && (!w || w[columns.indices[q]] > 0);
        };
        std::memset(end, 0, k * sizeof(ptrdiff_t));
        for (std::int32_t q = begin; q < stop; ++q)
            if (counts(q)) ++end[labels[columns.indices[q]]];
        for (ptrdiff_t j = 0, sum = 0; j < k; ++j) {
            const ptrdiff_t count = end[j];
            end[j] = sum;
            sum += aligned(count);
        }
        for (std::int32_t q = begin; q < stop; ++q) {
            if (!counts(q)) continue;
            const std::int32_t i = columns.indices[q];
            const ptrdiff_t at = end[labels[i]]++;
            x[at] = columns.data[q];
            wx[at] = w ? static_cast<double>(w[i]) : 1.0;
        }
        for (ptrdiff_t j = 0, first = 0; j < k; ++j) {
            const ptrdiff_t stored = end[j] - first, size = members.size(j);
            double zeros = stored < size ? weights[j] : 0;
            for (ptrdiff_t i = first; stored < size && i < end[j]; ++i) zeros -= wx[i];
            if (size)
                centers[j * d + p] = static_cast<T>(sparse_median(
                    x + first, wx + first, stored, zeros, Half(weights[j], size, w != nullptr)));
            first += aligned(stored);
        }
    });
}

#define FML_INSTANTIATE(T)                                                                         \
    template Status medians(const Rows<T>&, const T*, const std::int32_t*, ptrdiff_t, T*, double*, \
                            int) noexcept;                                                         \
    template Status sparse_medians(const Rows<T>&, const T*, const std::int32_t*, ptrdiff_t, T*,   \
                                   double*, int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
