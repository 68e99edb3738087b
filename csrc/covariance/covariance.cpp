#include "covariance/covariance.h"

// std headers come before any target region
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/blocks.h"
#include "common/isa.h"
#include "common/scratch.h"

#define FML_KERNEL "covariance/covariance.inl.h"
#include "common/foreach_isa.h"

namespace fastml {
namespace {

// Up to so many items a block of the depth has sums of its own; of more, blocks follow each other
// and threads share their products, as they do of so many items where blocks are too few to balance.
constexpr ptrdiff_t few_items = 640, many_items = 128, few_blocks = 16;
constexpr ptrdiff_t sums_at_most = ptrdiff_t{1} << 22, packed_at_most = ptrdiff_t{1} << 19;

template <class P, class T> class Products {
  public:
    Products(const Sample<T>& X, const P* shift, bool of_rows)
        : X_(X), shift_(shift), of_rows_(of_rows), items_(of_rows ? X.n : X.d),
          depth_(of_rows ? X.d : X.n) {
        ptrdiff_t unit;
        FML_PICK(panel_shape<P>)(&width_, &unit, &slice_);
        size_ = ceil_div(items_, unit) * unit;
        panels_ = ceil_div(size_, width_);
        const ptrdiff_t wanted =
            std::clamp<ptrdiff_t>(sums_at_most / (items_ * items_), 1, summed_blocks);
        const ptrdiff_t least = 2 * slice_;  // so that adding blocks up is little beside them
        const ptrdiff_t blocks = std::clamp<ptrdiff_t>(depth_ / least, 1, wanted);
        block_depth_ = ceil_div(ceil_div(depth_, blocks), slice_) * slice_;
        blocks_ = ceil_div(depth_, block_depth_);
        shared_ = items_ > few_items || (items_ >= many_items && blocks_ < few_blocks);
        if (shared_) blocks_ = 1;
    }

    Status run(bool centred, double* sums, double* out, int n_threads) const {
        n_threads = threads_for(0.5 * depth_ * items_ * items_, n_threads);
        const ptrdiff_t slices = shared_ ? shared_slices() : 1;
        const ptrdiff_t packed_size = aligned(std::min(slices * slice_, depth_) * size_);
        Scratch<P> packed((shared_ ? 1 : n_threads) * packed_size);
        Scratch<double> parts(blocks_ * size_ * size_), part_sums(blocks_ * items_);
        if (!packed || !parts || !part_sums) return Status::no_memory;
        std::fill_n(part_sums.get(), blocks_ * items_, 0.0);
        Status status;
        if (!shared_) {
            status = parallel(blocks_, n_threads, [&](ptrdiff_t b, int worker) {
                double* part = parts.get() + b * size_ * size_;
                std::fill_n(part, size_ * size_, 0.0);
                const ptrdiff_t end = std::min(depth_, (b + 1) * block_depth_);
                for (ptrdiff_t p = b * block_depth_; p < end; p += slice_)
                    add_slice(p, packed.get() + worker * packed_size, part_sums.get() + b * items_,
                              part);
            });
        } else {
            status = Status::ok;
            for (ptrdiff_t p = 0; p < depth_ && status == Status::ok; p += shared_slices() * slice_)
                status = share_slices(p, packed.get(), part_sums.get(), parts.get(), n_threads);
        }
        if (status != Status::ok) return status;
        std::fill_n(sums, items_, 0.0);
        for (ptrdiff_t b = 0; b < blocks_; ++b)
            for (ptrdiff_t j = 0; j < items_; ++j) sums[j] += part_sums[b * items_ + j];
        return gather(parts.get(), centred ? sums : nullptr, out, n_threads);
    }

  private:
    void pack(ptrdiff_t q, ptrdiff_t p, P* packed, double* sums) const {
        const ptrdiff_t first = q * width_, width = std::min(width_, size_ - first);
        const ptrdiff_t depth = std::min(slice_, depth_ - p);
        const bool beside = of_rows_ == X_.by_columns;
        const T* from = X_.data + (beside ? p * X_.stride + first : first * X_.stride + p);
        FML_PICK(pack_items<P, T>)
        (from, X_.stride, beside, !of_rows_, std::min(width, items_ - first), width, depth,
         shift_ + (of_rows_ ? p : first), packed + first * depth, sums + first);
    }

    // Slices that threads share at once: few meetings, and what is packed stays in cache.
    ptrdiff_t shared_slices() const {
        return std::max<ptrdiff_t>(1, packed_at_most / (slice_ * size_));
    }

    void add_slice(ptrdiff_t p, P* packed, double* sums, double* part) const {
        const auto add = FML_PICK(add_products<P>);
        for (ptrdiff_t q = 0; q < panels_; ++q) pack(q, p, packed, sums);
        for (ptrdiff_t q = 0; q < panels_; ++q)
            add(packed, size_, q * width_, std::min(slice_, depth_ - p), part);
    }

    Status share_slices(ptrdiff_t begin, P* packed, double* sums, double* part,
                        int n_threads) const {
        const auto add = FML_PICK(add_products<P>);
        const ptrdiff_t end = std::min(depth_, begin + shared_slices() * slice_);
        const Status status = parallel(panels_, n_threads, [&](ptrdiff_t q, int) {
            const ptrdiff_t first = q * width_, rows = std::min(width_, size_ - first);
            if (begin == 0) std::fill_n(part + first * size_, rows * size_, 0.0);
            for (ptrdiff_t p = begin; p < end; p += slice_)
                pack(q, p, packed + (p - begin) * size_, sums);
        });
        if (status != Status::ok) return status;
        // The last panel has the most products: first, it does not keep all others waiting.
        return parallel(panels_, n_threads, [&](ptrdiff_t q, int) {
            for (ptrdiff_t p = begin; p < end; p += slice_)
                add(packed + (p - begin) * size_, size_, (panels_ - 1 - q) * width_,
                    std::min(slice_, depth_ - p), part);
        });
    }

    // Adds the parts on and above the diagonal in the order of blocks, less products of sums where
    // those are given, and mirrors them.
    Status gather(const double* parts, const double* sums, double* out, int n_threads) const {
        constexpr ptrdiff_t side = 32;
        return parallel(ceil_div(items_, side), n_threads, [&](ptrdiff_t b, int) {
            const ptrdiff_t i0 = b * side, i1 = std::min(items_, i0 + side);
            for (ptrdiff_t j0 = i0; j0 < items_; j0 += side) {
                const ptrdiff_t j1 = std::min(items_, j0 + side);
                double sum[side][side] = {};
                for (ptrdiff_t k = 0; k < blocks_; ++k)
                    for (ptrdiff_t i = i0; i < i1; ++i)
                        for (ptrdiff_t j = j0; j < j1; ++j)
                            sum[i - i0][j - j0] += parts[(k * size_ + i) * size_ + j];
                for (ptrdiff_t i = i0; sums && i < i1; ++i) {
                    const double mean = sums[i] / static_cast<double>(depth_);
                    for (ptrdiff_t j = j0; j < j1; ++j) sum[i - i0][j - j0] -= mean * sums[j];
                }
                for (ptrdiff_t i = i0; i < i1; ++i)
                    for (ptrdiff_t j = std::max(i, j0); j < j1; ++j)
                        out[i * items_ + j] = sum[i - i0][j - j0];
                for (ptrdiff_t j = j0; j < j1; ++j)
                    for (ptrdiff_t i = i0; i < std::min(i1, j); ++i)
                        out[j * items_ + i] = sum[i - i0][j - j0];
            }
        });
    }

    const Sample<T>& X_;
    const P* shift_;
    bool of_rows_;
    ptrdiff_t items_, depth_, width_, slice_, size_, panels_, blocks_, block_depth_;
    bool shared_;
};

}  // namespace

template <class P, class T>
Status products(const Sample<T>& X, const P* shift, bool of_rows, bool centred, double* sums,
                double* out, int n_threads) noexcept {
    return Products<P, T>(X, shift, of_rows).run(centred, sums, out, n_threads);
}

template Status products(const Sample<float>&, const float*, bool, bool, double*, double*,
                         int) noexcept;
template Status products(const Sample<float>&, const double*, bool, bool, double*, double*,
                         int) noexcept;
template Status products(const Sample<double>&, const double*, bool, bool, double*, double*,
                         int) noexcept;

}  // namespace fastml
