// std headers come before any target region
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/isa.h"
#include "eigen/stages.h"

#define FML_KERNEL "eigen/divide.inl.h"
#include "common/foreach_isa.h"
#include "common/tiling.h"

namespace fastml {
namespace {

constexpr ptrdiff_t leaf_rows = 32;      // QL steps are sooner done with these
constexpr ptrdiff_t root_block = 32;     // roots, or weights, that are one task
constexpr ptrdiff_t subtree_rows = 128;  // at least, that one thread has to itself

// Where a row of Q has entries, in the halves of a merge.
enum Support : char { in_first = 1, in_both = 2, in_second = 3 };

// One array after the other, of which each subproblem has its own stretch.
template <class T> struct Stretches {
    Scratch<T> z, poles, weights, tau, base, side_poles, side_weights;
    Scratch<ptrdiff_t> slot, origin, side, rows, sorted;
    Scratch<char> support, deflated;
    explicit Stretches(ptrdiff_t n)
        : z(n), poles(n), weights(n), tau(n), base(n), side_poles(n), side_weights(n), slot(n),
          origin(n), side(n), rows(n), sorted(n), support(n), deflated(n) {}
    explicit operator bool() const {
        return z && poles && weights && tau && base && side_poles && side_weights && slot &&
               origin && side && rows && sorted && support && deflated;
    }
};

template <class T> class Division {
  public:
    Division(T* d, T* e, ptrdiff_t n, ptrdiff_t wanted, T* Q, ptrdiff_t stride, ptrdiff_t* order,
             T* packed, int n_threads)
        : d_(d), e_(e), n_(n), wanted_(wanted), Q_(Q), stride_(stride), order_(order),
          packed_(packed), n_threads_(n_threads), at_(n), u_stride_(strip_rows * aligned(n)),
          U_(n_threads * u_stride_), shape_(chosen_shape<T>()) {}

    explicit operator bool() const { return at_ && U_; }

    Status run() {
        // The square of what is divided by it must not overflow: less is nothing beside the rest.
        T size = 0;
        for (ptrdiff_t i = 0; i < n_; ++i) size = std::max(size, std::abs(d_[i]));
        for (ptrdiff_t i = 0; i + 1 < n_; ++i) size = std::max(size, std::abs(e_[i]));
        nothing_ =
            size * std::sqrt(std::numeric_limits<T>::min()) / std::numeric_limits<T>::epsilon();
        for (ptrdiff_t i = 0; i + 1 < n_; ++i)
            if (std::abs(e_[i]) < nothing_) e_[i] = 0;
        // Each cut takes |e| from both its neighbours on the diagonal, before anything else.
        for (ptrdiff_t m = n_; m > leaf_rows; m = ceil_div(m, 2)) ++depth_;
        ptrdiff_t shared = 0;  // levels whose subproblems all threads share
        while (shared < depth_ && shared < 4 && (n_ >> shared) > subtree_rows) ++shared;
        for (ptrdiff_t level = 0; level < depth_; ++level)
            for (ptrdiff_t s = 0; s < ptrdiff_t{1} << level; ++s) {
                const ptrdiff_t at = begin(2 * s + 1, level + 1);
                d_[at - 1] -= std::abs(e_[at - 1]);
                d_[at] -= std::abs(e_[at - 1]);
            }
        const int threads = threads_for(2.0 * n_ * n_ * n_ / (1 << 2 * shared), n_threads_);
        Status status = parallel(ptrdiff_t{1} << shared, threads, [&](ptrdiff_t s, int worker) {
            subtree(s, shared, U_.get() + worker * u_stride_);
        });
        for (ptrdiff_t level = shared - 1; level >= 0 && status == Status::ok; --level)
            for (ptrdiff_t s = 0; s < ptrdiff_t{1} << level && status == Status::ok; ++s)
                status = merge(s, level, n_threads_, U_.get());
        return status;
    }

  private:
    ptrdiff_t begin(ptrdiff_t s, ptrdiff_t level) const { return (n_ * s) >> level; }

    void subtree(ptrdiff_t s, ptrdiff_t level, T* U) const {
        if (level == depth_) {
            leaf(begin(s, level), begin(s + 1, level));
            return;
        }
        subtree(2 * s, level + 1, U);
        subtree(2 * s + 1, level + 1, U);
        merge(s, level, 1, U);
    }

    void leaf(ptrdiff_t first, ptrdiff_t end) const {
        const ptrdiff_t m = end - first;
        T* Q = Q_ + first * stride_ + first;
        T d[leaf_rows], e[leaf_rows] = {};
        std::copy(d_ + first, d_ + end, d);
        std::copy(e_ + first, e_ + end - 1, e);
        // Upside down, if that puts what is small first, where QL steps keep its digits.
        const bool turned = std::abs(d[m - 1]) < std::abs(d[0]);
        if (turned) {
            std::reverse(d, d + m);
            std::reverse(e, e + m - 1);
        }
        for (ptrdiff_t i = 0; i < m; ++i) {
            std::fill_n(Q + i * stride_, m, T(0));
            Q[i * stride_ + (turned ? m - 1 - i : i)] = 1;
        }
        FML_PICK(small_tridiagonal<T>)(d, e, m, Q, stride_);
        std::copy(d, d + m, d_ + first);
        sort(first, end);
    }

    void sort(ptrdiff_t first, ptrdiff_t end) const {
        for (ptrdiff_t i = first; i < end; ++i) order_[i] = i;
        std::sort(order_ + first, order_ + end, [&](ptrdiff_t a, ptrdiff_t b) {
            return d_[a] < d_[b] || (d_[a] == d_[b] && a < b);
        });
    }

    // The two halves of subproblem s, whose cut had the entry e: their spectra and a product of rank
    // one, |e| z z'.
    Status merge(ptrdiff_t s, ptrdiff_t level, int n_threads, T* U) const {
        const ptrdiff_t first = begin(s, level), cut = begin(2 * s + 1, level + 1),
                        end = begin(s + 1, level);
        const T off = e_[cut - 1], sign = off < 0 ? T(-1) : T(1), rho = 2 * std::abs(off);
        const T half = std::sqrt(T(0.5));
        for (ptrdiff_t i = first; i < end; ++i) {
            const bool left = i < cut;
            at_.z[i] =
                left ? Q_[i * stride_ + cut - 1] * half : Q_[i * stride_ + cut] * half * sign;
            at_.support[i] = left ? in_first : in_second;
            at_.deflated[i] = 0;
        }
        std::merge(order_ + first, order_ + cut, order_ + cut, order_ + end,
                   at_.sorted.get() + first,
                   [&](ptrdiff_t a, ptrdiff_t b) { return d_[a] < d_[b]; });
        const ptrdiff_t k = deflate(first, cut, end, rho);
        Status status = k ? roots(first, k, rho, n_threads) : Status::ok;
        if (status != Status::ok) return status;
        for (ptrdiff_t i = 0; i < k; ++i)
            d_[at_.slot[first + i]] = at_.base[first + i] + at_.tau[first + i];
        sort(first, end);
        for (ptrdiff_t i = first; i < end; ++i) {
            if (at_.deflated[i]) fill_other(i, first, cut, end);
        }
        return k ? vectors(first, cut, end, k, level == 0, n_threads, U) : Status::ok;
    }

    // Zeros where row i has none of its half's entries.
    void fill_other(ptrdiff_t i, ptrdiff_t first, ptrdiff_t cut, ptrdiff_t end) const {
        T* row = Q_ + i * stride_;
        if (at_.support[i] == in_first) std::fill(row + cut, row + end, T(0));
        if (at_.support[i] == in_second) std::fill(row + first, row + cut, T(0));
    }

    // Leaves out poles without weight, and of poles that are equal to rounding turns the weight of
    // one to the other. What is left: `poles`, `weights` (their z) and `slot`, in ascending order.
    ptrdiff_t deflate(ptrdiff_t first, ptrdiff_t cut, ptrdiff_t end, T rho) const {
        T most = rho, *z = at_.z.get();
        for (ptrdiff_t i = first; i < end; ++i) most = std::max(most, std::abs(d_[i]));
        const T small = std::max(2 * std::numeric_limits<T>::epsilon() * most, nothing_);
        const auto turn = FML_PICK(turn_rows<T>);
        ptrdiff_t k = 0, held = -1;
        const auto keep = [&](ptrdiff_t i) {
            at_.slot[first + k] = i;
            at_.poles[first + k] = d_[i];
            at_.weights[first + k] = z[i];
            ++k;
        };
        for (ptrdiff_t r = first; r < end; ++r) {
            const ptrdiff_t i = at_.sorted[r];
            if (rho * std::abs(z[i]) <= small) {
                at_.deflated[i] = 1;
                continue;
            }
            if (held < 0) {
                held = i;
                continue;
            }
            const T length = std::hypot(z[i], z[held]), c = z[i] / length, s = -z[held] / length;
            if (std::abs((d_[i] - d_[held]) * c * s) > small) {
                keep(held);
                held = i;
                continue;
            }
            z[i] = length;
            z[held] = 0;
            if (at_.support[i] != at_.support[held]) {
                fill_other(i, first, cut, end);
                fill_other(held, first, cut, end);
                at_.support[i] = at_.support[held] = in_both;
            }
            const ptrdiff_t from = at_.support[i] == in_second ? cut : first;
            const ptrdiff_t to = at_.support[i] == in_first ? cut : end;
            turn(Q_ + held * stride_ + from, Q_ + i * stride_ + from, to - from, c, s);
            const T a = d_[held], b = d_[i];
            d_[held] = a * c * c + b * s * s;
            d_[i] = a * s * s + b * c * c;
            at_.deflated[held] = 1;
            held = i;
        }
        if (held >= 0) keep(held);
        return k;
    }

    Status roots(ptrdiff_t first, ptrdiff_t k, T rho, int n_threads) const {
        const T *d = at_.poles.get() + first, *z = at_.weights.get() + first;
        T *tau = at_.tau.get() + first, *base = at_.base.get() + first;
        ptrdiff_t* origin = at_.origin.get() + first;
        T most = 0;
        for (ptrdiff_t j = 0; j < k; ++j) most += z[j] * z[j];
        most *= rho;
        const int threads = threads_for(16.0 * k * k, n_threads);
        const auto root = FML_PICK(secular_root<T>);
        const auto weigh = FML_PICK(secular_weights<T>);
        const ptrdiff_t blocks = ceil_div(k, root_block);
        Status status = parallel(blocks, threads, [&](ptrdiff_t b, int) {
            for (ptrdiff_t i = b * root_block; i < std::min(k, (b + 1) * root_block); ++i) {
                tau[i] = root(d, z, k, i, rho, most, origin + i);
                base[i] = d[origin[i]];
            }
        });
        if (status != Status::ok) return status;
        T* exact = at_.z.get() + first;  // z as it was is not needed any more
        status = parallel(blocks, threads, [&](ptrdiff_t b, int) {
            weigh(d, z, k, base, tau, b * root_block, std::min(k, (b + 1) * root_block), exact);
        });
        std::copy(exact, exact + k, at_.weights.get() + first);
        return status;
    }

    Status vectors(ptrdiff_t first, ptrdiff_t cut, ptrdiff_t end, ptrdiff_t k, bool top,
                   int n_threads, T* U) const {
        // Rows of the first half alone, of both, of the second: each half is a product of fewer.
        ptrdiff_t counts[4] = {}, taken = 0;
        ptrdiff_t* rows = at_.rows.get() + first;
        T *d = at_.side_poles.get() + first, *z = at_.side_weights.get() + first;
        for (const char kind : {in_first, in_both, in_second}) {
            for (ptrdiff_t j = first; j < first + k; ++j) {
                if (at_.support[at_.slot[j]] != kind) continue;
                rows[taken] = at_.slot[j];
                d[taken] = at_.poles[j];
                z[taken++] = at_.weights[j];
                ++counts[static_cast<int>(kind)];
            }
        }
        const ptrdiff_t depth_a = counts[1] + counts[2], depth_b = counts[2] + counts[3];
        const ptrdiff_t n_a = cut - first, n_b = end - cut, cols = shape_.cols;
        const ptrdiff_t panels_a = ceil_div(n_a, cols), panels_b = ceil_div(n_b, cols);
        T* A = packed_ + first * (n_ / 2 + 2 * block_unit);
        T* B = A + panels_a * cols * depth_a;
        const auto pack = FML_PICK(pack_rows<T>);
        const int threads =
            threads_for(static_cast<double>(k) * (depth_a * n_a + depth_b * n_b), n_threads);
        Status status = parallel(panels_a + panels_b, threads, [&](ptrdiff_t q, int) {
            const ptrdiff_t c = q * cols, e = (q - panels_a) * cols;
            if (q < panels_a)
                pack(Q_, stride_, rows, depth_a, first + c, std::min(cols, n_a - c),
                     A + c * depth_a);
            else
                pack(Q_, stride_, rows + counts[1], depth_b, cut + e, std::min(cols, n_b - e),
                     B + e * depth_b);
        });
        if (status != Status::ok) return status;
        ptrdiff_t* roots = at_.side.get() + first;  // those whose vectors are wanted
        ptrdiff_t count = 0;
        if (top && wanted_ < n_) {
            for (ptrdiff_t r = 0; r < n_; ++r) at_.deflated[order_[r]] = r < n_ - wanted_;
            for (ptrdiff_t i = 0; i < k; ++i)
                if (!at_.deflated[at_.slot[first + i]]) roots[count++] = i;
        } else {
            for (; count < k; ++count) roots[count] = count;
        }
        const auto multiply = FML_PICK(merge_rows<T>);
        const auto vector = FML_PICK(secular_vector<T>);
        return parallel(ceil_div(count, strip_rows), threads, [&](ptrdiff_t b, int worker) {
            T* own = U + worker * u_stride_;
            T* out[strip_rows];
            const ptrdiff_t here = std::min(strip_rows, count - b * strip_rows), ld = aligned(k);
            for (ptrdiff_t i = 0; i < here; ++i) {
                const ptrdiff_t root = roots[b * strip_rows + i];
                vector(d, z, k, at_.base[first + root], at_.tau[first + root], own + i * ld);
                out[i] = Q_ + at_.slot[first + root] * stride_ + first;
            }
            multiply(own, ld, here, A, depth_a, n_a, out);
            for (ptrdiff_t i = 0; i < here; ++i) out[i] += n_a;
            multiply(own + counts[1], ld, here, B, depth_b, n_b, out);
        });
    }

    T *d_, *e_;
    ptrdiff_t n_, wanted_, depth_ = 0;
    T nothing_ = 0;  // what is less than that is none
    T* Q_;
    ptrdiff_t stride_;
    ptrdiff_t* order_;
    T* packed_;
    int n_threads_;
    Stretches<T> at_;
    ptrdiff_t u_stride_;
    Scratch<T> U_;
    TileShape shape_;
};

}  // namespace

template <class T>
Status divide(T* d, T* e, ptrdiff_t n, ptrdiff_t wanted, T* Q, ptrdiff_t stride, ptrdiff_t* order,
              T* packed, int n_threads) noexcept {
    Division<T> division(d, e, n, wanted, Q, stride, order, packed, n_threads);
    return division ? division.run() : Status::no_memory;
}

template Status divide(float*, float*, ptrdiff_t, ptrdiff_t, float*, ptrdiff_t, ptrdiff_t*, float*,
                       int) noexcept;
template Status divide(double*, double*, ptrdiff_t, ptrdiff_t, double*, ptrdiff_t, ptrdiff_t*,
                       double*, int) noexcept;

}  // namespace fastml
