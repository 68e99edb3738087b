// std headers come before any target region
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/isa.h"
#include "common/scratch.h"
#include "eigen/eigen.h"
#include "eigen/stages.h"

#define FML_KERNEL "eigen/lanczos.inl.h"
#include "common/foreach_isa.h"

namespace fastml {
namespace {

// Vectors before the first look at what they tell, and at most, beside some for each that is wanted.
constexpr ptrdiff_t first_look = 24, most_more = 180;
// Looks because there is nothing new to multiply: of a rank that is odd, one vector may be left.
constexpr ptrdiff_t most_ends = 3;

// Parts of a product with n rows, each of which has sums of its own.
ptrdiff_t parts_of(ptrdiff_t n) { return n < 400 ? 1 : n < 600 ? 2 : n < 1024 ? 4 : 8; }

template <class T> class Lanczos {
    static constexpr ptrdiff_t block = diagonal_block<T>;
    static constexpr T eps = std::numeric_limits<T>::epsilon();

  public:
    Lanczos(ptrdiff_t n, ptrdiff_t k, int n_threads)
        : n_(n), k_(k), ld_(row_stride(n)), end_(ceil_div(n, block) * block), parts_(parts_of(n)),
          most_(std::min(2 * n / 5, 4 * k + most_more) / 2 * 2), n_threads_(n_threads),
          A_(work_rows(n) * ld_), V_((most_ + 2) * ld_), Y_(parts_ * 2 * ld_),
          C_((parts_ + 1) * 2 * (most_ + 2)), band_(3 * (most_ + 2)), S_(k * most_),
          H_(work_rows(most_) * row_stride(most_)), Q_(k * row_stride(most_)), lines_(3 * most_) {}

    explicit operator bool() const {
        return A_ && V_ && Y_ && C_ && band_ && S_ && H_ && Q_ && lines_;
    }

    // Leaves the largest Ritz values in `values`, and their vectors' parts in V_ in S_. Whether they
    // are what was looked for.
    Status run(const T* A, T tol, T* values, bool* found) {
        *found = false;
        Status status = copy_half(A, n_, A_.get(), Y_.get(), &factor_, n_threads_);
        if (status != Status::ok || factor_ != factor_ || k_ > most_) return status;
        start();
        ptrdiff_t look = first_look + 3 * k_ / 2, ends = 0;
        for (m_ = 0; m_ < most_;) {
            bool more = true;
            status = step(&more);
            if (status != Status::ok || !more) return status;
            const bool end = exhausted() || m_ == most_;
            if (m_ < k_ || (m_ < look && !end)) continue;
            if (end && ++ends > most_ends) return status;
            T off;
            status = solve(tol, values, &off);
            if (status != Status::ok) return status;
            if (off <= 1) {
                *found = is_sure(values, tol);
                return status;
            }
            look = next_look(off);
            if (look > most_) return status;
        }
        return status;
    }

    // vectors (k, n) = S V.
    Status combine(T* vectors) const {
        const ptrdiff_t pairs = ceil_div(k_, 2);
        Scratch<T> out(pairs * 2 * ld_), weights(pairs * 2 * m_);
        if (!out || !weights) return Status::no_memory;
        const auto add = FML_PICK(pair_add_block<T>);
        return parallel(pairs, threads_awake(2.0 * n_ * m_ * k_, n_threads_),
                        [&](ptrdiff_t q, int) {
                            T *to = out.get() + q * 2 * ld_, *C = weights.get() + q * 2 * m_;
                            const ptrdiff_t rows = std::min<ptrdiff_t>(2, k_ - 2 * q);
                            for (ptrdiff_t p = 0; p < m_; ++p)
                                for (ptrdiff_t c = 0; c < 2; ++c)
                                    C[2 * p + c] = c < rows ? S_[(2 * q + c) * m_ + p] : T(0);
                            std::fill_n(to, 2 * ld_, T(0));
                            add(V_.get(), ld_, m_, C, 0, end_, to);
                            for (ptrdiff_t c = 0; c < rows; ++c)
                                std::copy_n(to + c * ld_, n_, vectors + (2 * q + c) * n_);
                        });
    }

    T factor() const { return factor_; }

  private:
    T* row(ptrdiff_t p) const { return V_.get() + p * ld_; }

    // Two vectors of numbers that are as good as random.
    void start() {
        std::uint64_t state = 1;
        for (ptrdiff_t p = 0; p < 2; ++p) {
            std::fill_n(row(p), ld_, T(0));
            for (ptrdiff_t i = 0; i < n_; ++i) {
                state = state * 6364136223846793005u + 1442695040888963407u;
                row(p)[i] = static_cast<T>(static_cast<std::int64_t>(state) >> 40) / T(1 << 23);
            }
        }
        T R[3];
        orthonormal_pair(0, R);
    }

    // Multiplies the last pair, and makes of what is new in the product the next pair. *more: whether
    // there is such.
    Status step(bool* more) {
        Status status = multiply();
        const ptrdiff_t pair = m_;
        m_ += 2;
        T* diagonal = band_.get() + 3 * pair;
        std::fill_n(diagonal, 6, T(0));
        // But for rounding it has no part in others than the last two pairs.
        for (int pass = 0; pass < 2 && status == Status::ok; ++pass) {
            const ptrdiff_t from = pass ? 0 : std::max<ptrdiff_t>(0, pair - 2);
            status = take_part(from, pass == 0);
            const T* C = C_.get() + 2 * (pair - from);
            diagonal[0] -= C[0];
            diagonal[1] -= (C[1] + C[2]) / 2;
            diagonal[3] -= C[3];
        }
        if (status != Status::ok) return status;
        for (int e : {0, 1, 3}) most_entry_ = std::max(most_entry_, std::abs(diagonal[e]));
        T R[3];
        *more = orthonormal_pair(m_, R);
        diagonal[2] = R[0];
        diagonal[4] = R[1];
        diagonal[5] = R[2];
        return status;
    }

    // Y_ = A times the last pair, in parts.
    Status multiply() {
        const auto product = FML_PICK(pair_product_block<T>);
        const T* X = row(m_);
        const double work = 2.0 * n_ * n_;
        return parallel(parts_, threads_awake(work, n_threads_), [&](ptrdiff_t t, int) {
            T* Y = Y_.get() + t * 2 * ld_;
            std::fill_n(Y, 2 * ld_, T(0));
            product(A_.get(), ld_, cut_area(t), cut_area(t + 1), end_, X, Y);
        });
    }

    // Leaves of the pair after the last what is orthogonal to all from row `from` on, and less its part
    // in them in C_. The first time it is the product.
    Status take_part(ptrdiff_t from, bool first) {
        const auto sum = FML_PICK(add_pairs<T>);
        const auto dots = FML_PICK(pair_dots_block<T>);
        const auto add = FML_PICK(pair_add_block<T>);
        const ptrdiff_t count = m_ - from;
        const int threads = threads_awake(2.0 * n_ * count, n_threads_);
        T *W = row(m_), *C = C_.get(), *of_part = C + 2 * (most_ + 2);
        if (first) std::fill_n(W, 2 * ld_, T(0));
        Status status = parallel(parts_, threads, [&](ptrdiff_t t, int) {
            if (first) sum(Y_.get(), ld_, parts_, cut(t), cut(t + 1), W);
            dots(row(from), ld_, count, W, cut(t), cut(t + 1), of_part + t * 2 * count);
        });
        if (status != Status::ok) return status;
        for (ptrdiff_t q = 0; q < 2 * count; ++q) {
            C[q] = 0;
            for (ptrdiff_t t = 0; t < parts_; ++t) C[q] -= of_part[t * 2 * count + q];
        }
        return parallel(parts_, threads, [&](ptrdiff_t t, int) {
            add(row(from), ld_, count, C, cut(t), cut(t + 1), W);
        });
    }

    // Rows p and p + 1, orthogonal to those before, become orthonormal; R: above the diagonal, by
    // rows. False if there is nothing left of one. What rounding has left in them of those before
    // counts for more where little else is left, and is taken out again.
    bool orthonormal_pair(ptrdiff_t p, T* R) {
        constexpr T tiny = std::numeric_limits<T>::min() / eps, far = std::numeric_limits<T>::max();
        T *a = row(p), *b = row(p + 1), before = far;
        R[0] = length_of(a);
        while (R[0] > tiny && R[0] < least() && !(R[0] > before / 10)) {
            before = R[0];
            take_rest(p);
            R[0] = length_of(a);
        }
        if (!(R[0] > tiny)) return false;
        for (ptrdiff_t i = 0; i < end_; ++i) a[i] /= R[0];
        before = length_of(b);
        if (before < least()) before = far;
        R[1] = 0;
        for (;;) {
            const T dot = product_of(a, b);
            for (ptrdiff_t i = 0; i < end_; ++i) b[i] -= dot * a[i];
            R[1] += dot;
            R[2] = length_of(b);
            if (!(R[2] > tiny) || R[2] > before / 10) break;
            before = R[2];
            take_rest(p);
        }
        if (!(R[2] > tiny)) return false;
        for (ptrdiff_t i = 0; i < end_; ++i) b[i] /= R[2];
        return true;
    }

    // Leaves of rows p and p + 1 what is orthogonal to those before.
    void take_rest(ptrdiff_t p) {
        FML_PICK(pair_dots_block<T>)(V_.get(), ld_, p, row(p), 0, end_, C_.get());
        for (ptrdiff_t q = 0; q < 2 * p; ++q) C_[q] = -C_[q];
        FML_PICK(pair_add_block<T>)(V_.get(), ld_, p, C_.get(), 0, end_, row(p));
    }

    T product_of(const T* a, const T* b) const {
        T dots[2];
        FML_PICK(pair_dots_block<T>)(a, ld_, 1, b, 0, end_, dots);
        return dots[0];
    }
    T length_of(const T* a) const { return std::sqrt(product_of(a, a)); }

    // What is less is rounding alone, beside the entries of the projected matrix.
    T least() const { return 100 * eps * most_entry_; }
    // Whether that holds of the next pair: there may be nothing new to multiply.
    bool exhausted() const {
        const T* last = band_.get() + 3 * (m_ - 2);
        return last[2] <= least() || last[5] <= least();
    }

    // The largest Ritz values, and by how much their residuals are beyond what is wanted.
    Status solve(T tol, T* values, T* off) {
        const ptrdiff_t ld = row_stride(m_);
        std::fill_n(H_.get(), work_rows(m_) * ld, T(0));
        for (ptrdiff_t i = 0; i < m_; ++i)
            for (ptrdiff_t j = i; j < std::min(i + 3, m_); ++j)
                H_[i * ld + j] = H_[j * ld + i] = band_[3 * i + j - i];
        T *d = lines_.get(), *e = d + m_, *tau = e + m_;
        bool found = false;
        Status status = reduce(H_.get(), m_, d, e, tau, 1);
        if (status == Status::ok) status = leading(d, e, m_, k_, values, Q_.get(), ld, &found);
        if (status == Status::ok && found)
            status = turn_few(H_.get(), tau, m_, Q_.get(), ld, k_, S_.get(), 1);
        *off = std::numeric_limits<T>::infinity();
        if (status != Status::ok || !found) return status;
        const T *last = band_.get() + 3 * (m_ - 2), most = std::abs(values[0]);
        *off = 0;
        for (ptrdiff_t r = 0; r < k_; ++r) {
            const T *s = S_.get() + r * m_ + m_ - 2, up = last[2] * s[0] + last[4] * s[1],
                    low = last[5] * s[1];
            const T size = std::max(std::abs(values[r]), std::sqrt(eps) * most);
            const T near = tol > 0 ? tol * most : eps * size;
            const T residual = std::sqrt(up * up + low * low);
            *off = std::max(*off, near > 0 ? residual / near : std::numeric_limits<T>::infinity());
        }
        return status;
    }

    // At how many vectors residuals are what is wanted, if they go on to decline as they did; beyond
    // most_ if that is far. At first they hardly decline.
    ptrdiff_t next_look(T off) {
        const T now = std::log(off), before = seen_ ? before_ : -std::log(eps),
                half = T(0.5) * static_cast<T>(m_);
        T left = now / (before - now) * static_cast<T>(m_ - seen_);
        if (!(now < before)) left = std::numeric_limits<T>::infinity();
        before_ = now;
        seen_ = m_;
        if (2 * m_ > most_ && left > static_cast<T>(2 * most_)) return most_ + 1;
        return std::min(most_, m_ + std::max<ptrdiff_t>(4, 2 + std::lround(std::min(left, half))));
    }

    // Of an eigenvalue that is there more than twice two start vectors tell two vectors, which are
    // not resolved before it is told from all others. So one is missing only where two values
    // coincide, and is not missed if the last that is wanted is the same.
    bool is_sure(const T* values, T tol) const {
        const T size = std::abs(values[0]), apart = std::max(1000 * eps, 10 * tol) * size,
                same = std::max(4 * eps, tol) * size;
        for (ptrdiff_t r = 0; r + 2 < k_; ++r)
            if (values[r] - values[r + 1] <= apart && values[r] - values[k_ - 1] > same)
                return false;
        return true;
    }

    ptrdiff_t cut(ptrdiff_t t) const { return end_ / block * t / parts_ * block; }
    // The same where row i has n - i entries.
    ptrdiff_t cut_area(ptrdiff_t t) const {
        const double left = 1 - static_cast<double>(t) / parts_;
        const ptrdiff_t blocks = end_ / block;
        return (blocks - std::lround(std::sqrt(left) * blocks)) * block;
    }

    ptrdiff_t n_, k_, ld_, end_, parts_, most_, m_ = 0, seen_ = 0;
    int n_threads_;
    T factor_ = 1, before_ = 0, most_entry_ = 0;
    // band_: of the projected matrix, the diagonal and two above it, by rows.
    Scratch<T> A_, V_, Y_, C_, band_, S_, H_, Q_, lines_;
};

}  // namespace

template <class T>
Status few_pairs(const T* A, ptrdiff_t n, ptrdiff_t k, T tol, T* values, T* vectors, bool* found,
                 int n_threads) noexcept {
    Lanczos<T> lanczos(n, k, n_threads);
    if (!lanczos) return Status::no_memory;
    const Status status = lanczos.run(A, tol, values, found);
    if (status != Status::ok || !*found) return status;
    for (ptrdiff_t r = 0; r < k; ++r) values[r] /= lanczos.factor();
    return lanczos.combine(vectors);
}

template Status few_pairs(const float*, ptrdiff_t, ptrdiff_t, float, float*, float*, bool*,
                          int) noexcept;
template Status few_pairs(const double*, ptrdiff_t, ptrdiff_t, double, double*, double*, bool*,
                          int) noexcept;

}  // namespace fastml
