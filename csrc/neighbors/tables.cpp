#include "neighbors/tables.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/blocks.h"
#include "common/scratch.h"

namespace fastml {
namespace {

template <class T> struct Entry {
    T value;
    std::int32_t column;
    bool operator<(const Entry& other) const {
        const bool nan = std::isnan(value), other_nan = std::isnan(other.value);
        if (nan != other_nan) return other_nan;
        if (!nan && value != other.value) return value < other.value;
        return column < other.column;
    }
};

// The k smallest of a row, in order, at the head of `found`, which has room for `capacity`.
template <class T>
void select(const T* row, ptrdiff_t n, ptrdiff_t k, ptrdiff_t capacity, Entry<T>* found) {
    ptrdiff_t count = 0;
    T limit = std::numeric_limits<T>::quiet_NaN();  // until there are k: nothing is above it
    for (ptrdiff_t j = 0; j < n; ++j) {
        if (row[j] >= limit) continue;
        found[count++] = {row[j], static_cast<std::int32_t>(j)};
        if (count < capacity) continue;
        std::nth_element(found, found + k - 1, found + count);
        limit = found[k - 1].value;
        count = k;
    }
    if (k < count) std::nth_element(found, found + k - 1, found + count);
    std::sort(found, found + k);
}

}  // namespace

template <class T>
Status smallest(const T* table, ptrdiff_t rows, ptrdiff_t n, ptrdiff_t skipped, ptrdiff_t k,
                T* values, std::int64_t* columns, int n_threads) noexcept {
    const ptrdiff_t wanted = k + (skipped >= 0);
    const ptrdiff_t capacity = std::min(2 * wanted + 64, n + 1);
    n_threads = threads_for(passed_over * rows * n, n_threads);
    Scratch<Entry<T>> scratch(n_threads * capacity);
    if (!scratch) return Status::no_memory;
    const ptrdiff_t together = std::max<ptrdiff_t>(1, (1 << 18) / n);
    return parallel(ceil_div(rows, together), n_threads, [&](ptrdiff_t t, int worker) {
        Entry<T>* found = scratch.get() + worker * capacity;
        const ptrdiff_t end = std::min(rows, (t + 1) * together);
        for (ptrdiff_t i = t * together; i < end; ++i) {
            select(table + i * n, n, wanted, capacity, found);
            ptrdiff_t dropped = wanted;
            if (skipped >= 0) {
                dropped = 0;
                for (ptrdiff_t e = 0; e < wanted; ++e)
                    if (found[e].column == skipped + i) dropped = e;
            }
            for (ptrdiff_t e = 0; e < k; ++e) {
                const Entry<T>& entry = found[e + (e >= dropped)];
                values[i * k + e] = entry.value;
                columns[i * k + e] = entry.column;
            }
        }
    });
}

template Status smallest(const float*, ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t, float*,
                         std::int64_t*, int) noexcept;
template Status smallest(const double*, ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t, double*,
                         std::int64_t*, int) noexcept;

}  // namespace fastml
