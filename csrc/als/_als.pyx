"""Alternating least squares. Arguments are already validated; see csrc/als/als.h."""

from cython cimport floating
from libc.stdint cimport int32_t
from libcpp cimport bool as bool_t

from fastml._native.runtime cimport Status, bind_pool, check, the_pool

cdef extern from "als/als.h" namespace "fastml" nogil:
    cdef cppclass Ratings[T]:
        const Py_ssize_t* indptr
        const int32_t* indices
        const T* target
        const T* scale
        Py_ssize_t n

    cdef cppclass Regressors[T]:
        const T* factors
        const T* offset
        Py_ssize_t f, ld

    cdef enum class Method(int):
        pass

    cdef cppclass Ridge:
        double alpha
        bool_t by_count
        Method method
        int steps
        bool_t nonnegative

    cdef cppclass Model[T]:
        const T* user
        const T* item
        const T* user_bias
        const T* item_bias
        Py_ssize_t f
        T base

    Py_ssize_t c_factor_unit "fastml::factor_unit"
    Status c_solve_rows "fastml::solve_rows"[T](
        const Ratings[T]&, const Regressors[T]&, const Ridge&, T*, T*, double*, double*,
        int) noexcept
    Status c_gram "fastml::gram"[T](
        const T*, Py_ssize_t, Py_ssize_t, Py_ssize_t, double*, int) noexcept
    Status c_whitening "fastml::whitening"(
        const double*, Py_ssize_t, Py_ssize_t, double, double*, double*) noexcept
    Status c_predict_pairs "fastml::predict_pairs"[T](
        const Model[T]&, const int32_t*, const int32_t*, Py_ssize_t, T*, int) noexcept

bind_pool(the_pool())

factor_unit = c_factor_unit
METHODS = ("cholesky", "cg", "blocks")


cdef const floating* pointer(const floating[::1] array) noexcept:
    return &array[0] if array is not None and array.shape[0] else NULL


def solve_rows(
    const floating[:, ::1] factors,  # IN, (columns, ld)
    Py_ssize_t f,
    const Py_ssize_t[::1] indptr,    # IN
    const int32_t[::1] indices,      # IN
    const floating[::1] target,      # IN
    const floating[::1] scale,       # IN, or None
    const floating[::1] offset,      # IN, of the columns, or None
    floating[:, ::1] x,              # INOUT, (rows, ld)
    floating[::1] bias,              # OUT, or None
    double alpha,
    bint by_count,
    str method,
    int steps,
    bint nonnegative,
    bint measure,
    int n_threads,
):
    """Solve every row for the factors of its columns; return (error, penalty)."""
    cdef Ratings[floating] ratings
    cdef Regressors[floating] columns
    cdef Ridge ridge
    cdef double error = 0, penalty = 0
    cdef double* wanted = &error if measure else NULL
    cdef floating* pbias = &bias[0] if bias is not None and bias.shape[0] else NULL
    cdef Status status
    if x.shape[0] == 0 or target.shape[0] == 0:
        x[:] = 0
        if bias is not None:
            bias[:] = 0
        return 0.0, 0.0
    ratings.indptr, ratings.indices, ratings.n = &indptr[0], &indices[0], x.shape[0]
    ratings.target, ratings.scale = &target[0], pointer(scale)
    columns.factors, columns.offset = &factors[0, 0], pointer(offset)
    columns.f, columns.ld = f, factors.shape[1]
    ridge.alpha, ridge.by_count, ridge.steps = alpha, by_count, steps
    ridge.method, ridge.nonnegative = <Method><int>METHODS.index(method), nonnegative
    with nogil:
        status = c_solve_rows(ratings, columns, ridge, &x[0, 0], pbias, wanted, &penalty, n_threads)
    check(status)
    return error, penalty


def gram(
    const floating[:, ::1] factors,  # IN, (n, ld)
    double[:, ::1] out,              # OUT, (f, f)
    int n_threads,
):
    """Write YᵀY to `out`."""
    cdef Status status
    with nogil:
        status = c_gram(&factors[0, 0], factors.shape[0], out.shape[0], factors.shape[1],
                        &out[0, 0], n_threads)
    check(status)


def whitening(
    const double[:, ::1] gram,  # IN, (f, f)
    double alpha,
    double[:, ::1] root,        # OUT, (ld, ld)
    double[:, ::1] inverse,     # OUT
):
    """Write R, with gram + alpha·I = RᵀR, and its inverse."""
    cdef Status status
    with nogil:
        status = c_whitening(&gram[0, 0], gram.shape[0], root.shape[0], alpha, &root[0, 0],
                             &inverse[0, 0])
    check(status)


def predict_pairs(
    const floating[:, ::1] user_factors,  # IN, (users, f)
    const floating[:, ::1] item_factors,  # IN, (items, f)
    const floating[::1] user_bias,        # IN, or None
    const floating[::1] item_bias,        # IN, or None
    double base,
    const int32_t[::1] users,             # IN
    const int32_t[::1] items,             # IN
    floating[::1] out,                    # OUT
    int n_threads,
):
    """Write the prediction for each pair to `out`."""
    cdef Model[floating] model
    cdef Status status
    model.user, model.item = &user_factors[0, 0], &item_factors[0, 0]
    model.user_bias, model.item_bias = pointer(user_bias), pointer(item_bias)
    model.f, model.base = user_factors.shape[1], base
    with nogil:
        status = c_predict_pairs(model, &users[0], &items[0], out.shape[0], &out[0], n_threads)
    check(status)
