// std headers come before any target region
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/isa.h"
#include "common/scratch.h"
#include "eigen/stages.h"

#define FML_KERNEL "eigen/few.inl.h"
#include "common/foreach_isa.h"

namespace fastml {
namespace {

constexpr int most_solves = 8;

// Less is nothing beside a vector's length, and numbers that are not normal take long.
template <class T>
constexpr T nothing = std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon() /
                      std::numeric_limits<T>::epsilon();
template <class T> T or_nothing(T x) { return std::abs(x) < nothing<T> ? T(0) : x; }

// T - x of a tridiagonal T, factorised with exchanges of rows (LAPACK's dlagtf has the method).
template <class T> class Shifted {
  public:
    explicit Shifted(ptrdiff_t n) : n_(n), parts_(4 * n), turned_(n) {}
    explicit operator bool() const { return parts_ && turned_; }

    // Pivots below `least` in size become that.
    void factorise(const T* d, const T* e, T x, T least) {
        T a = d[0] - x, b = n_ > 1 ? e[0] : T(0);
        const auto pivot = [&](T p) { return 1 / (std::abs(p) < least ? least : p); };
        T *inverse = parts_.get(), *right = inverse + n_, *second = right + n_, *less = second + n_;
        for (ptrdiff_t i = 0; i + 1 < n_; ++i) {
            const T under = e[i], next = d[i + 1] - x, after = i + 2 < n_ ? e[i + 1] : T(0);
            turned_[i] = std::abs(a) < std::abs(under);
            if (turned_[i]) {
                inverse[i] = pivot(under);
                right[i] = next;
                second[i] = after;
                less[i] = a * inverse[i];
                a = b - less[i] * next;
                b = -less[i] * after;
            } else {
                inverse[i] = pivot(a);
                right[i] = b;
                second[i] = 0;
                less[i] = under * inverse[i];
                a = next - less[i] * b;
                b = after;
            }
        }
        inverse[n_ - 1] = pivot(a);
        right[n_ - 1] = second[n_ - 1] = 0;
    }

    void solve(T* x) const {
        const T *inverse = parts_.get(), *right = inverse + n_, *second = right + n_,
                *less = second + n_;
        for (ptrdiff_t i = 0; i + 1 < n_; ++i) {
            const T here = x[i], next = x[i + 1];
            x[i] = turned_[i] ? next : here;
            x[i + 1] = or_nothing((turned_[i] ? here : next) - less[i] * x[i]);
        }
        T next = 0, after = 0;
        for (ptrdiff_t i = n_ - 1; i >= 0; --i) {
            const T here = (x[i] - right[i] * next - second[i] * after) * inverse[i];
            after = next;
            x[i] = next = or_nothing(here);
        }
    }

  private:
    ptrdiff_t n_;
    Scratch<T> parts_;
    Scratch<char> turned_;
};

template <class T> T length_of(const T* x, ptrdiff_t n) {
    T square = 0;
    for (ptrdiff_t i = 0; i < n; ++i) square += x[i] * x[i];
    return std::sqrt(square);
}

// The k largest values in descending order, each within an interval of `width`: as many numbers as
// are counted at once cut those of a group, and each count tells of all.
template <class T>
void bisect(const T* d, const T* squares, ptrdiff_t n, ptrdiff_t k, T norm, T width, T least,
            T* values) {
    constexpr ptrdiff_t shifts = few_shifts<T>;
    const auto count = FML_PICK(count_each<T>);
    for (ptrdiff_t first = 0; first < k; first += shifts) {
        const ptrdiff_t here = std::min(shifts, k - first), points = shifts / here;
        T low[shifts], high[shifts], x[shifts], found[shifts];
        std::fill_n(low, here, -norm);
        std::fill_n(high, here, norm);
        const auto open = [&](ptrdiff_t r) { return high[r] - low[r] > width; };
        // Each pass takes half of an interval at least, of more than a unit of rounding.
        for (int pass = 0; pass < 100 && (open(0) || open(here - 1)); ++pass) {
            std::fill_n(x, shifts, norm);
            for (ptrdiff_t r = 0; r < here; ++r)
                for (ptrdiff_t p = 0; p < points; ++p)
                    x[r * points + p] = low[r] + (high[r] - low[r]) * (T(p + 1) / T(points + 1));
            count(d, squares, n, least, x, found);
            for (ptrdiff_t r = 0; r < here; ++r)
                for (ptrdiff_t s = 0; s < here * points; ++s) {
                    if (found[s] < static_cast<T>(n - first - r))
                        low[r] = std::max(low[r], x[s]);
                    else
                        high[r] = std::min(high[r], x[s]);
                }
        }
        for (ptrdiff_t r = first; r < first + here; ++r) {
            values[r] = low[r - first] + (high[r - first] - low[r - first]) / 2;
            if (r > 0) values[r] = std::min(values[r], values[r - 1]);
        }
    }
}

// Of a symmetric tridiagonal matrix, with rounding errors of `rounding` in size.
template <class T> struct Lines {
    const T *d, *e;
    ptrdiff_t n;
    T rounding;

    // |T x - value x|².
    T residual(const T* x, T value) const {
        T square = 0;
        for (ptrdiff_t i = 0; i < n; ++i) {
            const T left = i ? e[i - 1] * x[i - 1] : T(0);
            const T right = i + 1 < n ? e[i] * x[i + 1] : T(0);
            const T off = left + (d[i] - value) * x[i] + right;
            square += off * off;
        }
        return square;
    }
};

// Row r of V: the vector of `value`, orthogonal to the rows before, from numbers that are as good as
// random. Whether that was found.
template <class T>
bool iterate(const Lines<T>& lines, T value, Shifted<T>& shifted, T* V, ptrdiff_t stride,
             ptrdiff_t r) {
    const ptrdiff_t n = lines.n;
    T* x = V + r * stride;
    auto state = static_cast<std::uint64_t>(r);
    for (ptrdiff_t i = 0; i < n; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        x[i] = static_cast<T>(static_cast<std::int64_t>(state) >> 40) / T(1 << 23);
    }
    const auto normalise = [&] {
        const T length = length_of(x, n);
        if (!(length > 0 && length <= std::numeric_limits<T>::max())) return false;
        for (ptrdiff_t i = 0; i < n; ++i) x[i] = or_nothing(x[i] / length);
        return true;
    };
    shifted.factorise(lines.d, lines.e, value, lines.rounding);
    if (!normalise()) return false;
    for (int solve = 0; solve < most_solves; ++solve) {
        shifted.solve(x);
        for (int twice = 0; twice < 2; ++twice) {
            if (!normalise()) return false;
            FML_PICK(leave_rest<T>)(V, stride, r, n, x);
        }
        if (!normalise()) return false;
        const T off = 4 * lines.rounding;
        if (solve > 0 && lines.residual(x, value) <= off * off) return true;
    }
    return false;
}

}  // namespace

template <class T>
Status leading(const T* d, const T* e, ptrdiff_t n, ptrdiff_t k, T* values, T* V, ptrdiff_t stride,
               bool* found) noexcept {
    constexpr T eps = std::numeric_limits<T>::epsilon();
    *found = false;
    Scratch<T> squares(n);
    Shifted<T> shifted(n);
    if (!squares || !shifted) return Status::no_memory;
    T norm = 0, most = 1;
    for (ptrdiff_t i = 0; i < n; ++i) {
        const T left = i ? std::abs(e[i - 1]) : T(0), right = i + 1 < n ? std::abs(e[i]) : T(0);
        norm = std::max(norm, std::abs(d[i]) + left + right);
        squares[i] = right * right;
        most = std::max(most, squares[i]);
    }
    if (norm == 0) return Status::ok;
    // Bounds of all values, and a little more, so that every count is right there.
    bisect(d, squares.get(), n, k, norm * (1 + 4 * eps), eps * norm,
           std::numeric_limits<T>::min() * most, values);
    const Lines<T> lines{d, e, n, eps * norm};
    for (ptrdiff_t r = 0; r < k; ++r)
        if (!iterate(lines, values[r], shifted, V, stride, r)) return Status::ok;
    *found = true;
    return Status::ok;
}

template <class T, class U>
Status turn_few(const T* A, const T* tau, ptrdiff_t n, const T* V, ptrdiff_t stride, ptrdiff_t k,
                U* out, int n_threads) noexcept {
    constexpr ptrdiff_t cols = few_columns<T>;
    const ptrdiff_t panels = ceil_div(k, cols), ld = row_stride(n);
    Scratch<T> strips(panels * n * cols);
    if (!strips) return Status::no_memory;
    const auto turn = FML_PICK(turn_columns<T>);
    return parallel(panels, threads_for(2.0 * n * n * k, n_threads), [&](ptrdiff_t p, int) {
        const ptrdiff_t first = p * cols, here = std::min(cols, k - first);
        T* panel = strips.get() + p * n * cols;
        for (ptrdiff_t i = 0; i < n; ++i)
            for (ptrdiff_t c = 0; c < cols; ++c)
                panel[i * cols + c] = c < here ? V[(first + c) * stride + i] : T(0);
        turn(A, ld, tau, n, panel);
        for (ptrdiff_t c = 0; c < here; ++c)
            for (ptrdiff_t i = 0; i < n; ++i)
                out[(first + c) * n + i] = static_cast<U>(panel[i * cols + c]);
    });
}

#define FML_INSTANTIATE(T)                                                                      \
    template Status leading(const T*, const T*, ptrdiff_t, ptrdiff_t, T*, T*, ptrdiff_t,        \
                            bool*) noexcept;                                                    \
    template Status turn_few(const T*, const T*, ptrdiff_t, const T*, ptrdiff_t, ptrdiff_t, T*, \
                             int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)
template Status turn_few(const double*, const double*, ptrdiff_t, const double*, ptrdiff_t,
                         ptrdiff_t, float*, int) noexcept;

}  // namespace fastml
