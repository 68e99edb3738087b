#pragma once
// Orders as scikit-learn's splitters leave them: among equal values they decide which row is added
// to a sum first, and with it the sum's last bits.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace fastml {

inline void replay_heap(std::uint32_t* codes, std::int32_t* rows, std::ptrdiff_t m) {
    auto swap = [&](std::ptrdiff_t a, std::ptrdiff_t b) {
        std::swap(codes[a], codes[b]);
        std::swap(rows[a], rows[b]);
    };
    auto sift = [&](std::ptrdiff_t root, std::ptrdiff_t end) {
        for (;;) {
            std::ptrdiff_t largest = root, child = 2 * root + 1;
            if (child < end && codes[largest] < codes[child]) largest = child;
            if (child + 1 < end && codes[largest] < codes[child + 1]) largest = child + 1;
            if (largest == root) return;
            swap(root, largest);
            root = largest;
        }
    };
    for (std::ptrdiff_t start = (m - 2) / 2; start >= 0; --start) sift(start, m);
    for (std::ptrdiff_t end = m - 1; end > 0; --end) {
        swap(0, end);
        sift(0, end);
    }
}

inline void replay_sort_to(std::uint32_t* codes, std::int32_t* rows, std::ptrdiff_t m, int depth) {
    while (m > 15) {
        if (depth-- <= 0) return replay_heap(codes, rows, m);
        const std::uint32_t a = codes[0], b = codes[m / 2], c = codes[m - 1];
        const std::uint32_t pivot = a < b ? (b < c ? b : a < c ? c : a) : b < c ? (a < c ? a : c) : b;
        std::ptrdiff_t i = 0, low = 0, high = m;
        while (i < high) {
            const std::uint32_t code = codes[i];
            if (code < pivot) {
                std::swap(codes[i], codes[low]);
                std::swap(rows[i++], rows[low++]);
            } else if (code > pivot) {
                --high;
                std::swap(codes[i], codes[high]);
                std::swap(rows[i], rows[high]);
            } else {
                ++i;
            }
        }
        replay_sort_to(codes, rows, low, depth);
        codes += high;
        rows += high;
        m -= high;
    }
    for (std::ptrdiff_t i = 1; i < m; ++i) {
        const std::uint32_t code = codes[i];
        const std::int32_t row = rows[i];
        std::ptrdiff_t j = i;
        for (; j > 0 && codes[j - 1] > code; --j) {
            codes[j] = codes[j - 1];
            rows[j] = rows[j - 1];
        }
        codes[j] = code;
        rows[j] = row;
    }
}

inline void replay_sort(std::uint32_t* codes, std::int32_t* rows, std::ptrdiff_t m) {
    if (m > 1) replay_sort_to(codes, rows, m, 2 * static_cast<int>(std::log2(m)));
}

}  // namespace fastml
