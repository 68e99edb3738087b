#pragma once
#include <cstddef>
#include <cstdint>

#include "common/pool.h"

// Alternating least squares: a ridge regression for each row of a sparse matrix, the regressors being
// the factors of its columns. Factors are (n, ld), rows of f values and zeros up to ld, a multiple of
// factor_unit. Nothing here depends on n_threads.
//
// Implicit feedback (Hu, Koren and Volinsky, 2008) is the same in another basis: with
// YᵀY + alpha·I = RᵀR, factors Y·R⁻¹ and rows R·x, the entries that are not stored have become a
// penalty of 1, and c(p - x·y)² is (target - scale·x·y)² but for a constant.
namespace fastml {

constexpr std::ptrdiff_t factor_unit = 16;

// CSR rows, all finite. Without scale (null), row i wants |target - x·y - bias|² small over its
// entries; with it, |target - scale·x·y|².
template <class T> struct Ratings {
    const std::ptrdiff_t* indptr;
    const std::int32_t* indices;
    const T* target;
    const T* scale;
    std::ptrdiff_t n;
};

template <class T> struct Regressors {
    const T* factors;
    const T* offset;  // taken off the targets of a column, or null
    std::ptrdiff_t f, ld;
};

// Of rows with very many entries, cholesky and cg share the work among threads, and are exact.
enum class Method : int { cholesky, cg, blocks };

struct Ridge {
    double alpha;      // the penalty of |x|² + bias²
    bool by_count;     // ... times the number of entries
    Method method;     // how rows are solved that have more entries than a few
    int steps;         // of conjugate gradients or passes over blocks, from where x is
    bool nonnegative;  // x, not the bias; by coordinate descent
};

// Solves every row: x (n, ld) and bias (n, or null for none), from which cg, blocks and nonnegative
// start. A row without entries becomes 0, and so does what a singular system leaves open.
// *error = sum over entries of (target - x·y - bias)², or with scale of q(q - 2·target), q = scale·x·y;
// null: not wanted. *penalty = what alpha makes of x and bias.
template <class T>
Status solve_rows(const Ratings<T>& ratings, const Regressors<T>& columns, const Ridge& ridge, T* x,
                  T* bias, double* error, double* penalty, int n_threads) noexcept;

// out (f, f) = YᵀY of factors (n, ld), whole, summed in double.
template <class T>
Status gram(const T* factors, std::ptrdiff_t n, std::ptrdiff_t f, std::ptrdiff_t ld, double* out,
            int n_threads) noexcept;

// The upper triangular R with gram (f, f) + alpha·I = RᵀR, and its inverse, both (ld, ld) with zeros
// around. What a singular matrix leaves open is 0 in both.
Status whitening(const double* gram, std::ptrdiff_t f, std::ptrdiff_t ld, double alpha,
                 double* root, double* inverse) noexcept;

// out[e] = base + u[users[e]]·v[items[e]] + their biases (or null); factors are (·, f). A number
// below 0 is of nobody, who has no factors and no bias.
template <class T> struct Model {
    const T *user, *item, *user_bias, *item_bias;
    std::ptrdiff_t f;
    T base;
};
template <class T>
Status predict_pairs(const Model<T>& model, const std::int32_t* users, const std::int32_t* items,
                     std::ptrdiff_t n, T* out, int n_threads) noexcept;

}  // namespace fastml
