#include "trees/columns.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <new>

#include "common/scratch.h"

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

template <class Code>
std::unique_ptr<char[]> narrow(const std::uint32_t* codes, std::ptrdiff_t n) {
    std::unique_ptr<char[]> bytes(new char[n * sizeof(Code)]);
    Code* out = reinterpret_cast<Code*>(bytes.get());
    for (std::ptrdiff_t i = 0; i < n; ++i) out[i] = static_cast<Code>(codes[i]);
    return bytes;
}

// What ranking one feature needs; one for each thread.
struct Ranking {
    explicit Ranking(std::ptrdiff_t n)
        : pairs(2 * n), counts(n_digits * buckets), codes(n), values(n) {}
    Scratch<std::uint64_t> pairs;
    Scratch<std::uint32_t> counts, codes;
    Scratch<float> values;
    explicit operator bool() const { return pairs && counts && codes && values; }
};

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

Status ColumnStore::rank(const float* X, std::ptrdiff_t row_stride, std::ptrdiff_t column_stride,
                         std::ptrdiff_t n, std::ptrdiff_t d, int n_threads) noexcept try {
    ranked_.resize(d);
    codes_.resize(d);
    values_.resize(d);
    missing_.reset(new bool[d]);
    std::vector<std::unique_ptr<Ranking>> rankings(n_threads);
    const Status status = for_features(d, n_threads, [&](std::ptrdiff_t f, int worker) {
        if (!rankings[worker]) rankings[worker] = std::make_unique<Ranking>(n);
        const Ranking& at = *rankings[worker];
        if (!at) throw std::bad_alloc();
        const float* x = X + f * column_stride;
        for (std::ptrdiff_t i = 0; i < n; ++i)
            at.pairs[i] = static_cast<std::uint64_t>(ordered(x[i * row_stride])) << 32 |
                          static_cast<std::uint64_t>(i);
        const std::uint64_t* sorted =
            sort_pairs(at.pairs.get(), at.pairs.get() + n, n, at.counts.get());
        const bool missing = static_cast<std::uint32_t>(sorted[n - 1] >> 32) == nan_key;
        const std::int32_t n_values = number(sorted, n, at.codes.get(), at.values.get());
        const int width = n_values < 128 ? 1 : n_values < 1 << 15 ? 2 : 4;
        codes_[f] = width == 1   ? narrow<std::uint8_t>(at.codes.get(), n)
                    : width == 2 ? narrow<std::uint16_t>(at.codes.get(), n)
                                 : narrow<std::uint32_t>(at.codes.get(), n);
        values_[f].reset(new float[n_values + 1]);
        std::copy_n(at.values.get(), n_values, values_[f].get());
        ranked_[f] = {codes_[f].get(), width, values_[f].get(), n_values, missing};
        missing_[f] = missing;
    });
    bytes_ = 0;
    for (const Column& column : ranked_) bytes_ += n * column.width + 4 * column.n_values;
    columns_ = {n, d, ranked_.data(), nullptr, missing_.get()};
    return status;
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
    columns_ = {n, d, nullptr, raw_.get(), missing_.get()};
    return status;
} catch (const std::bad_alloc&) {
    return Status::no_memory;
}

}  // namespace fastml
