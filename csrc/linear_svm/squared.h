#pragma once
// Squared losses on the primal: what Newton's method and the lasso share. Internal to the family.
#include <utility>

#include "linear_svm/passes.h"

namespace fastml {

struct SquaredSums {
    double loss, dual;  // the sum of losses, and of the dual's terms of rows
};

// A point w, with all that belongs to it.
struct Point {
    Scratch<double> w, z, a, u;  // (d + 1), (n), (n), (d + 1): z = X w, a = -loss'(z), u = X'a
    SquaredSums sums{};
    Point(ptrdiff_t n, ptrdiff_t width) : w(width), z(n), a(n), u(width) {}
    explicit operator bool() const { return w && z && a && u; }
};

// Common to solvers on the primal of squared losses: a current point, a trial one, and the Hessian
// of the loss, sum of 2 C x x' over the rows with a != 0, kept up to date.
template <class T> class SquaredSolver : public Solver {
  public:
    SquaredSolver(const Rows<T>& X, const Problem& problem, const Limits& limits);
    virtual bool ok() const {
        return passes_ && gram_ && first_ && second_ && inside_ && rows_ && kappa_;
    }

  protected:
    void exchange() {
        std::swap(now_, trial_);
        this->w = now_->w.get();
    }
    // z (unless given), a and u of p.w.
    Status measure(Point& p, bool z_is_known, int n_threads) noexcept;
    // Adds to the Hessian the rows that came in, takes off those that left.
    Status update_gram(int n_threads) noexcept;
    // Derivative of the loss along `dz` at now_.z + t dz.
    Status slope(const double* dz, double t, double* result, int n_threads) noexcept;

    const Problem problem_;
    const Limits limits_;
    Passes<T> passes_;
    Gram<T> gram_;
    Point *now_ = &first_, *trial_ = &second_;

  private:
    Point first_, second_;
    Scratch<signed char> inside_;
    Scratch<std::int32_t> rows_;
    Scratch<double> kappa_;
};

}  // namespace fastml
