// Order statistics of columns, by selection.
#include <limits>

#include "common/blocks.h"
#include "common/scratch.h"
#include "scaling/scaling.h"
#include "scaling/select.h"

namespace fastml {

template <class T>
Status order_statistics(const Matrix<T>& X, const double* q, ptrdiff_t n_q, T* below, T* above,
                        ptrdiff_t* count, bool* infinite, int n_threads) noexcept {
    const ptrdiff_t d = X.d;
    n_threads = threads_for(4 * passed_over * X.n * d, n_threads);
    Scratch<T> column(n_threads * X.n);
    Scratch<bool> found(d);
    if (!column || !found) return Status::no_memory;
    const Status status = parallel(d, n_threads, [&](ptrdiff_t j, int worker) {
        T* const values = column.get() + worker * X.n;
        T* end = values;
        const ptrdiff_t step = X.by_columns ? 1 : X.stride;
        const T* x = X.data + j * (X.by_columns ? X.stride : 1);
        bool any = false;
        for (ptrdiff_t i = 0; i < X.n; ++i, x += step) {
            *end = *x;
            end += *x == *x;
            any |= std::fabs(*x) == std::numeric_limits<T>::infinity();
        }
        found[j] = any;
        count[j] = end - values;
        Selection<T> select(values, end);
        for (ptrdiff_t k = 0; k < n_q; ++k) {
            const Ranks r(q[k], count[j]);
            below[k * d + j] = count[j] ? select(r.below) : std::numeric_limits<T>::quiet_NaN();
            above[k * d + j] = count[j] ? select(r.above) : std::numeric_limits<T>::quiet_NaN();
        }
    });
    *infinite = std::any_of(found.get(), found.get() + d, [](bool f) { return f; });
    return status;
}

#define FML_INSTANTIATE(T)                                                               \
    template Status order_statistics(const Matrix<T>&, const double*, ptrdiff_t, T*, T*, \
                                     ptrdiff_t*, bool*, int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
