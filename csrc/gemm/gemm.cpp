#include "gemm/gemm.h"

// std headers come before any target region
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/blocks.h"
#include "common/isa.h"
#include "common/scratch.h"

#define FML_KERNEL "gemm/gemm.inl.h"
#include "common/foreach_isa.h"
#include "common/tiling.h"

namespace fastml {

template <class T>
Status gemm(const T* A, const T* B, std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t d,
            const T* bias, T* out, int n_threads) noexcept {
    const TileShape s = chosen_shape<T>();
    const std::ptrdiff_t block = 2 * block_unit;  // rows whose slices stay in L2
    const std::ptrdiff_t blocks = ceil_div(m, block), panels = ceil_div(n, s.cols);
    n_threads = threads_for(static_cast<double>(m) * n * d, n_threads);
    Scratch<T> packed(panels * s.cols * d);
    if (!packed) return Status::no_memory;
    const auto pack = FML_PICK(pack_b<T>);
    const auto run = FML_PICK(gemm_block<T>);
    const Status status =
        parallel(panels, n_threads, [&](std::ptrdiff_t j, int) { pack(B, n, d, j, packed.get()); });
    if (status != Status::ok) return status;
    return parallel(blocks, n_threads, [&](std::ptrdiff_t b, int) {
        const std::ptrdiff_t here = m - b * block < block ? m - b * block : block;
        run(A + b * block * d, here, packed.get(), n, d, bias, out + b * block * n);
    });
}

template Status gemm(const float*, const float*, std::ptrdiff_t, std::ptrdiff_t, std::ptrdiff_t,
                     const float*, float*, int) noexcept;
template Status gemm(const double*, const double*, std::ptrdiff_t, std::ptrdiff_t, std::ptrdiff_t,
                     const double*, double*, int) noexcept;

}  // namespace fastml
