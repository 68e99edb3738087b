#include "als/row_solver.inl.h"

template <class T>
void solve_block(const Ratings<T>& ratings, const Regressors<T>& columns, const Ridge& ridge,
                 const Bench<T>& bench, std::ptrdiff_t begin, std::ptrdiff_t end, T* x, T* bias,
                 double* error, double* penalty) {
    RowSolver<T> solver(ratings, columns, ridge, bench);
    for (std::ptrdiff_t i = begin; i < end; ++i)
        solver.run(i, x + i * columns.ld, bias ? bias + i : nullptr, error, penalty);
}

template <class T>
void collect_block(const Ratings<T>& ratings, const Regressors<T>& columns, const Ridge& ridge,
                   const Bench<T>& bench, std::ptrdiff_t i, std::ptrdiff_t begin,
                   std::ptrdiff_t end, bool biased, const Equations<T>& out) {
    RowSolver<T>(ratings, columns, ridge, bench).collect(i, begin, end, biased, out);
}
template <class T>
void finish_row(const Ratings<T>& ratings, const Regressors<T>& columns, const Ridge& ridge,
                const Bench<T>& bench, std::ptrdiff_t i, const Equations<T>& of, T* x, T* bias,
                double* penalty) {
    RowSolver<T>(ratings, columns, ridge, bench).finish(i, of, x, bias, penalty);
}
template <class T>
double squares_block(const Ratings<T>& ratings, const Regressors<T>& columns, const Ridge& ridge,
                     const Bench<T>& bench, std::ptrdiff_t i, std::ptrdiff_t begin,
                     std::ptrdiff_t end, T* x, T* bias) {
    return RowSolver<T>(ratings, columns, ridge, bench).squares_of(i, begin, end, x, bias);
}

// out += the Gram matrix of factors (n, ld), upper triangle, by slices that are summed in T. A: (ld, ld).
template <class T>
void gram_block(const T* factors, std::ptrdiff_t n, std::ptrdiff_t f, std::ptrdiff_t ld, T* A,
                double* out) {
    constexpr std::ptrdiff_t depth = 128;
    for (std::ptrdiff_t q = 0; q < n; q += depth) {
        for (std::ptrdiff_t e = 0; e < ld * ld; ++e) A[e] = 0;
        add_gram(factors + q * ld, ld, n - q < depth ? n - q : depth, f, A, ld);
        for (std::ptrdiff_t i = 0; i < f; ++i)
            for (std::ptrdiff_t j = i; j < f; ++j) out[i * f + j] += A[i * ld + j];
    }
}

// A, whole, becomes the upper triangular U with A = UᵀU, and inverse U⁻¹; both (ld, ld). pivots: ld
// values of scratch.
inline void invert_root(double* A, std::ptrdiff_t f, std::ptrdiff_t ld, double* pivots,
                        double* inverse) {
    factorise(A, f, ld, pivots);
    for (std::ptrdiff_t i = f - 1; i >= 0; --i) {
        double* row = inverse + i * ld;
        for (std::ptrdiff_t j = 0; j < ld; ++j) {
            row[j] = 0;
            if (j < i || j >= f) A[i * ld + j] = 0;
        }
        row[i] = 1;
        for (std::ptrdiff_t j = i + 1; j < f; ++j)
            subtract_row(inverse + j * ld, A[i * ld + j], j, f, row);
        for (std::ptrdiff_t j = i; j < f; ++j) row[j] *= pivots[i];
    }
}

template <class T>
void predict_block(const Model<T>& model, const std::int32_t* users, const std::int32_t* items,
                   std::ptrdiff_t n, T* out) {
    constexpr std::ptrdiff_t ahead = 8;
    for (std::ptrdiff_t e = 0; e < n; ++e) {
        const std::ptrdiff_t user = users[e], item = items[e];
        if (e + ahead < n) {
            if (users[e + ahead] >= 0) FML_PREFETCH(model.user + users[e + ahead] * model.f);
            if (items[e + ahead] >= 0) FML_PREFETCH(model.item + items[e + ahead] * model.f);
        }
        T sum = 0;
        if (user >= 0 && item >= 0) {
            const T *u = model.user + user * model.f, *v = model.item + item * model.f;
#pragma omp simd reduction(+ : sum)
            for (std::ptrdiff_t j = 0; j < model.f; ++j) sum += u[j] * v[j];
        }
        if (model.user_bias && user >= 0) sum += model.user_bias[user];
        if (model.item_bias && item >= 0) sum += model.item_bias[item];
        out[e] = model.base + sum;
    }
}
