#pragma once
#include <cstddef>
#include <cstdint>

#include "common/pool.h"
#include "common/rows.h"

// Linear support vector machines, one problem a solver:
//   primal  min over w  |w|²/2 + sum of C_i loss(e_i),  e = b - X w
//   dual    max over a  b'a - epsilon |a|_1 - |X'a|²/2 - [squared: sum of a_i² / (4 C_i)]
// where the loss is v or v² (`squared`) of
//   classification  v = max(0, b e)           b in {-1, +1}: 1 less the margin; a_i b_i in [0, C_i]
//   regression      v = max(0, |e| - epsilon)                                   |a_i| <= C_i
// and the bounds C_i are infinite for squared losses. w = X'a at the optimum. With the penalty
// |w|_1 in place of |w|²/2 the dual has the constraint |X'a| <= 1, entry by entry, in its place.
// Rows in CSR have no column twice.
namespace fastml {

struct Problem {
    const double* b;  // (n)
    const double* C;  // (n), all > 0
    double epsilon;   // 0 for classification
    double bias;  // X has one more column, of this constant (0: of zeros): w has X.d + 1 entries
    bool regression, squared;
};

// tol: of violations for `descent`, of the gap relative to the primal objective for the others.
struct Limits {
    double tol;
    int max_iter;
    std::uint32_t seed;
    const double* start;  // weights (X.d + 1) that `lasso` starts from, or null
    bool alone;           // no other problem is there to be solved on another thread
};

// Advances by one round, which takes a fraction of a second or works on the pool, until `done`.
// Rounds do the same on any number of threads. X, b, C and the Gram matrix must outlive it.
class Solver {
  public:
    virtual ~Solver() = default;
    virtual Status advance(int n_threads) noexcept = 0;

    bool done = false, converged = false;
    bool halves = false;  // two threads are of use to it, however short its rounds
    int n_iter = 0;
    double primal = 0, gap = 0;  // of the last w; the gap is exact once done
    const double* w = nullptr;   // (X.d + 1), or (X.d + 1, classes)
};

// All return null when out of memory.

// Squared losses: Newton's method on the primal, which is piecewise quadratic, so that it ends on
// the optimum after a few steps (Keerthi and DeCoste, 2005). Of the Hessian only rows that change
// pieces are added or removed. O(n d²) once, O(d²) memory.
template <class T>
Solver* newton(const Rows<T>&, const Problem&, const Limits&) noexcept;

// Losses that are not squared: the method of multipliers, whose problems are piecewise quadratic in w
// and solved by Newton's method (Yan and Li, 2020); some thirty steps in all. Of the Hessian only rows
// that come near their hinges, or leave them, are added or removed. O(n d) a step, O(n d²) some two
// times. Of many rows a few are taken at a time: see narrowing.cpp.
template <class T>
Solver* augmented(const Rows<T>&, const Problem&, const Limits&) noexcept;

// Squared loss with the penalty |w|_1: Newton's method, each step by coordinate descent on the
// quadratic model.
template <class T>
Solver* lasso(const Rows<T>&, const Problem&, const Limits&) noexcept;

// Any loss: dual coordinate descent in random order with shrinking (Hsieh et al., 2008; Ho and
// Lin, 2012) and momentum (see momentum.h), O(entries) a sweep. It stops where the gap is below a
// small part of tol of the objective, or below a fifth of tol and every violation below tol / 2, or,
// in regression, their sum below tol times that of the first sweep.
template <class T>
Solver* descent(const Rows<T>&, const Problem&, const Limits&) noexcept;

// The same with the Gram matrix K (n, n) of the design at hand: O(n) a change, O(1) a row that
// stays. K may be rounded: rows tell when it is solved, and take over where K does not get there.
template <class T>
Solver* gram_descent(const Rows<T>&, const float* K, const Problem&, const Limits&) noexcept;

// Crammer and Singer's loss max over m of (w_m - w_y) x + [m != y], of all classes at once, by dual
// coordinate descent (Keerthi et al., 2008). codes (n) in [0, n_classes).
template <class T>
Solver* crammer_singer(const Rows<T>&, double bias, const std::int32_t* codes, const double* C,
                       std::ptrdiff_t n_classes, const Limits&) noexcept;

// The same by the method of multipliers, for few classes and columns: O(n k d) a step, some forty in
// all, and O((k d)³). n_classes <= 64. w is (n_classes, X.d + 1).
template <class T>
Solver* joint_augmented(const Rows<T>&, double bias, const std::int32_t* codes, const double* C,
                        std::ptrdiff_t n_classes, const Limits&) noexcept;

// The same loss of scores <w, psi(x, m)>, whose features psi (n, k, D) are at hand, by steps along
// the two classes of a row that violate the optimality conditions most. It stops where those
// differ by less than tol.
template <class T>
Solver* compatibility(const T* psi, const std::int32_t* codes, const double* C, std::ptrdiff_t n,
                      std::ptrdiff_t k, std::ptrdiff_t D, const Limits&) noexcept;

// One round of every solver that is not done: side by side where `apart`, unless those that go by
// halves are faster as below, else one after the other with all threads each.
Status advance(Solver* const* solvers, std::ptrdiff_t count, bool apart, int n_threads) noexcept;

// scores (n, k) = X W' + offsets, W (k, d), with sums in double.
template <class T>
Status scores(const Rows<T>& X, const double* W, const double* offsets, std::ptrdiff_t k,
              double* out, int n_threads) noexcept;

// Whether a row has a column twice.
template <class T> Status repeats(const Rows<T>& X, bool* result) noexcept;

// out (X.d + 1) = X'a, a (n).
template <class T>
Status combine(const Rows<T>& X, double bias, const double* a, double* out, int n_threads) noexcept;

}  // namespace fastml
