#include "linear_svm/multiclass.h"

// std headers come before any target region
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/isa.h"
#include "linear_svm/descent.h"
#include "linear_svm/passes.h"

#define FML_KERNEL "linear_svm/multiclass.inl.h"
#include "common/foreach_isa.h"

namespace fastml {
namespace {

constexpr double round_work = 1e7;

template <class T> class CrammerSinger final : public Solver {
  public:
    CrammerSinger(const Rows<T>& X, double bias, const std::int32_t* codes, const double* C,
                  ptrdiff_t k, const Limits& limits)
        : limits_(limits), passes_(X, bias), stride_(ceil_div(k, 8) * 8), a_(passes_.n * k),
          w_(passes_.width * stride_), norms_(passes_.n), scratch_(3 * stride_), order_(passes_.n) {
        if (!ok()) return;
        const ptrdiff_t n = passes_.n;
        std::fill_n(a_.get(), n * k, 0.0);
        std::fill_n(w_.get(), passes_.width * stride_, 0.0);
        for (ptrdiff_t i = 0; i < n; ++i) order_[i] = static_cast<std::int32_t>(i);
        s_ = {codes,
              C,
              bias,
              n,
              k,
              stride_,
              a_.get(),
              w_.get(),
              norms_.get(),
              scratch_.get(),
              order_.get(),
              n,
              0x9e3779b97f4a7c15ull + limits.seed,
              1e300,
              0};
        w = w_.get();
    }
    bool ok() const { return passes_ && a_ && w_ && norms_ && scratch_ && order_; }

    Status advance(int) noexcept override {
        if (n_iter == 0) passes_.bodies.norms(passes_.X, s_.bias, 0, s_.n, norms_.get());
        const auto sweep = FML_PICK(sweep_classes<T>);
        const double each = 2 * passes_.entries * stride_;
        for (double work = 0; work < round_work && !done && n_iter < limits_.max_iter;
             work += each) {
            const bool all = s_.active == s_.n;
            sweep(passes_.X, s_);
            ++n_iter;
            if (s_.worst >= limits_.tol) continue;
            done = converged = all;
            s_.active = s_.n;
            s_.shrinks = 1e300;
        }
        done = done || n_iter >= limits_.max_iter;
        if (done) finish();
        return Status::ok;
    }

  private:
    void finish() {
        const double norm = dot(w_.get(), w_.get(), passes_.width * stride_) / 2;
        const auto score = FML_PICK(class_scores<T>);
        double loss = 0, dual = 0;
        for (ptrdiff_t i = 0; i < s_.n; ++i) {
            const ptrdiff_t y = s_.codes[i];
            score(passes_.X, s_, i, scratch_.get());
            double worst = 0;
            if (!(s_.norms[i] > 0)) dual += s_.C[i];  // what its a would add, which moves no weight
            for (ptrdiff_t m = 0; m < s_.k; ++m) {
                if (m == y) continue;
                worst = std::max(worst, 1 + scratch_[m] - scratch_[y]);
                dual -= a_[i * s_.k + m];
            }
            loss += s_.C[i] * worst;
        }
        primal = norm + loss;
        gap = primal - (dual - norm);
        converged = converged && std::isfinite(gap);
    }

    const Limits limits_;
    Passes<T> passes_;
    const ptrdiff_t stride_;
    Scratch<double> a_, w_, norms_, scratch_;
    Scratch<std::int32_t> order_;
    Multiclass s_{};
};

}  // namespace

template <class T>
Solver* crammer_singer(const Rows<T>& X, double bias, const std::int32_t* codes, const double* C,
                       ptrdiff_t n_classes, const Limits& limits) noexcept {
    return checked(new (std::nothrow) CrammerSinger<T>(X, bias, codes, C, n_classes, limits));
}
template Solver* crammer_singer(const Rows<float>&, double, const std::int32_t*, const double*,
                                ptrdiff_t, const Limits&) noexcept;
template Solver* crammer_singer(const Rows<double>&, double, const std::int32_t*, const double*,
                                ptrdiff_t, const Limits&) noexcept;

}  // namespace fastml
