#include "gemm/gemm.h"

// std headers come before any target region
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "common/isa.h"
#include "common/scratch.h"

#define FML_KERNEL "gemm/gemm.inl.h"
#include "common/foreach_isa.h"

namespace fastml {

template <class T>
Status gemm(const T* A, const T* B, std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t d, T* out,
            int n_threads) noexcept {
    std::ptrdiff_t rows, cols, depth;
    FML_PICK(tile_shape<T>)(&rows, &cols, &depth);
    const std::ptrdiff_t block = 96;  // rows of A that stay in L2 beside a panel of B
    const std::ptrdiff_t blocks = (m + block - 1) / block, panels = (n + cols - 1) / cols;
    const std::ptrdiff_t spill = d > depth ? block * cols : 0;
    const std::ptrdiff_t per_thread = (block * d + spill + 15) / 16 * 16;
    // Less (15 us in double at best) is not worth waking the pool for.
    if (static_cast<double>(m) * n * d < 1e6) n_threads = 1;
    Scratch<T> packed(panels * cols * d), scratch(n_threads * per_thread);
    if (!packed || !scratch) return Status::no_memory;
    const auto pack = FML_PICK(pack_b<T>);
    const auto run = FML_PICK(gemm_block<T>);
    const Status status =
        parallel(panels, n_threads, [&](std::ptrdiff_t j, int) { pack(B, n, d, j, packed.get()); });
    if (status != Status::ok) return status;
    return parallel(blocks, n_threads, [&](std::ptrdiff_t b, int worker) {
        const std::ptrdiff_t here = m - b * block < block ? m - b * block : block;
        run(A + b * block * d, here, packed.get(), n, d, out + b * block * n,
            scratch.get() + worker * per_thread);
    });
}

template Status gemm(const float*, const float*, std::ptrdiff_t, std::ptrdiff_t, std::ptrdiff_t,
                     float*, int) noexcept;
template Status gemm(const double*, const double*, std::ptrdiff_t, std::ptrdiff_t, std::ptrdiff_t,
                     double*, int) noexcept;

}  // namespace fastml
