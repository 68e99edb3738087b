#pragma once
// What joins sweeps of descent, and blocks of rows within one. Internal to the family.
#include "linear_svm/descent.h"
#include "linear_svm/passes.h"

namespace fastml {

// A sweep leads from the last point to the present one, and the last point came from the one before
// it. On the plane of the two differences the dual is a quadratic, whose best point is known:
// descent becomes a method of conjugate directions, which needs a half to two thirds of the sweeps.
// Variables that would leave their bounds stop there.
template <class T> class Momentum {
  public:
    Momentum(Passes<T>& passes, double epsilon)
        : passes_(passes), epsilon_(epsilon), w_(2 * passes.width), a_(3 * passes.n),
          last_(w_.get()), past_(w_.get() + passes.width), last_a_(a_.get()),
          past_a_(a_.get() + passes.n), now_a_(a_.get() + 2 * passes.n) {}
    explicit operator bool() const { return w_ && a_; }

    // The point before any sweep.
    void start(const Coordinate* rows, const double* w);
    // On from where a sweep ended, rows and w = X'a; the objective does not grow.
    Status move(Coordinate* rows, double* w, int n_threads);

  private:
    struct Plane;
    Plane plane(const Coordinate* rows, const double* w) const;
    double place(Coordinate* rows, double* w, double c1, double c2);

    Passes<T>& passes_;
    const double epsilon_;
    Scratch<double> w_, a_;
    double *last_, *past_;               // (d + 1)
    double *last_a_, *past_a_, *now_a_;  // (n)
};

}  // namespace fastml
