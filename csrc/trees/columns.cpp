#include "trees/columns.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <new>
#include <type_traits>

#include "common/scratch.h"
#include "trees/few_values.h"

namespace fastml {
namespace {

constexpr std::uint32_t nan_key = ~std::uint32_t{0};

// Unsigned integers in the order of the floats; NaN above all.
std::uint32_t ordered(float x) {
    if (std::isnan(x)) return nan_key;
    x += 0.0f;  // -0 becomes +0
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

float from_ordered(std::uint32_t key) {
    const std::uint32_t bits = key & 0x80000000u ? key & 0x7fffffffu : ~key;
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

constexpr int digit_bits = 11, n_digits = 3, buckets = 1 << digit_bits;

// Sorts pairs (key << 32 | row) by key, rows keep their order; the result is in `a` or `b`.
std::uint64_t* sort_pairs(std::uint64_t* a, std::uint64_t* b, std::ptrdiff_t n,
                          std::uint32_t* counts) {
    std::memset(counts, 0, sizeof *counts * n_digits * buckets);
    for (std::ptrdiff_t i = 0; i < n; ++i)
        for (int digit = 0; digit < n_digits; ++digit)
            ++counts[digit * buckets + (a[i] >> (32 + digit * digit_bits)) % buckets];
    for (int digit = 0; digit < n_digits; ++digit) {
        std::uint32_t* count = counts + digit * buckets;
        const int shift = 32 + digit * digit_bits;
        if (count[(a[0] >> shift) % buckets] == n) continue;  // all alike
        std::uint32_t begin = 0;
        for (int k = 0; k < buckets; ++k) {
            const std::uint32_t size = count[k];
            count[k] = begin;
            begin += size;
        }
        for (std::ptrdiff_t i = 0; i < n; ++i) b[count[(a[i] >> shift) % buckets]++] = a[i];
        std::uint64_t* swap = a;
        a = b;
        b = swap;
    }
    return a;
}

// The code that more than half have of n rows, of which `sorted` pairs tell codes (n); or none.
std::uint32_t common_code(const std::uint64_t* sorted, std::ptrdiff_t n,
                          const std::uint32_t* codes) {
    const std::uint64_t* const middle = sorted + n / 2;
    const std::uint64_t key = *middle >> 32;
    const auto* const first = std::lower_bound(sorted, middle, key << 32);
    const auto* const end = std::lower_bound(middle, sorted + n, (key + 1) << 32);
    return 2 * (end - first) > n ? codes[static_cast<std::uint32_t>(*middle)] : no_code;
}

// Codes and values of one feature, from `sorted` pairs; returns the number of values.
std::int32_t number(const std::uint64_t* sorted, std::ptrdiff_t n, std::uint32_t* codes,
                    float* values) {
    std::uint32_t code = 0, last = nan_key;
    std::int32_t found = 0;
    for (std::ptrdiff_t p = 0; p < n; ++p) {
        const auto key = static_cast<std::uint32_t>(sorted[p] >> 32);
        if (key != last) {
            last = key;
            code = 2 * static_cast<std::uint32_t>(found);
            if (key != nan_key) {
                const float value = from_ordered(key);
                code += found && value <= values[found - 1] + near_value;
                values[found++] = value;
            }
        }
        codes[static_cast<std::uint32_t>(sorted[p])] = code;
    }
    return found;
}

int code_width(std::ptrdiff_t n_values) { return n_values < 128 ? 1 : n_values < 1 << 15 ? 2 : 4; }

template <class Code>
std::unique_ptr<char[]> narrow(const std::uint32_t* codes, std::ptrdiff_t n) {
    std::unique_ptr<char[]> bytes(new char[n * sizeof(Code) + code_slack]);
    Code* out = reinterpret_cast<Code*>(bytes.get());
    for (std::ptrdiff_t i = 0; i < n; ++i) out[i] = static_cast<Code>(codes[i]);
    return bytes;
}

// Runs task(feature, thread) for all features; an allocation that fails stops it.
template <class Task>
Status for_features(std::ptrdiff_t d, int n_threads, Task task) {
    std::atomic<bool> failed{false};
    const Status status = parallel(d, n_threads, [&](std::ptrdiff_t f, int worker) {
        try {
            if (!failed.load(std::memory_order_relaxed)) task(f, worker);
        } catch (const std::bad_alloc&) {
            failed.store(true, std::memory_order_relaxed);
        }
    });
    return status == Status::ok && failed.load() ? Status::no_memory : status;
}

}  // namespace

// What ranking m values needs; one for each thread.
struct ColumnStore::Ranking {
    explicit Ranking(std::ptrdiff_t m) : most(m), keys(m) {}
    const std::ptrdiff_t most;
    Scratch<std::uint32_t> keys;
    FewValues few;
    // For a sort, once there is one.
    struct Sort {
        explicit Sort(std::ptrdiff_t m)
            : pairs(2 * m), counts(n_digits * buckets), codes(m), values(m) {}
        Scratch<std::uint64_t> pairs;
        Scratch<std::uint32_t> counts, codes;
        Scratch<float> values;
        explicit operator bool() const { return pairs && counts && codes && values; }
    };
    std::unique_ptr<Sort> sort;
    explicit operator bool() const { return static_cast<bool>(keys); }

    // One for a thread that has none yet.
    template <class T> static T& of(std::unique_ptr<T>& place, std::ptrdiff_t m) {
        if (!place) place = std::make_unique<T>(m);
        if (!*place) throw std::bad_alloc();
        return *place;
    }
    void set(std::ptrdiff_t i, float x) const { keys[i] = ordered(x); }
};

void ColumnStore::reserve(std::ptrdiff_t d) {
    ranked_.resize(d);
    codes_.resize(d);
    values_.resize(d);
    missing_.reset(new bool[d]);
}

// Codes of the m keys of the ranking.
void ColumnStore::rank_feature(std::ptrdiff_t f, Ranking& at, std::ptrdiff_t m) {
    if (!rank_few(f, at, m)) rank_by_sort(f, at, m);
}

bool ColumnStore::rank_few(std::ptrdiff_t f, Ranking& at, std::ptrdiff_t m) {
    std::unique_ptr<char[]> bytes(new char[m + code_slack]);
    auto* const codes = reinterpret_cast<std::uint8_t*>(bytes.get());
    FewValues& few = at.few;
    if (!few.find(at.keys.get(), m, codes)) return false;
    std::uint8_t order[FewValues::most], code[FewValues::most];
    few.sort(order);
    missing_[f] = few.met[order[few.count - 1]] == nan_key;
    const std::int32_t n_values = few.count - missing_[f];
    values_[f].reset(new float[n_values + 1]);
    float* const values = values_[f].get();
    for (std::int32_t r = 0; r < few.count; ++r) {
        code[order[r]] = static_cast<std::uint8_t>(2 * r);
        if (r == n_values) break;  // NaN
        values[r] = from_ordered(few.met[order[r]]);
        code[order[r]] += r && values[r] <= values[r - 1] + near_value;
    }
    const int common = FewValues::common(codes, m);
    for (std::ptrdiff_t i = 0; i < m; ++i) codes[i] = code[codes[i]];
    codes_[f] = std::move(bytes);
    ranked_[f] = {
        codes, 1, values, n_values, missing_[f], nullptr, common < 0 ? no_code : code[common]};
    return true;
}

void ColumnStore::rank_by_sort(std::ptrdiff_t f, Ranking& ranking, std::ptrdiff_t m) {
    const Ranking::Sort& at = Ranking::of(ranking.sort, ranking.most);
    for (std::ptrdiff_t i = 0; i < m; ++i)
        at.pairs[i] = std::uint64_t{ranking.keys[i]} << 32 | static_cast<std::uint64_t>(i);
    const std::uint64_t* sorted =
        sort_pairs(at.pairs.get(), at.pairs.get() + m, m, at.counts.get());
    missing_[f] = static_cast<std::uint32_t>(sorted[m - 1] >> 32) == nan_key;
    const std::int32_t n_values = number(sorted, m, at.codes.get(), at.values.get());
    const int width = code_width(n_values);
    codes_[f] = width == 1   ? narrow<std::uint8_t>(at.codes.get(), m)
                : width == 2 ? narrow<std::uint16_t>(at.codes.get(), m)
                             : narrow<std::uint32_t>(at.codes.get(), m);
    values_[f].reset(new float[n_values + 1]);
    std::copy_n(at.values.get(), n_values, values_[f].get());
    ranked_[f] = {codes_[f].get(),
                  width,
                  values_[f].get(),
                  n_values,
                  missing_[f],
                  nullptr,
                  common_code(sorted, m, at.codes.get())};
}

// Fewer of them in a word would take more memory than their codes.
constexpr std::int32_t least_bits = 8;

// Makes Columns::bits.
Status ColumnStore::pack_bits(int n_threads) {
    bit_.clear();
    std::vector<const Column*> packed;
    for (const Column& column : ranked_) {
        const bool fits = column.has_two_values() && column.apart(0, 3);
        bit_.push_back(fits ? static_cast<std::int32_t>(packed.size()) : -1);
        if (fits) packed.push_back(&column);
    }
    const auto count = static_cast<std::ptrdiff_t>(packed.size());
    if (count < least_bits) return Status::ok;
    const std::ptrdiff_t n = columns_.n, words = (count + 63) / 64;
    bits_.reset(new std::uint64_t[words * n]);
    bytes_ += words * n * static_cast<std::ptrdiff_t>(sizeof(std::uint64_t));
    columns_.bits = bits_.get();
    columns_.bit = bit_.data();
    constexpr std::ptrdiff_t block = 1 << 11;  // words in the first cache
    const std::ptrdiff_t blocks = (n + block - 1) / block;
    return parallel(words * blocks, n_threads, [&](std::ptrdiff_t b, int) {
        const std::ptrdiff_t word = b / blocks, begin = b % blocks * block;
        const std::ptrdiff_t rows = std::min(block, n - begin);
        std::uint64_t* const out = bits_.get() + word * n + begin;
        std::fill_n(out, rows, std::uint64_t{0});
        for (std::ptrdiff_t k = 64 * word; k < std::min(count, 64 * (word + 1)); ++k) {
            const auto* codes = static_cast<const std::uint8_t*>(packed[k]->codes) + begin;
            for (std::ptrdiff_t i = 0; i < rows; ++i)
                out[i] |= static_cast<std::uint64_t>(codes[i] >> 1) << (k % 64);
        }
    });
}

Status ColumnStore::rank(const float* X, std::ptrdiff_t row_stride, std::ptrdiff_t column_stride,
                         std::ptrdiff_t n, std::ptrdiff_t d, int n_threads) noexcept try {
    reserve(d);
    std::vector<std::unique_ptr<Ranking>> rankings(n_threads);
    const Status status = for_features(d, n_threads, [&](std::ptrdiff_t f, int worker) {
        Ranking& at = Ranking::of(rankings[worker], n);
        const float* x = X + f * column_stride;
        for (std::ptrdiff_t i = 0; i < n; ++i) at.set(i, x[i * row_stride]);
        rank_feature(f, at, n);
    });
    bytes_ = 0;
    for (const Column& column : ranked_) bytes_ += n * column.width + 4 * column.n_values;
    columns_ = {n,    d,     ranked_.data(), nullptr, missing_.get(), nullptr,
                true, false, nullptr,        nullptr, nullptr};
    return status == Status::ok ? pack_bits(n_threads) : status;
} catch (const std::bad_alloc&) {
    return Status::no_memory;
}

// Sparse features are kept row by row, too, as long as that takes no more than this, or than what
// their entries take: a small node then reads its own rows, and no others.
constexpr std::ptrdiff_t cheap_bytes = std::ptrdiff_t{1} << 26;

void ColumnStore::spread(std::ptrdiff_t f, std::ptrdiff_t n) {
    const Entries& entries = entries_[f];
    Column& column = ranked_[f];
    column.with_codes([&](const auto* codes) {
        using Code = std::remove_cv_t<std::remove_pointer_t<decltype(codes)>>;
        std::unique_ptr<char[]> bytes(new char[n * sizeof(Code) + code_slack]);
        Code* out = reinterpret_cast<Code*>(bytes.get());
        std::fill_n(out, n, static_cast<Code>(entries.zero));
        for (std::ptrdiff_t k = 0; k < entries.count; ++k) out[entries.rows[k]] = codes[k];
        codes_[f] = std::move(bytes);
    });
    column.codes = codes_[f].get();
}

Status ColumnStore::sparse(const float* data, const std::int32_t* indices,
                           const std::int32_t* indptr, std::ptrdiff_t n, std::ptrdiff_t d,
                           bool ranks, int n_threads) noexcept try {
    entries_.resize(d);
    std::ptrdiff_t most = 0, by_row = 0;
    for (std::ptrdiff_t f = 0; f < d; ++f) {
        const std::ptrdiff_t count = indptr[f + 1] - indptr[f];
        entries_[f] = {indices + indptr[f], data + indptr[f], count, 0};
        most = std::max(most, count);
        by_row += n * (ranks ? code_width(count + 1) : 4);
    }
    reserve(d);
    std::fill_n(missing_.get(), d, false);
    const std::ptrdiff_t nnz = indptr[d];
    columns_ = {n,     d,     nullptr, nullptr, missing_.get(), entries_.data(),
                false, false, nullptr, nullptr, nullptr};
    columns_.mostly_zero = nnz < n * d / 32;
    columns_.by_row = by_row <= std::max(cheap_bytes, 8 * nnz) && (ranks || !columns_.mostly_zero);
    bytes_ = ranks || !columns_.by_row ? 0 : by_row;
    if (!ranks) return columns_.by_row ? spread_raw(n_threads) : Status::ok;
    std::vector<std::unique_ptr<Ranking>> rankings(n_threads);
    const Status status = for_features(d, n_threads, [&](std::ptrdiff_t f, int worker) {
        Ranking& at = Ranking::of(rankings[worker], most + 1);
        Entries& entries = entries_[f];
        for (std::ptrdiff_t k = 0; k < entries.count; ++k) at.set(k, entries.values[k]);
        at.set(entries.count, 0.0f);  // which may, or may not, be a value of some row
        rank_feature(f, at, entries.count + 1);
        entries.zero = ranked_[f].code(static_cast<std::int32_t>(entries.count));
        ranked_[f].common = entries.zero;
        if (columns_.by_row) spread(f, n);
    });
    for (std::ptrdiff_t f = 0; f < d; ++f)
        bytes_ += (columns_.by_row ? n : entries_[f].count + 1) * ranked_[f].width +
                  4 * ranked_[f].n_values;
    columns_.ranked = ranked_.data();
    return status == Status::ok && columns_.by_row ? pack_bits(n_threads) : status;
} catch (const std::bad_alloc&) {
    return Status::no_memory;
}

Status ColumnStore::spread_raw(int n_threads) {
    const std::ptrdiff_t n = columns_.n;
    raw_.reset(new float[n * columns_.d]);
    columns_.raw = raw_.get();
    return for_features(columns_.d, n_threads, [&](std::ptrdiff_t f, int) {
        const Entries& entries = entries_[f];
        std::fill_n(raw_.get() + f * n, n, 0.0f);
        for (std::ptrdiff_t k = 0; k < entries.count; ++k)
            raw_[f * n + entries.rows[k]] = entries.values[k];
    });
}

Status ColumnStore::take(const Columns& all, const std::int64_t* rows, std::ptrdiff_t m,
                         int n_threads) noexcept try {
    reserve(all.d);
    shared_.resize(all.d);
    const Status status = for_features(all.d, n_threads, [&](std::ptrdiff_t f, int) {
        Column& column = ranked_[f] = all.ranked[f];
        missing_[f] = column.missing;
        column.with_codes([&](const auto* codes) {
            using Code = std::remove_cv_t<std::remove_pointer_t<decltype(codes)>>;
            codes_[f].reset(new char[m * sizeof(Code) + code_slack]);
            Code* out = reinterpret_cast<Code*>(codes_[f].get());
            for (std::ptrdiff_t i = 0; i < m; ++i) out[i] = codes[rows[i]];
            // how many rows have the value: zero, one or more of them
            shared_[f].reset(new std::uint8_t[column.n_values + 1]());
            std::uint8_t* shared = shared_[f].get();
            for (std::ptrdiff_t i = 0; i < all.n; ++i) {
                std::uint8_t& count = shared[codes[i] >> 1];
                count = static_cast<std::uint8_t>(count < 2 ? count + 1 : 2);
            }
            for (std::int32_t r = 0; r < column.n_values; ++r) shared[r] >>= 1;
        });
        column.codes = codes_[f].get();
        column.shared = shared_[f].get();
    });
    bytes_ = 0;
    for (const Column& column : ranked_) bytes_ += m * column.width;
    columns_ = {m,    all.d, ranked_.data(), nullptr, missing_.get(), nullptr,
                true, false, nullptr,        nullptr, nullptr};
    return status == Status::ok ? pack_bits(n_threads) : status;
} catch (const std::bad_alloc&) {
    return Status::no_memory;
}

Status ColumnStore::copy(const float* X, std::ptrdiff_t row_stride, std::ptrdiff_t column_stride,
                         std::ptrdiff_t n, std::ptrdiff_t d, int n_threads) noexcept try {
    raw_.reset(new float[n * d]);
    missing_.reset(new bool[d]);
    // A few features at a time: rows in C order are read a cache line at a time.
    constexpr std::ptrdiff_t group = 16;
    const Status status =
        for_features((d + group - 1) / group, n_threads, [&](std::ptrdiff_t g, int) {
            const std::ptrdiff_t begin = g * group, end = std::min(d, begin + group);
            for (std::ptrdiff_t f = begin; f < end; ++f) missing_[f] = false;
            for (std::ptrdiff_t i = 0; i < n; ++i)
                for (std::ptrdiff_t f = begin; f < end; ++f) {
                    const float x = X[i * row_stride + f * column_stride];
                    raw_[f * n + i] = x;
                    missing_[f] |= std::isnan(x);
                }
        });
    bytes_ = n * d * static_cast<std::ptrdiff_t>(sizeof(float));
    columns_ = {n,    d,     nullptr, raw_.get(), missing_.get(), nullptr,
                true, false, nullptr, nullptr,    nullptr};
    return status;
} catch (const std::bad_alloc&) {
    return Status::no_memory;
}

}  // namespace fastml
