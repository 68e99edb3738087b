#pragma once
// What joins sweeps of descent, and blocks of rows within one. Internal to the family.
#include "linear_svm/descent.h"
#include "linear_svm/passes.h"

namespace fastml {

// A sweep leads from the last point to the present one, and the last point came from the one before
// it. On the plane of the two differences the dual is a quadratic, whose best point is known:
// descent becomes a method of conjugate directions, which needs a half to two thirds of the sweeps.
// Variables that would leave their bounds stop there.
//
// A sweep may have been one of two halves of the rows, each with weights of its own. Both have then
// moved w in the direction that all rows have in common, and their sum goes too far; the plane says
// how far is best, and where it does not, half of the sum is never worse than where both began.
template <class T> class Momentum {
  public:
    Momentum(Passes<T>& passes, const Problem& problem)
        : passes_(passes), problem_(problem), w_(3 * passes.width), a_(3 * passes.n),
          last_(w_.get()), past_(w_.get() + passes.width), now_(w_.get() + 2 * passes.width),
          last_a_(a_.get()), past_a_(a_.get() + passes.n), now_a_(a_.get() + 2 * passes.n) {}
    explicit operator bool() const { return w_ && a_; }

    // The point before any sweep.
    void start(const Coordinate* rows, const double* w);
    // On from where a sweep ended, rows and w = X'a. Where it went by halves, w is the first one's
    // and `other` the second one's; both become the new point. The objective does not grow.
    Status move(Coordinate* rows, double* w, double* other, int n_threads);

    double dual = 0;  // the objective where the last sweep ended

  private:
    struct Plane;
    Status plane(const Coordinate* rows, double* w, const double* other, int n_threads, Plane* sum);
    Status carry(Coordinate* rows, double* w, const Plane& s, bool halves, int n_threads);
    Status place(Coordinate* rows, double* w, double c1, double c2, int n_threads, double* change);
    Status stay(Coordinate* rows, double* w, double part, int n_threads);
    Status renew(const Coordinate* rows, double* w, int n_threads);

    Passes<T>& passes_;
    const Problem problem_;
    Scratch<double> w_, a_;
    // By how much steps since may have multiplied the rounding errors of w = X'a; and how many
    // points of the three have been computed anew since that was too much.
    double growth_ = 1;
    int renewed_ = 0;
    double *last_, *past_, *now_;        // (d + 1)
    double *last_a_, *past_a_, *now_a_;  // (n)
};

}  // namespace fastml
