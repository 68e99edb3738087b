#include "strings/strings.h"

#include <algorithm>

#include "common/blocks.h"
#include "common/scratch.h"

namespace fastml {
namespace {

// A task takes about so many steps: some 2 ms.
constexpr double task_steps = 1e6;

// Length is the length, or 0 if it is not known here: the loops over it are unrolled.
// The recursion of section 3 of the paper, a character of s at a time. For the part of s so far,
// K[j * length + i] is their K'_i(s, t_1 ... t_j); `gaps` is K''_i and `last` is K'_i of the
// column before, as it was for s without its last character.
template <int Length>
double subsequences_of_pair(const std::uint32_t* s, ptrdiff_t s_size, const std::uint32_t* t,
                            ptrdiff_t t_size, ptrdiff_t any_length, double decay, double* scratch) {
    const ptrdiff_t length = Length ? Length : any_length;
    if (std::min(s_size, t_size) < length) return 0;
    double own[2 * (Length + 1)];  // in registers
    double *gaps = Length ? own : scratch, *last = gaps + length, *K = scratch + 2 * length;
    for (ptrdiff_t j = 0; j < t_size; ++j)
        for (ptrdiff_t i = 0; i < length; ++i) K[j * length + i] = i == 0;
    double total = 0;
    for (ptrdiff_t a = 0; a < s_size; ++a) {
        for (ptrdiff_t i = 0; i < length; ++i) {
            gaps[i] = 0;
            last[i] = i == 0;
        }
        for (ptrdiff_t j = 0; j < t_size; ++j) {
            double* now = K + j * length;
            const double match = s[a] == t[j] ? decay * decay : 0;
            total += match * last[length - 1];
            for (ptrdiff_t i = 1; i < length; ++i) gaps[i] = decay * gaps[i] + match * last[i - 1];
            for (ptrdiff_t i = 1; i < length; ++i) {
                last[i] = now[i];
                now[i] = decay * now[i] + gaps[i];
            }
        }
    }
    return total;
}

using OfPair = decltype(&subsequences_of_pair<0>);

OfPair of_pair(ptrdiff_t length) {
    switch (length) {
        case 2:
            return subsequences_of_pair<2>;
        case 3:
            return subsequences_of_pair<3>;
        case 4:
            return subsequences_of_pair<4>;
        case 5:
            return subsequences_of_pair<5>;
        case 6:
            return subsequences_of_pair<6>;
        default:
            return subsequences_of_pair<0>;
    }
}

double mean_size(const Strings& X) {
    return static_cast<double>(X.begin[X.n] - X.begin[0]) / static_cast<double>(X.n);
}

}  // namespace

Status subsequences(const Strings& X, const Strings& Y, ptrdiff_t length, double decay,
                    bool symmetric, double* out, int n_threads) noexcept {
    ptrdiff_t longest = 0;
    for (ptrdiff_t j = 0; j < Y.n; ++j)
        longest = std::max<ptrdiff_t>(longest, Y.begin[j + 1] - Y.begin[j]);
    const ptrdiff_t size = aligned((longest + 2) * length);
    const double steps = 1 + mean_size(X) * mean_size(Y) * static_cast<double>(length);
    const ptrdiff_t width =
        std::clamp<ptrdiff_t>(static_cast<ptrdiff_t>(task_steps / steps), 1, 64);
    const ptrdiff_t across = ceil_div(Y.n, width);
    n_threads = threads_for(steps * static_cast<double>(X.n) * static_cast<double>(Y.n), n_threads);
    Scratch<double> scratch(size * n_threads);
    if (!scratch) return Status::no_memory;
    const OfPair pair = of_pair(length);
    return parallel(X.n * across, n_threads, [&](ptrdiff_t task, int worker) {
        const ptrdiff_t i = task / across, j0 = task % across * width;
        for (ptrdiff_t j = j0; j < std::min(Y.n, j0 + width); ++j) {
            if (symmetric && j < i) continue;
            const double value =
                pair(X.text + X.begin[i], X.begin[i + 1] - X.begin[i], Y.text + Y.begin[j],
                     Y.begin[j + 1] - Y.begin[j], length, decay, &scratch[worker * size]);
            out[i * Y.n + j] = value;
            if (symmetric) out[j * Y.n + i] = value;
        }
    });
}

}  // namespace fastml
