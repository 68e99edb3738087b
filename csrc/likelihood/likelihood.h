#pragma once
#include <cstddef>
#include <cstdint>

#include "common/pool.h"

// Factors by the likelihood of ratings that depend on a score: damped Newton steps, one for each row of
// a sparse matrix, the other side's factors being fixed. The step itself is a weighted ridge regression
// (csrc/als); here is what comes before it and after it. Nothing depends on n_threads.
namespace fastml {

// The logarithm of the likelihood of n ratings, each with its score, and two derivatives by the score.
template <class T>
using Likelihood = void (*)(const T* ratings, const T* scores, std::ptrdiff_t n, T* value, T* first,
                            T* second);

enum class Family : int { gaussian, bernoulli, poisson };

// Without terms that do not depend on scores. bernoulli: score = log p / (1 - p); poisson: log of the
// mean. The address is of the code for this machine.
template <class T> Likelihood<T> likelihood_of(Family family) noexcept;

// Of n ratings, on all threads.
template <class T>
Status evaluate(Likelihood<T> likelihood, const T* ratings, const T* scores, std::ptrdiff_t n,
                T* value, T* first, T* second, int n_threads) noexcept;

// CSR rows; the score of an entry is offset + x·y, y being a row of factors (columns, ld), and offset
// that of its column. All ld values count.
template <class T> struct Scored {
    const std::ptrdiff_t* indptr;
    const std::int32_t* indices;
    const T* ratings;
    const T* factors;
    const T* offset;
    std::ptrdiff_t n, ld;
};

// The regression of a Newton step from x (n, ld): with weights scale² = the curvature of minus the log
// likelihood, |target - scale·x·y|². An entry's curvature is at least what would move its score by
// `longest_move`. scores and both results have an entry each; loss (n) = minus the log likelihood.
constexpr double longest_move = 4;
template <class T>
Status linearise(const Scored<T>& rows, Likelihood<T> likelihood, const T* x, T* scores, T* target,
                 T* scale, double* loss, int n_threads) noexcept;

// x += t (step - x) row by row, t being the first of 1, 1/2, 1/4 ... by which the row's loss, with
// |x|² penalty / 2, does not grow; 0 if there is none of a few. scores and loss are from linearise;
// scores are changed, and `moves` (an entry each) is scratch. *total = the loss of all rows, with their
// penalty; penalty (n), 0 or more.
template <class T>
Status damp(const Scored<T>& rows, Likelihood<T> likelihood, const double* penalty, const T* step,
            T* x, T* scores, T* moves, const double* loss, double* total, int n_threads) noexcept;

}  // namespace fastml
