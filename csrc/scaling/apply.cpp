// Affine maps of columns, and rows divided by their norms.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/blocks.h"
#include "common/isa.h"
#include "common/scratch.h"
#include "scaling/scaling.h"

namespace fastml {
constexpr std::ptrdiff_t norm_lanes = 8, norm_piece = 1 << 13;
}

#define FML_KERNEL "scaling/apply.inl.h"
#include "common/foreach_isa.h"

namespace fastml {
namespace {

// Values of a task: some 100 us.
constexpr ptrdiff_t task_size = 1 << 18;
// Parameters are repeated until there are as many, so that the inner loop is long.
constexpr ptrdiff_t long_row = 256;

// d parameters, `fold` times.
template <class P> struct Repeated {
    Scratch<P> at;
    Repeated(const P* values, ptrdiff_t d, ptrdiff_t fold) : at(d * fold) {
        if (!at) return;
        for (ptrdiff_t f = 0; f < fold; ++f) std::copy_n(values, d, at.get() + f * d);
    }
};

// X in C order, as rows of `width` values, the last of which may be shorter.
template <class T, class P>
Status apply_rows(const Matrix<T>& X, const Affine<T, P>& f, T* out, ptrdiff_t out_stride,
                  bool* infinite, int n_threads) {
    using Map = Affine<T, P>;
    const bool flat = X.stride == X.d && out_stride == X.d;
    const ptrdiff_t fold = flat ? std::min(ceil_div(long_row, X.d), X.n) : 1;
    const Repeated<P> shift(f.shift, X.d, fold), scale(f.scale, X.d, fold);
    const ptrdiff_t per_task = ceil_div(std::max<ptrdiff_t>(1, task_size / X.d), fold) * fold;
    const ptrdiff_t tasks = ceil_div(X.n, per_task);
    Scratch<bool> found(tasks);
    if (!shift.at || !scale.at || !found) return Status::no_memory;
    const Map g{f.form, shift.at.get(), scale.at.get(), f.floor, f.ceiling};
    const auto run = FML_PICK(apply_block<Map>);
    const Status status = parallel(tasks, n_threads, [&](ptrdiff_t t, int) {
        const ptrdiff_t begin = t * per_task, rows = std::min(per_task, X.n - begin);
        const T* from = X.data + begin * X.stride;
        T* to = out + begin * out_stride;
        const ptrdiff_t whole = rows / fold, rest = rows % fold;
        found[t] = run(from, whole, fold * X.d, fold * X.stride, g, to, fold * out_stride);
        from += whole * fold * X.stride;
        to += whole * fold * out_stride;
        if (rest) found[t] |= run(from, 1, rest * X.d, X.stride, g, to, out_stride);
    });
    *infinite = std::any_of(found.get(), found.get() + tasks, [](bool b) { return b; });
    return status;
}

// X in Fortran order: each column has parameters of its own.
template <class T, class P>
Status apply_columns(const Matrix<T>& X, const Affine<T, P>& f, T* out, ptrdiff_t out_stride,
                     bool* infinite, int n_threads) {
    using Map = Affine<T, P>;
    const ptrdiff_t pieces = ceil_div(X.n, task_size), tasks = X.d * pieces;
    Scratch<bool> found(tasks);
    if (!found) return Status::no_memory;
    const auto run = FML_PICK(apply_block<Map>);
    const Status status = parallel(tasks, n_threads, [&](ptrdiff_t t, int) {
        const ptrdiff_t j = t / pieces, begin = t % pieces * task_size;
        const ptrdiff_t end = std::min(X.n, begin + task_size);
        P shift[long_row], scale[long_row];
        std::fill_n(shift, std::min(long_row, X.n), f.shift[j]);
        std::fill_n(scale, std::min(long_row, X.n), f.scale[j]);
        const Map g{f.form, shift, scale, f.floor, f.ceiling};
        const T* from = X.data + j * X.stride + begin;
        T* to = out + j * out_stride + begin;
        const ptrdiff_t whole = (end - begin) / long_row, rest = (end - begin) % long_row;
        found[t] = run(from, whole, long_row, long_row, g, to, long_row);
        found[t] |= run(from + whole * long_row, 1, rest, 0, g, to + whole * long_row, 0);
    });
    *infinite = std::any_of(found.get(), found.get() + tasks, [](bool b) { return b; });
    return status;
}

template <class T>
Status normalize_rows(const Matrix<T>& X, Norm kind, T tiny, T* norm, T* out, ptrdiff_t out_stride,
                      bool* finite, int n_threads) {
    const ptrdiff_t per_task = std::max<ptrdiff_t>(1, task_size / X.d);
    const ptrdiff_t tasks = ceil_div(X.n, per_task);
    Scratch<bool> fine(tasks);
    if (!fine) return Status::no_memory;
    const auto run = FML_PICK(normalize_rows_block<T>);
    const Status status = parallel(tasks, n_threads, [&](ptrdiff_t t, int) {
        const ptrdiff_t begin = t * per_task, rows = std::min(per_task, X.n - begin);
        fine[t] = run(kind, X.data + begin * X.stride, rows, X.d, X.stride, tiny, norm + begin,
                      out + begin * out_stride, out_stride);
    });
    *finite = std::all_of(fine.get(), fine.get() + tasks, [](bool b) { return b; });
    return status;
}

template <class T>
Status norms_across(const Matrix<T>& X, Norm kind, T tiny, T* norm, bool* finite, int n_threads) {
    constexpr ptrdiff_t strip = 256;
    const ptrdiff_t width = std::min(strip, X.n), strips = ceil_div(X.n, width);
    const ptrdiff_t pieces = ceil_div(X.d, norm_piece);
    Scratch<double> parts(pieces * X.n), work(n_threads * norm_lanes * width);
    if (!parts || !work) return Status::no_memory;
    const auto run = FML_PICK(norms_across_block<T>);
    const Status status = parallel(strips * pieces, n_threads, [&](ptrdiff_t t, int worker) {
        const ptrdiff_t i = t % strips * width, j = t / strips * norm_piece;
        run(kind, X.data + j * X.stride + i, std::min(width, X.n - i),
            std::min(norm_piece, X.d - j), X.stride, parts.get() + t / strips * X.n + i,
            work.get() + worker * norm_lanes * width);
    });
    if (status != Status::ok) return status;
    *finite = true;
    for (ptrdiff_t i = 0; i < X.n; ++i) {
        double sum = 0;
        for (ptrdiff_t p = 0; p < pieces; ++p) {
            const double part = parts[p * X.n + i];
            sum = kind != Norm::largest ? sum + part : part > sum || part != part ? part : sum;
        }
        const T found = static_cast<T>(kind == Norm::l2 ? std::sqrt(sum) : sum);
        *finite &= found <= std::numeric_limits<T>::max();
        norm[i] = found < tiny ? T(1) : found;
    }
    return status;
}

}  // namespace

template <class T, class P>
Status apply(const Matrix<T>& X, const Affine<T, P>& f, T* out, ptrdiff_t out_stride,
             bool* infinite, int n_threads) noexcept {
    const auto run = X.by_columns ? apply_columns<T, P> : apply_rows<T, P>;
    return run(X, f, out, out_stride, infinite, threads_for(passed_over * X.n * X.d, n_threads));
}

template <class T>
Status normalize(const Matrix<T>& X, Norm kind, T tiny, T* norm, T* out, ptrdiff_t out_stride,
                 bool* finite, int n_threads) noexcept {
    n_threads = threads_for(passed_over * X.n * X.d, n_threads);
    if (!X.by_columns)
        return normalize_rows(X, kind, tiny, norm, out, out_stride, finite, n_threads);
    const Status status = norms_across(X, kind, tiny, norm, finite, n_threads);
    Scratch<T> zero(X.n);
    if (status != Status::ok || !zero) return zero ? status : Status::no_memory;
    std::fill_n(zero.get(), X.n, T(0));
    constexpr T inf = std::numeric_limits<T>::infinity();
    bool infinite;
    return apply_rows<T, T>({X.data, X.d, X.n, X.stride, false},
                            {Form::standardize, zero.get(), norm, -inf, inf}, out, out_stride,
                            &infinite, n_threads);
}

#define FML_INSTANTIATE(T, P)                                                          \
    template Status apply(const Matrix<T>&, const Affine<T, P>&, T*, ptrdiff_t, bool*, \
                          int) noexcept;
FML_INSTANTIATE(float, float)
FML_INSTANTIATE(float, double)
FML_INSTANTIATE(double, double)
#undef FML_INSTANTIATE
#define FML_INSTANTIATE(T) \
    template Status normalize(const Matrix<T>&, Norm, T, T*, T*, ptrdiff_t, bool*, int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
