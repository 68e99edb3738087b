#pragma once
#include <cstddef>
#include <cstdint>

#include "common/pool.h"
#include "common/rows.h"

// X (n, d), not negative, as W·H of rank k, by turns: W with H fixed, then H with W fixed, which is the
// same for Xᵀ. Factors are (·, ld): rows of k values and zeros up to ld, which is whole cache lines; H is kept as B = Hᵀ (d, ld). Grams are (ld, ld). Nothing here depends on
// n_threads. NaN and infinity propagate. n, d, k >= 1.
namespace fastml {

template <class T> struct Factor {
    T* at;
    std::ptrdiff_t n, k, ld;
};

// The least of the values that X stores, infinity if none, and their sum, which tells whether any is NaN
// or infinite: so is the sum then.
template <class T>
Status survey(const Rows<T>& X, double* least, double* sum, int n_threads) noexcept;

// out (ld, ld) = FᵀF.
template <class T>
Status gram(const Factor<T>& F, T* out, int n_threads) noexcept;

// out (n, ld) = X·B.
template <class T>
Status times(const Rows<T>& X, const Factor<T>& B, T* out, int n_threads) noexcept;

// Coordinates of W one after the other in the order of `order` (k), each to where it minimises
// |X - W·H|² / 2 + l1 |W| + the L2 penalty on the diagonal of G = BᵀB; `sweeps` times, or until a tile's
// sweep finds a tenth of the violation of its first.
template <class T> struct Sweep {
    const T* G;
    const std::ptrdiff_t* order;
    T l1;
    int sweeps;
};

// With products = X·B (n, ld), or null, where sparse X and B give them. Then gram = WᵀW, if it is not
// null. *violation: the sum over the coordinates of the size of their projected gradient, when their
// turn first came.
template <class T>
Status descend(const Rows<T>& X, const Factor<T>& B, const T* products, const Sweep<T>& sweep,
               const Factor<T>& W, T* gram, double* violation, int n_threads) noexcept;

// Factors of dense X that take turns: Wᵀ (k, ldw) and H (k, ldh), whose rows have zeros up to ldw and ldh,
// whole cache lines; the gram (ld, ld) of each with its L2 penalty, of which H's is known at first; and
// `sums` (so many as sums_size tells), which a next call takes from the last.
template <class T> struct Turns {
    T *at[2], *gram[2];  // of W, of H
    std::ptrdiff_t k, size[2], ld[2], ldg;
    T *sums, l1[2], l2[2];
    const std::ptrdiff_t* order[2];
    int sweeps[2];
};
template <class T>
std::ptrdiff_t sums_size(std::ptrdiff_t n, std::ptrdiff_t d, std::ptrdiff_t k) noexcept;

// Up to `count` times W's turn and then H's, until the violation is not above tol times *first: that of
// the first iteration, or negative if this is it. *done: how many there were.
template <class T>
Status alternate(const T* X, const Turns<T>& turns, int count, double tol, double* first,
                 double* violation, int* done, int n_threads) noexcept;

// Multiplicative updates for the beta-divergence (Févotte and Idier, 2011):
// W *= (((V^(beta - 2) * X) B) / (V^(beta - 1) B + l1 + l2 W))^gamma, V = W·H. As in scikit-learn,
// values of V below the epsilon of float32 are that where their power would be negative, and so is a
// denominator of zero. flush: makes updated values below the epsilon of double zero. With num and den,
// the updates of mini-batches (Lefèvre, Bach and Févotte, 2011): num = rho num + what the numerator is
// times W^(1 / gamma), den = rho den + what the denominator is, and W = (num / den)^gamma.
template <class T> struct Update {
    double beta;
    T l1, l2, gamma;
    bool flush;
    T *num, *den;  // (n, ld), or null
    T rho;
};

// What H's update takes, of dense X: num, den (d, ld) of the formula with W in B's place, den but for
// beta 1 and 2. And for either update of the other factor gram (beta 2) and sums (ld) of the columns
// (beta 1). Each may be null.
template <class T> struct Yield {
    T *num, *den, *gram, *sums;
};

// `den`: B's gram for beta 2, its sums for beta 1, else null. update: false leaves W as it is.
template <class T>
Status multiply(const Rows<T>& X, const Factor<T>& B, const T* den, const Update<T>& how,
                bool update, const Factor<T>& W, const Yield<T>& yield, int n_threads) noexcept;

// The same with num and den (n, ld) given, before the penalties; den (ld) if one_den.
template <class T>
Status multiply_given(const T* num, const T* den, bool one_den, const Update<T>& how,
                      const Factor<T>& W, const Yield<T>& yield, int n_threads) noexcept;

// *sum = over the entries x > epsilon of float32 and their v, kept from being smaller than that: x log(x /
// v) - x (beta 1), x / v - log(x / v) (beta 0), x^beta - beta x v^(beta - 1) and over all entries
// (beta - 1) v^beta (any other). beta 2: (x - v)² over all entries of dense X, x·v over those of CSR.
template <class T>
Status divergence(const Rows<T>& X, const Factor<T>& B, const Factor<T>& W, double beta,
                  double* sum, int n_threads) noexcept;

}  // namespace fastml
