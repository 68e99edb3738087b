#pragma once
// Features of few distinct values, which are found without a sort.
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace fastml {

// Distinct keys, numbered as they are met.
class FewValues {
  public:
    static constexpr int most = 127;

    // numbers (n) of keys; false if there are more than `most` of them.
    bool find(const std::uint32_t* keys, std::ptrdiff_t n, std::uint8_t* numbers) {
        count = 0;
        std::fill_n(slots_, size, empty);
        for (std::ptrdiff_t i = 0; i < n; ++i) {
            const std::uint32_t key = keys[i];
            std::uint32_t at = place(key);
            while (!holds(slots_[at], key)) {
                if (slots_[at] == empty) {
                    if (count == most) return false;
                    met[count] = key;
                    slots_[at] = std::uint64_t{key} << 32 | static_cast<std::uint64_t>(count++);
                    break;
                }
                at = (at + 1) % size;
            }
            numbers[i] = static_cast<std::uint8_t>(slots_[at]);
        }
        return true;
    }
    // order (count) = the numbers by their keys.
    void sort(std::uint8_t* order) const {
        for (int k = 0; k < count; ++k) order[k] = static_cast<std::uint8_t>(k);
        std::sort(order, order + count,
                  [this](std::uint8_t a, std::uint8_t b) { return met[a] < met[b]; });
    }
    // The number that more than half of n have, or -1.
    static int common(const std::uint8_t* numbers, std::ptrdiff_t n) {
        std::uint32_t counts[4][most] = {};  // of every fourth: equal ones need not wait
        for (std::ptrdiff_t i = 0; i < n; ++i) ++counts[i % 4][numbers[i]];
        for (int k = 0; k < most; ++k)
            if (2 * (std::int64_t{counts[0][k]} + counts[1][k] + counts[2][k] + counts[3][k]) > n)
                return k;
        return -1;
    }

    int count = 0;
    std::uint32_t met[most];

  private:
    static constexpr std::uint32_t size_bits = 9, size = 1 << size_bits;
    static constexpr std::uint64_t empty = ~std::uint64_t{0};  // of no key: numbers are below most
    static std::uint32_t place(std::uint32_t key) { return key * 2654435769u >> (32 - size_bits); }
    static bool holds(std::uint64_t slot, std::uint32_t key) {
        return slot >> 32 == key && slot != empty;
    }
    std::uint64_t slots_[size];  // the key, and its number
};

}  // namespace fastml
