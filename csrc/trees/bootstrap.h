#pragma once
#include <cstddef>
#include <cstdint>

namespace fastml {

// counts (n) = how often each row is among `draws` that numpy.random.RandomState(seed).randint(0, n,
// draws) makes; 1 <= n <= most_rows. RandomState promises to draw the same numbers forever.
void draw_bootstrap(std::uint32_t seed, std::ptrdiff_t n, std::ptrdiff_t draws,
                    std::int32_t* counts) noexcept;

}  // namespace fastml
