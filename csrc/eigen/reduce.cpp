// std headers come before any target region
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/isa.h"
#include "eigen/stages.h"

#define FML_KERNEL "eigen/reduce.inl.h"
#include "common/foreach_isa.h"
#include "common/tiling.h"

namespace fastml {
namespace {

constexpr ptrdiff_t most_parts = 16;

// Parts of a product with m rows: from so many on a second thread brings more than its waking costs.
ptrdiff_t parts_of(ptrdiff_t m) {
    return m < 256 ? 1 : m < 512 ? 2 : m < 1024 ? 4 : m < 3000 ? 8 : 16;
}

template <class T> class Reduction {
    static constexpr ptrdiff_t block = diagonal_block<T>, width = panel_columns<T>;

  public:
    Reduction(T* A, ptrdiff_t n, int n_threads)
        : A_(A), n_(n), ld_(row_stride(n)), end_(ceil_div(n, block) * block), n_threads_(n_threads),
          W_(width * ld_), vectors_(4 * ld_), parts_(most_parts * ld_),
          sums_(most_parts * (2 * width + 1)), weights_(4 * width), left_(2 * width * ld_),
          right_(2 * width * ld_), y_(vectors_.get()), next_(y_ + ld_), v_(next_ + ld_) {}

    explicit operator bool() const {
        return W_ && vectors_ && parts_ && sums_ && weights_ && left_ && right_;
    }

    Status run(T* d, T* e, T* tau) {
        for (ptrdiff_t j = 0; j < n_; ++j) {
            const ptrdiff_t p = j % width;
            T* row = A_ + j * ld_;
            if (p == 0)
                std::fill_n(W_.get(), width * ld_, T(0));
            else
                update_row(row, j, p - 1);
            d[j] = row[j];
            if (j + 1 == n_) break;
            FML_PICK(reflector<T>)(row + j + 1, n_ - j - 1, e + j, tau + j);
            Status status = multiply(row, j, p, tau[j]);
            if (status == Status::ok && p + 1 == width) status = update_rest(j + 1);
            if (status != Status::ok) return status;
        }
        return Status::ok;
    }

  private:
    // What the panel takes from row j: `next` has it but for the last pair.
    void update_row(T* row, ptrdiff_t j, ptrdiff_t last) const {
        const T *v = A_ + (j - 1) * ld_, *w = W_.get() + last * ld_;
        const T at_v = w[j], at_w = v[j];
        for (ptrdiff_t i = j; i < n_; ++i) row[i] -= next_[i] + (v[i] * at_v + w[i] * at_w);
    }

    // Row p of W, the partner of the reflector in row j: so that A - v w' - w v' is H A H.
    Status multiply(const T* row, ptrdiff_t j, ptrdiff_t p, T tau) {
        const ptrdiff_t first = (j + 1) / block * block, m = end_ - first, parts = parts_of(m);
        const T* V = A_ + (j - p) * ld_;
        T *v = v_, *W = W_.get();
        std::fill(v + first, v + j + 1, T(0));
        std::copy(row + j + 1, row + end_, v + j + 1);
        const auto product = FML_PICK(symmetric_vector_block<T>);
        const auto dots = FML_PICK(dots_block<T>);
        const int threads = parts > 1 ? n_threads_ : 1;
        Status status = parallel(parts, threads, [&](ptrdiff_t t, int) {
            T* part = parts_.get() + t * ld_;
            std::fill(part + first, part + end_, T(0));
            product(A_, ld_, cut_area(first, m, t, parts), cut_area(first, m, t + 1, parts), end_,
                    v, part);
            const ptrdiff_t begin = cut(first, m, t, parts), end = cut(first, m, t + 1, parts);
            dots(V, ld_, p, v, begin, end, sums_.get() + t * (2 * width + 1));
            dots(W, ld_, p, v, begin, end, sums_.get() + t * (2 * width + 1) + width);
        });
        if (status != Status::ok) return status;
        T *of_v = weights_.get(), *of_w = of_v + width, *next_v = of_w + width,
          *next_w = next_v + width;
        for (ptrdiff_t q = 0; q < p; ++q) {
            of_v[q] = of_w[q] = 0;
            for (ptrdiff_t t = 0; t < parts; ++t) {
                of_w[q] += sums_[t * (2 * width + 1) + q];
                of_v[q] += sums_[t * (2 * width + 1) + width + q];
            }
            next_v[q] = W[q * ld_ + j + 1];
            next_w[q] = V[q * ld_ + j + 1];
        }
        const Panel<T> panel{V, W, ld_, p, of_v, of_w, next_v, next_w};
        const auto combine = FML_PICK(combine_block<T>);
        status = parallel(parts, threads, [&](ptrdiff_t t, int) {
            combine(panel, parts_.get(), ld_, parts, cut(first, m, t, parts),
                    cut(first, m, t + 1, parts), v, y_, next_, sums_.get() + t * (2 * width + 1));
        });
        if (status != Status::ok) return status;
        T both = 0;
        for (ptrdiff_t t = 0; t < parts; ++t) both += sums_[t * (2 * width + 1)];
        const T less = tau * tau * both / 2;
        T* w = W + p * ld_;
        for (ptrdiff_t i = j + 1; i < n_; ++i) w[i] = tau * y_[i] - less * v[i];
        return Status::ok;
    }

    // Takes a whole panel from the rows and columns from j on.
    Status update_rest(ptrdiff_t j) {
        const TileShape s = chosen_shape<T>();
        const ptrdiff_t m = ceil_div(n_ - j, block) * block, depth = 2 * width;
        const T *V = A_ + (j - width) * ld_, *W = W_.get();
        const int threads = threads_for(static_cast<double>(m) * m * width, n_threads_);
        const auto pack_a = FML_PICK(pack_left<T>);
        const auto pack_b = FML_PICK(pack_right<T>);
        const ptrdiff_t columns = ceil_div(m, s.cols), step = block_unit;
        Status status = parallel(ceil_div(m, step), threads, [&](ptrdiff_t b, int) {
            for (ptrdiff_t i = b * step; i < std::min(m, (b + 1) * step); i += s.rows)
                pack_a(V, W, ld_, width, j + i, left_.get() + i * depth);
            for (ptrdiff_t c = b * step; c < std::min(m, (b + 1) * step); c += s.cols)
                pack_b(V, W, ld_, width, j + c, right_.get() + c * depth);
        });
        if (status != Status::ok) return status;
        const auto subtract = FML_PICK(subtract_panel<T>);
        // The last columns have the most rows: first, they do not keep others waiting.
        return parallel(columns, threads, [&](ptrdiff_t q, int) {
            const ptrdiff_t c = (columns - 1 - q) * s.cols;
            const ptrdiff_t rows = std::min(m, ceil_div(c + s.cols, block) * block);
            subtract(left_.get(), rows, right_.get() + c * depth, depth, A_ + j * ld_ + j + c, ld_);
        });
    }

    static ptrdiff_t cut(ptrdiff_t first, ptrdiff_t m, ptrdiff_t t, ptrdiff_t parts) {
        return first + m / block * t / parts * block;
    }
    // The same where row i has m - i entries.
    static ptrdiff_t cut_area(ptrdiff_t first, ptrdiff_t m, ptrdiff_t t, ptrdiff_t parts) {
        const double left = 1 - static_cast<double>(t) / parts;
        const ptrdiff_t blocks = m / block;
        return first + (blocks - std::lround(std::sqrt(left) * blocks)) * block;
    }

    T* A_;
    ptrdiff_t n_, ld_, end_;
    int n_threads_;
    Scratch<T> W_, vectors_, parts_, sums_, weights_, left_, right_;
    T *y_, *next_, *v_;
};

}  // namespace

template <class T>
Status reduce(T* A, ptrdiff_t n, T* d, T* e, T* tau, int n_threads) noexcept {
    Reduction<T> reduction(A, n, n_threads);
    return reduction ? reduction.run(d, e, tau) : Status::no_memory;
}

template Status reduce(float*, ptrdiff_t, float*, float*, float*, int) noexcept;
template Status reduce(double*, ptrdiff_t, double*, double*, double*, int) noexcept;

}  // namespace fastml
