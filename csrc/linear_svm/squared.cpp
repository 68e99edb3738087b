#include "linear_svm/squared.h"

// std headers come before any target region
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/isa.h"

#define FML_KERNEL "linear_svm/squared.inl.h"
#include "common/foreach_isa.h"

namespace fastml {

template <class T>
SquaredSolver<T>::SquaredSolver(const Rows<T>& X, const Problem& problem, const Limits& limits)
    : problem_(problem), limits_(limits), passes_(X, problem.bias), gram_(passes_),
      first_(passes_.n, passes_.width), second_(passes_.n, passes_.width), inside_(passes_.n),
      rows_(passes_.n), kappa_(passes_.n) {
    if (!SquaredSolver::ok()) return;
    std::fill_n(inside_.get(), passes_.n, static_cast<signed char>(0));
    std::fill_n(now_->w.get(), passes_.width, 0.0);
    std::fill_n(now_->z.get(), passes_.n, 0.0);
    w = now_->w.get();
}

template <class T>
Status SquaredSolver<T>::measure(Point& p, bool z_is_known, int n_threads) noexcept {
    const auto rows = FML_PICK(squared_rows);
    SquaredSums parts[summed_blocks] = {};
    const Status status =
        passes_.sweep(z_is_known ? nullptr : p.w.get(), p.z.get(), p.a.get(), p.u.get(), n_threads,
                      [&](ptrdiff_t begin, ptrdiff_t end, ptrdiff_t b) {
                          rows(problem_, begin, end, p.z.get(), p.a.get(), parts + b);
                      });
    p.sums = {};
    for (ptrdiff_t b = 0; b < passes_.grid.blocks; ++b) {
        p.sums.loss += parts[b].loss;
        p.sums.dual += parts[b].dual;
    }
    return status;
}

template <class T> Status SquaredSolver<T>::update_gram(int n_threads) noexcept {
    ptrdiff_t came = 0, left = 0, stayed = 0;
    for (ptrdiff_t i = 0; i < passes_.n; ++i) {
        const bool before = inside_[i], now = now_->a[i] != 0;
        came += now && !before;
        left += before && !now;
        stayed += before && now;
    }
    const bool anew = stayed < left;
    if (anew) gram_.clear();
    ptrdiff_t m = 0;
    for (ptrdiff_t i = 0; i < passes_.n; ++i) {
        const bool before = !anew && inside_[i], now = now_->a[i] != 0;
        inside_[i] = now;
        if (before == now) continue;
        rows_[m] = static_cast<std::int32_t>(i);
        kappa_[m++] = now ? 2 * problem_.C[i] : -2 * problem_.C[i];
    }
    return gram_.add(rows_.get(), kappa_.get(), m, n_threads);
}

template <class T>
Status SquaredSolver<T>::slope(const double* dz, double t, double* result, int n_threads) noexcept {
    const auto slope = FML_PICK(squared_slope);
    double parts[summed_blocks] = {};
    const Status status = passes_.sweep(nullptr, nullptr, nullptr, nullptr, n_threads,
                                        [&](ptrdiff_t begin, ptrdiff_t end, ptrdiff_t b) {
                                            parts[b] +=
                                                slope(problem_, begin, end, now_->z.get(), dz, t);
                                        });
    *result = 0;
    for (ptrdiff_t b = 0; b < passes_.grid.blocks; ++b) *result += parts[b];
    return status;
}

template class SquaredSolver<float>;
template class SquaredSolver<double>;

}  // namespace fastml
