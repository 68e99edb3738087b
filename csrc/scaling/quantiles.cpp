// Order statistics of columns. Of many values a sample says about where each lies; one pass then
// counts what is below that bracket and collects what is inside, a few in a hundred, among which
// the value is selected (Floyd and Rivest, 1975, for all columns at once).
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>

#include "common/blocks.h"
#include "common/isa.h"
#include "common/scratch.h"
#include "scaling/scaling.h"
#include "scaling/select.h"

namespace fastml {

template <class T> using Bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

// What is known of values between two that were seen in a sample.
template <class T> struct Bracket {
    T low, high;
    ptrdiff_t less, at_low, at_high;  // how many are below low, or equal to either
};

}  // namespace fastml

#define FML_KERNEL "scaling/quantiles.inl.h"
#include "common/foreach_isa.h"

namespace fastml {
namespace {

// Below so many rows a column is copied and selected from.
constexpr ptrdiff_t few_rows = 1 << 14;
// Rows and columns that are looked at together; a row of so many doubles is two cache lines.
constexpr ptrdiff_t piece = 1 << 12, strip = 16;

template <class T> const T* column_of(const Matrix<T>& X, ptrdiff_t j) {
    return X.data + j * (X.by_columns ? X.stride : 1);
}
template <class T> ptrdiff_t step_of(const Matrix<T>& X) { return X.by_columns ? 1 : X.stride; }

// The values of a column that are not NaN; returns where they end.
template <class T> T* copy_column(const Matrix<T>& X, ptrdiff_t j, T* to, bool* infinite) {
    const T* x = column_of(X, j);
    bool any = false;
    for (ptrdiff_t i = 0, step = step_of(X); i < X.n; ++i, x += step) {
        *to = *x;
        to += *x == *x;
        any |= std::fabs(*x) == std::numeric_limits<T>::infinity();
    }
    *infinite = any;
    return to;
}

template <class T> struct Wanted {
    const double* q;
    ptrdiff_t n_q, d;
    T *below, *above;
    ptrdiff_t* count;

    void select(ptrdiff_t j, T* begin, T* end) const {
        count[j] = end - begin;
        Selection<T> at(begin, end);
        for (ptrdiff_t k = 0; k < n_q; ++k) {
            const Ranks r(q[k], count[j]);
            below[k * d + j] = count[j] ? at(r.below) : std::numeric_limits<T>::quiet_NaN();
            above[k * d + j] = count[j] ? at(r.above) : std::numeric_limits<T>::quiet_NaN();
        }
    }
};

// A row of each of `size` equal parts of X, not all in the same place of them.
struct Sample {
    ptrdiff_t n, size;
    explicit Sample(ptrdiff_t n_)
        : n(n_), size(std::min<ptrdiff_t>(std::max<ptrdiff_t>(n_ / 64, 1 << 11), 1 << 16)) {}
    ptrdiff_t row(ptrdiff_t t) const {
        const ptrdiff_t part = n / size;
        const std::uint64_t mixed = (static_cast<std::uint64_t>(t) + 1) * 0x9E3779B97F4A7C15u;
        return t * part + static_cast<ptrdiff_t>((mixed >> 33) % static_cast<std::uint64_t>(part));
    }
    // How far the rank of a quantile may well be off in the sample: four standard deviations.
    double slack(double q, ptrdiff_t seen) const { return 4 * std::sqrt(seen * q * (1 - q)) + 2; }
    // Room for what is inside a bracket, and half as much again.
    ptrdiff_t room() const {
        return static_cast<ptrdiff_t>(3 * slack(0.5, size) / size * static_cast<double>(n)) + 64;
    }
};

template <class T> class Brackets {
  public:
    Brackets(const Matrix<T>& X, const Wanted<T>& wanted, int n_threads)
        : X_(X), wanted_(wanted), sample_(X.n), per_column_(wanted.n_q), room_(sample_.room()),
          n_threads_(n_threads), brackets_(X.d * per_column_), held_(X.d * per_column_ * room_),
          used_(X.d * per_column_), missing_(X.d), totals_(X.d * per_column_ * 3) {}
    explicit operator bool() const { return brackets_ && held_ && used_ && missing_ && totals_; }

    Status guess() {
        const ptrdiff_t size = sample_.size;
        Scratch<T> values(n_threads_ * size);
        if (!values) return Status::no_memory;
        return parallel(X_.d, n_threads_, [&](ptrdiff_t j, int worker) {
            T* const begin = values.get() + worker * size;
            T* end = begin;
            for (ptrdiff_t t = 0; t < size; ++t) {
                const T x = column_of(X_, j)[sample_.row(t) * step_of(X_)];
                *end = x;
                end += x == x;
            }
            std::sort(begin, end);
            bracket_column(j, begin, end - begin);
        });
    }

    Status count(bool* infinite) {
        const ptrdiff_t strips = ceil_div(X_.d, strip), tasks = ceil_div(X_.n, piece) * strips;
        Scratch<T> values(n_threads_ * 2 * piece);
        Scratch<bool> found(tasks);
        if (!values || !found) return Status::no_memory;
        const Status status = parallel(tasks, n_threads_, [&](ptrdiff_t t, int worker) {
            const ptrdiff_t begin = t / strips * piece, j0 = t % strips * strip;
            const ptrdiff_t rows = std::min(piece, X_.n - begin);
            found[t] = false;
            for (ptrdiff_t j = j0; j < std::min(X_.d, j0 + strip); ++j)
                count_piece(j, begin, rows, values.get() + worker * 2 * piece, found[t]);
        });
        if (status == Status::ok)
            *infinite = std::any_of(found.get(), found.get() + tasks, [](bool f) { return f; });
        return status;
    }

    // A column whose values do not lie where the sample had them is selected from a copy.
    Status select() {
        Scratch<bool> astray(X_.d);
        if (!astray) return Status::no_memory;
        Status status = parallel(X_.d, n_threads_, [&](ptrdiff_t j, int) {
            const ptrdiff_t c = wanted_.count[j] = X_.n - missing_[j];
            astray[j] = false;
            for (ptrdiff_t k = 0; k < per_column_ && !astray[j]; ++k)
                astray[j] = !c || !find(j, k, Ranks(wanted_.q[k], c));
        });
        const bool any = std::any_of(astray.get(), astray.get() + X_.d, [](bool a) { return a; });
        if (status != Status::ok || !any) return status;
        Scratch<T> values(n_threads_ * X_.n);
        if (!values) return Status::no_memory;
        return parallel(X_.d, n_threads_, [&](ptrdiff_t j, int worker) {
            T* const begin = values.get() + worker * X_.n;
            bool infinite;
            if (astray[j]) wanted_.select(j, begin, copy_column(X_, j, begin, &infinite));
        });
    }

  private:
    using Count = std::atomic<ptrdiff_t>;

    void bracket_column(ptrdiff_t j, const T* sorted, ptrdiff_t seen) {
        new (&missing_[j]) Count(0);
        for (ptrdiff_t k = 0; k < per_column_; ++k) {
            const ptrdiff_t b = j * per_column_ + k;
            const double q = wanted_.q[k], at = q * static_cast<double>(seen - 1);
            const double low = std::floor(at - sample_.slack(q, seen));
            const double high = std::ceil(at + sample_.slack(q, seen));
            constexpr T inf = std::numeric_limits<T>::infinity();
            brackets_[b] = {low < 0 ? -inf : sorted[static_cast<ptrdiff_t>(low)],
                            high < seen ? sorted[static_cast<ptrdiff_t>(high)] : inf, 0, 0, 0};
            new (&used_[b]) Count(0);
            for (ptrdiff_t s = 0; s < 3; ++s) new (&totals_[3 * b + s]) Count(0);
        }
    }

    // In what order pieces arrive does not matter: all that is asked of them is which values
    // there are.
    void count_piece(ptrdiff_t j, ptrdiff_t begin, ptrdiff_t rows, T* values, bool& infinite) {
        const auto survey = FML_PICK(survey_block<T>);
        const auto classify = FML_PICK(classify_block<T>);
        const ptrdiff_t step = step_of(X_);
        const T* x = column_of(X_, j) + begin * step;
        T* const inside = values + piece;
        if (step != 1) {
            for (ptrdiff_t i = 0; i < rows; ++i) values[i] = x[i * step];
            x = values;
        }
        ptrdiff_t missing = 0;
        survey(x, rows, missing, infinite);
        if (missing) missing_[j].fetch_add(missing, std::memory_order_relaxed);
        for (ptrdiff_t k = 0; k < per_column_; ++k) {
            const ptrdiff_t b = j * per_column_ + k;
            Bracket<T> mine = brackets_[b];
            const ptrdiff_t found = classify(x, rows, mine, inside);
            totals_[3 * b].fetch_add(mine.less, std::memory_order_relaxed);
            totals_[3 * b + 1].fetch_add(mine.at_low, std::memory_order_relaxed);
            totals_[3 * b + 2].fetch_add(mine.at_high, std::memory_order_relaxed);
            const ptrdiff_t at = used_[b].fetch_add(found, std::memory_order_relaxed);
            if (at + found <= room_)
                std::memcpy(held_.get() + b * room_ + at, inside, found * sizeof(T));
        }
    }

    bool find(ptrdiff_t j, ptrdiff_t k, const Ranks& ranks) {
        const ptrdiff_t b = j * per_column_ + k, inside = used_[b];
        if (inside > room_) return false;
        T* const held = held_.get() + b * room_;
        Selection<T> at(held, held + inside);
        T* const to[2] = {wanted_.below + k * X_.d + j, wanted_.above + k * X_.d + j};
        for (int side = 0; side < 2; ++side) {
            ptrdiff_t rank = (side ? ranks.above : ranks.below) - totals_[3 * b];
            if (rank < 0) return false;
            if (rank < totals_[3 * b + 1]) {
                *to[side] = brackets_[b].low;
                continue;
            }
            rank -= totals_[3 * b + 1];
            if (rank < inside)
                *to[side] = at(rank);
            else if (rank - inside < totals_[3 * b + 2])
                *to[side] = brackets_[b].high;
            else
                return false;
        }
        return true;
    }

    const Matrix<T>& X_;
    const Wanted<T>& wanted_;
    const Sample sample_;
    const ptrdiff_t per_column_, room_;
    const int n_threads_;
    Scratch<Bracket<T>> brackets_;
    Scratch<T> held_;
    Scratch<Count> used_, missing_, totals_;
};

}  // namespace

template <class T>
Status order_statistics(const Matrix<T>& X, const double* q, ptrdiff_t n_q, T* below, T* above,
                        ptrdiff_t* count, bool* infinite, int n_threads) noexcept {
    const Wanted<T> wanted{q, n_q, X.d, below, above, count};
    n_threads = threads_for(4 * passed_over * X.n * X.d, n_threads);
    if (X.n >= few_rows) {
        Brackets<T> brackets(X, wanted, n_threads);
        if (!brackets) return Status::no_memory;
        Status status = brackets.guess();
        if (status == Status::ok) status = brackets.count(infinite);
        return status == Status::ok && !*infinite ? brackets.select() : status;
    }
    Scratch<T> column(n_threads * X.n);
    Scratch<bool> found(X.d);
    if (!column || !found) return Status::no_memory;
    const Status status = parallel(X.d, n_threads, [&](ptrdiff_t j, int worker) {
        T* const begin = column.get() + worker * X.n;
        wanted.select(j, begin, copy_column(X, j, begin, &found[j]));
    });
    *infinite = std::any_of(found.get(), found.get() + X.d, [](bool f) { return f; });
    return status;
}

#define FML_INSTANTIATE(T)                                                               \
    template Status order_statistics(const Matrix<T>&, const double*, ptrdiff_t, T*, T*, \
                                     ptrdiff_t*, bool*, int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
