#include "linear_svm/compatibility.h"

// std headers come before any target region
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/isa.h"
#include "linear_svm/descent.h"
#include "linear_svm/passes.h"

#define FML_KERNEL "linear_svm/compatibility.inl.h"
#include "common/foreach_isa.h"

namespace fastml {
namespace {

constexpr double round_work = 1e7;

template <class T> class Pairs final : public Solver {
  public:
    Pairs(const T* psi, const std::int32_t* codes, const double* C, ptrdiff_t n, ptrdiff_t k,
          ptrdiff_t D, const Limits& limits)
        : limits_(limits), psi_(psi), C_(C), n_(n), a_(n * k), w_(D), scores_(k), order_(n) {
        if (!ok()) return;
        std::fill_n(a_.get(), n * k, 0.0);
        std::fill_n(w_.get(), D, 0.0);
        for (ptrdiff_t i = 0; i < n; ++i) {
            a_[i * k + codes[i]] = C[i];
            order_[i] = static_cast<std::int32_t>(i);
        }
        s_ = {codes, k, D, a_.get(), w_.get(), order_.get(), n, 0x9e3779b97f4a7c15ull + limits.seed,
              1e300, 0};
        w = w_.get();
    }
    bool ok() const { return a_ && w_ && scores_ && order_; }

    Status advance(int) noexcept override {
        const auto sweep = FML_PICK(sweep_pairs<T>);
        const double each = static_cast<double>(n_) * s_.k * s_.D;
        for (double work = 0; work < round_work && !done && n_iter < limits_.max_iter;
             work += each) {
            const bool all = s_.active == n_;
            sweep(psi_, s_);
            ++n_iter;
            if (s_.worst >= limits_.tol) continue;
            done = converged = all;
            s_.active = n_;
            s_.shrinks = 1e300;
        }
        done = done || n_iter >= limits_.max_iter;
        if (done) finish();
        return Status::ok;
    }

  private:
    void finish() {
        const auto score = FML_PICK(pair_scores<T>);
        const double norm = dot(w_.get(), w_.get(), s_.D) / 2;
        double loss = 0, dual = 0;
        for (ptrdiff_t i = 0; i < n_; ++i) {
            const ptrdiff_t y = s_.codes[i];
            score(psi_ + i * s_.k * s_.D, s_, scores_.get());
            double worst = 0;
            for (ptrdiff_t m = 0; m < s_.k; ++m) {
                if (m == y) continue;
                worst = std::max(worst, 1 + scores_[m] - scores_[y]);
                dual += a_[i * s_.k + m];
            }
            loss += C_[i] * worst;
        }
        primal = norm + loss;
        gap = primal - (dual - norm);
        converged = converged && std::isfinite(gap);
    }

    const Limits limits_;
    const T* psi_;
    const double* C_;
    const ptrdiff_t n_;
    Scratch<double> a_, w_, scores_;
    Scratch<std::int32_t> order_;
    Compatibility s_{};
};

}  // namespace

template <class T>
Solver* compatibility(const T* psi, const std::int32_t* codes, const double* C, ptrdiff_t n,
                      ptrdiff_t k, ptrdiff_t D, const Limits& limits) noexcept {
    return checked(new (std::nothrow) Pairs<T>(psi, codes, C, n, k, D, limits));
}
template Solver* compatibility(const float*, const std::int32_t*, const double*, ptrdiff_t,
                               ptrdiff_t, ptrdiff_t, const Limits&) noexcept;
template Solver* compatibility(const double*, const std::int32_t*, const double*, ptrdiff_t,
                               ptrdiff_t, ptrdiff_t, const Limits&) noexcept;

}  // namespace fastml
