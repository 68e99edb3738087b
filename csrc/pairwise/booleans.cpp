#include "pairwise/booleans.h"

// std headers come before any target region
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/blocks.h"
#include "common/isa.h"
#include "common/scratch.h"

#define FML_KERNEL "pairwise/booleans.inl.h"
#include "common/foreach_isa.h"

namespace fastml {

Status boolean_distances(const std::uint64_t* X, ptrdiff_t n, const std::uint64_t* Y, ptrdiff_t m,
                         ptrdiff_t words, ptrdiff_t bits, Agreement agreement, double* out,
                         int n_threads) noexcept {
    constexpr ptrdiff_t rows = 16;
    Scratch<double> set(m);
    if (!set) return Status::no_memory;
    FML_PICK(count_block)(Y, m, words, set.get());
    const auto block = FML_PICK(boolean_block);
    n_threads = threads_for((passed_over + words) * n * m, n_threads);
    return parallel(ceil_div(n, rows), n_threads, [&](ptrdiff_t b, int) {
        const ptrdiff_t i = b * rows;
        block(X + i * words, std::min(rows, n - i), Y, m, words, bits, agreement, set.get(),
              out + i * m);
    });
}

}  // namespace fastml
