#include "trees/bootstrap.h"

#include <algorithm>

namespace fastml {

using std::ptrdiff_t;
using std::uint32_t;

namespace {

// Matsumoto and Nishimura's MT19937, a whole state of numbers at a time: without a look at where in
// the state a number is, the loops are vectors'.
class Twister {
  public:
    static constexpr int size = 624;

    explicit Twister(uint32_t seed) {
        for (int i = 0; i < size; ++i) {
            state_[i] = seed;
            seed = 1812433253u * (seed ^ seed >> 30) + static_cast<uint32_t>(i) + 1;
        }
    }
    void next(uint32_t* out) {
        constexpr int far = 397;
        for (int i = 0; i < size - far; ++i) state_[i] = twist(i, state_[i + far]);
        state_[size] = state_[0];
        for (int i = size - far; i < size; ++i) state_[i] = twist(i, state_[i + far - size]);
        for (int i = 0; i < size; ++i) {
            uint32_t x = state_[i];
            x ^= x >> 11;
            x ^= x << 7 & 0x9d2c5680u;
            x ^= x << 15 & 0xefc60000u;
            out[i] = x ^ x >> 18;
        }
    }

  private:
    uint32_t twist(int i, uint32_t other) const {
        const uint32_t x = (state_[i] & 0x80000000u) | (state_[i + 1] & 0x7fffffffu);
        return other ^ x >> 1 ^ ((0 - (x & 1)) & 0x9908b0dfu);
    }
    uint32_t state_[size + 1];
};

}  // namespace

void draw_bootstrap(uint32_t seed, ptrdiff_t n, ptrdiff_t draws, std::int32_t* counts) noexcept {
    std::fill_n(counts, n, 0);
    const auto largest = static_cast<uint32_t>(n - 1);
    if (largest == 0) {
        counts[0] = static_cast<std::int32_t>(draws);
        return;
    }
    uint32_t mask = largest;
    for (int shift = 1; shift < 32; shift *= 2) mask |= mask >> shift;
    Twister twister(seed);
    uint32_t numbers[Twister::size];
    while (draws > 0) {
        twister.next(numbers);
        // Numbers that are too large are passed over: up to half of them, so that no branch tells.
        ptrdiff_t kept = 0;
        for (const uint32_t number : numbers) {
            const uint32_t row = number & mask;
            numbers[kept] = row;
            kept += row <= largest;
        }
        kept = std::min(kept, draws);
        draws -= kept;
        for (ptrdiff_t i = 0; i < kept; ++i) ++counts[numbers[i]];
    }
}

}  // namespace fastml
