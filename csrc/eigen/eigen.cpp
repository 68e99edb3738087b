#include "eigen/eigen.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "common/scratch.h"
#include "eigen/stages.h"

namespace fastml {
namespace {

// How many eigenvalues of a tridiagonal matrix are below x, by Sturm's sequence.
template <class T> ptrdiff_t below(const T* d, const T* e, ptrdiff_t n, T x) {
    constexpr T least = std::numeric_limits<T>::min();
    ptrdiff_t count = 0;
    T q = 1;
    for (ptrdiff_t i = 0; i < n; ++i) {
        q = d[i] - x - (i ? e[i - 1] * (e[i - 1] / q) : T(0));
        if (std::abs(q) < least) q = -least;
        count += q < 0;
    }
    return count;
}

// What lies in `work`, from a cache line on, wherever the caller's memory begins.
template <class T> struct Form {
    ptrdiff_t stride;
    T *d, *e, *tau, *factor, *matrix, *Q, *packed;
    Form(T* work, ptrdiff_t n) : stride(row_stride(n)) {
        d = reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(work) + 63) &
                                 ~std::uintptr_t{63});
        e = d + n;
        tau = e + n;
        factor = tau + n;
        matrix = d + aligned(3 * n + 1);
        Q = matrix + work_rows(n) * stride;
        packed = Q + n * stride;
    }
};

// turn_back where reflectors and vectors are in T, and `vectors` in U.
template <class T, class U>
Status turn_back_as(const Form<T>& form, ptrdiff_t n, const ptrdiff_t* from, ptrdiff_t k,
                    U* vectors, int n_threads) {
    const ptrdiff_t stride = form.stride;
    Scratch<U> reflectors(work_rows(n) * stride), tau(n);
    Scratch<ptrdiff_t> same(n);
    if (!reflectors || !tau || !same) return Status::no_memory;
    for (ptrdiff_t i = 0; i < n; ++i) {
        tau[i] = i + 1 < n ? static_cast<U>(form.tau[i]) : U(0);
        same[i] = i;
    }
    const int threads = threads_for(static_cast<double>(n) * n, n_threads);
    const Status status = parallel(work_rows(n), threads, [&](ptrdiff_t i, int) {
        U* row = reflectors.get() + i * stride;
        std::fill_n(row, stride, U(0));
        if (i >= n) return;
        std::copy(form.matrix + i * stride + i + 1, form.matrix + i * stride + n, row + i + 1);
        if (i < k) std::copy_n(form.Q + from[i] * stride, n, vectors + i * n);
    });
    if (status != Status::ok) return status;
    return turn_back(reflectors.get(), tau.get(), n, vectors, n, same.get(), k, vectors, n_threads);
}

}  // namespace

std::ptrdiff_t eigen_work(std::ptrdiff_t n) noexcept {
    const ptrdiff_t stride = row_stride(n);
    return aligned(3 * n + 1) + (work_rows(n) + n) * stride + packed_size(n) + 64;
}

template <class T>
Status tridiagonal_form(const T* A, ptrdiff_t n, T* work, int n_threads) noexcept {
    const Form<T> form(work, n);
    const Status status = copy_half(A, n, form.matrix, form.d, form.factor, n_threads);
    if (status != Status::ok || *form.factor != *form.factor) return status;
    return reduce(form.matrix, n, form.d, form.e, form.tau, n_threads);
}

template <class T> ptrdiff_t count_below(T part, ptrdiff_t n, const T* work) noexcept {
    const Form<T> form(const_cast<T*>(work), n);
    if (*form.factor != *form.factor) return 0;
    T low = 0, high = 0;
    for (ptrdiff_t i = 0; i < n; ++i) {
        const T left = i ? std::abs(form.e[i - 1]) : T(0);
        const T right = i + 1 < n ? std::abs(form.e[i]) : T(0);
        high = std::max(high, std::abs(form.d[i]) + left + right);
    }
    for (int step = 0; step < 40; ++step) {
        const T middle = low + (high - low) / 2;
        (below(form.d, form.e, n, middle) < n ? low : high) = middle;
    }
    return low > 0 ? below(form.d, form.e, n, part * low) : 0;
}

template <class T, class U>
Status eigenpairs(ptrdiff_t n, ptrdiff_t k, T* values, U* vectors, T* work,
                  int n_threads) noexcept {
    const Form<T> form(work, n);
    if (*form.factor != *form.factor) {
        std::fill_n(values, n, *form.factor);
        std::fill_n(vectors, k * n, static_cast<U>(*form.factor));
        return Status::ok;
    }
    Scratch<T> lines(2 * n);
    Scratch<ptrdiff_t> order(2 * n);
    if (!lines || !order) return Status::no_memory;
    T *d = lines.get(), *e = d + n;
    std::copy_n(form.d, n, d);
    std::copy_n(form.e, n - 1, e);
    const Status status =
        divide(d, e, n, k, form.Q, form.stride, order.get(), form.packed, n_threads);
    if (status != Status::ok) return status;
    for (ptrdiff_t r = 0; r < n; ++r) {
        order[n + r] = order[n - 1 - r];
        values[r] = d[order[n - 1 - r]] / *form.factor;
    }
    if constexpr (std::is_same_v<T, U>)
        return turn_back(form.matrix, form.tau, n, form.Q, form.stride, order.get() + n, k, vectors,
                         n_threads);
    else
        return turn_back_as(form, n, order.get() + n, k, vectors, n_threads);
}

template <class T, class U>
Status leading_pairs(ptrdiff_t n, ptrdiff_t k, T* values, U* vectors, T* work,
                     int n_threads) noexcept {
    const Form<T> form(work, n);
    if (are_few(k, n) && *form.factor == *form.factor) {
        bool found;
        const Status status = leading(form.d, form.e, n, k, values, form.Q, form.stride, &found);
        if (status != Status::ok) return status;
        for (ptrdiff_t r = 0; r < k; ++r) values[r] /= *form.factor;
        if (found)
            return turn_few(form.matrix, form.tau, n, form.Q, form.stride, k, vectors, n_threads);
    }
    Scratch<T> all(n);
    if (!all) return Status::no_memory;
    const Status status = eigenpairs(n, k, all.get(), vectors, work, n_threads);
    std::copy_n(all.get(), k, values);
    return status;
}

#define FML_INSTANTIATE(T)                                                      \
    template Status tridiagonal_form(const T*, ptrdiff_t, T*, int) noexcept;    \
    template ptrdiff_t count_below(T, ptrdiff_t, const T*) noexcept;            \
    template Status eigenpairs(ptrdiff_t, ptrdiff_t, T*, T*, T*, int) noexcept; \
    template Status leading_pairs(ptrdiff_t, ptrdiff_t, T*, T*, T*, int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)
template Status eigenpairs(ptrdiff_t, ptrdiff_t, double*, float*, double*, int) noexcept;
template Status leading_pairs(ptrdiff_t, ptrdiff_t, double*, float*, double*, int) noexcept;

}  // namespace fastml
