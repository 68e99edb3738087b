"""Linear support vector machines; see csrc/linear_svm/linear_svm.h for what arguments are."""

from cython cimport floating
from libc.stdint cimport int32_t, uint32_t
from libcpp cimport bool as bool_t

import numpy as np

from fastml._native.rows cimport CRows, Rows, of
from fastml._native.runtime cimport Status, bind_pool, check, the_pool

cdef extern from "linear_svm/linear_svm.h" namespace "fastml" nogil:
    cdef cppclass CProblem "fastml::Problem":
        const double* b
        const double* C
        double epsilon
        double bias
        bool_t regression
        bool_t squared

    cdef cppclass Limits:
        double tol
        int max_iter
        uint32_t seed
        const double* start
        bool_t alone

    cdef cppclass CSolver "fastml::Solver":
        bool_t done
        bool_t converged
        bool_t halves
        int n_iter
        double primal
        double gap
        const double* w

    CSolver* c_newton "fastml::newton"[T](const CRows[T]&, const CProblem&, const Limits&) noexcept
    CSolver* c_augmented "fastml::augmented"[T](
        const CRows[T]&, const CProblem&, const Limits&) noexcept
    CSolver* c_descent "fastml::descent"[T](
        const CRows[T]&, const CProblem&, const Limits&) noexcept
    CSolver* c_lasso "fastml::lasso"[T](const CRows[T]&, const CProblem&, const Limits&) noexcept
    CSolver* c_crammer_singer "fastml::crammer_singer"[T](
        const CRows[T]&, double, const int32_t*, const double*, Py_ssize_t, const Limits&) noexcept
    CSolver* c_joint_augmented "fastml::joint_augmented"[T](
        const CRows[T]&, double, const int32_t*, const double*, Py_ssize_t, const Limits&) noexcept
    CSolver* c_compatibility "fastml::compatibility"[T](
        const T*, const int32_t*, const double*, Py_ssize_t, Py_ssize_t, Py_ssize_t,
        const Limits&) noexcept
    CSolver* c_gram_descent "fastml::gram_descent"[T](
        const CRows[T]&, const float*, const CProblem&, const Limits&) noexcept
    Status c_advance "fastml::advance"(CSolver* const*, Py_ssize_t, bool_t, int) noexcept
    Status c_scores "fastml::scores"[T](
        const CRows[T]&, const double*, const double*, Py_ssize_t, double*, int) noexcept

    Status c_repeats "fastml::repeats"[T](const CRows[T]&, bool_t*) noexcept
    Status c_combine "fastml::combine"[T](
        const CRows[T]&, double, const double*, double*, int) noexcept

bind_pool(the_pool())


cdef class Solver:
    """One problem, and how far it is solved."""

    cdef CSolver* c
    cdef object kept  # what it borrows

    def __dealloc__(self):
        del self.c

    @property
    def done(self):
        return self.c.done

    @property
    def converged(self):
        return self.c.converged

    @property
    def halves(self):
        return self.c.halves

    @property
    def n_iter(self):
        return self.c.n_iter

    @property
    def primal(self):
        return self.c.primal

    @property
    def gap(self):
        return self.c.gap

    def coef(self, double[::1] out):
        """Copy the weights, that of the constant column last."""
        cdef Py_ssize_t p
        for p in range(out.shape[0]):
            out[p] = self.c.w[p]


cdef CSolver* make(str method, Rows rows, CProblem problem, Limits limits, K,
                   const floating* kind) except NULL:
    cdef CRows[floating] X = of[floating](rows, kind)
    cdef const float[:, ::1] gram
    cdef CSolver* made = NULL
    if method == "newton":
        made = c_newton(X, problem, limits)
    elif method == "augmented":
        made = c_augmented(X, problem, limits)
    elif method == "lasso":
        made = c_lasso(X, problem, limits)
    elif method == "descent":
        made = c_descent(X, problem, limits)
    elif method == "gram_descent":
        gram = K
        made = c_gram_descent(X, &gram[0, 0], problem, limits)
    else:
        raise ValueError(f"there is no method {method!r}")
    return held(made)


cdef CSolver* make_joint(str method, Rows rows, double bias, const int32_t[::1] codes,
                         const double[::1] C, Py_ssize_t n_classes, Limits limits,
                         const floating* kind) except NULL:
    cdef CRows[floating] X = of[floating](rows, kind)
    if method == "augmented":
        return held(c_joint_augmented(X, bias, &codes[0], &C[0], n_classes, limits))
    return held(c_crammer_singer(X, bias, &codes[0], &C[0], n_classes, limits))


cdef CSolver* held(CSolver* made) except NULL:
    if made is NULL:
        raise MemoryError("fastml: a solver could not allocate its memory")
    return made


def solver(
    str method,
    Rows rows,
    double bias,
    const double[::1] b,  # IN
    const double[::1] C,  # IN
    double epsilon,
    bint regression,
    bint squared,
    double tol,
    int max_iter,
    unsigned int seed,
    K=None,               # IN, (n, n) in float32, for "gram_descent"
    const double[::1] start=None,  # IN, (d + 1), for "lasso"
    bint alone=False,     # whether no other problem goes on beside it
):
    """A solver of `method` for one problem."""
    cdef Solver made = Solver()
    cdef CProblem problem
    cdef Limits limits
    problem.b, problem.C = &b[0], &C[0]
    problem.epsilon, problem.bias = epsilon, bias
    problem.regression, problem.squared = regression, squared
    limits.tol, limits.max_iter, limits.seed = tol, max_iter, seed
    limits.start = NULL
    limits.alone = alone
    if start is not None:
        limits.start = &start[0]
    made.kept = rows, b, C, K
    if rows.is_single:
        made.c = make[float](method, rows, problem, limits, K, NULL)
    else:
        made.c = make[double](method, rows, problem, limits, K, NULL)
    return made


def joint_solver(
    str method,                # "augmented" or "descent"
    Rows rows,
    double bias,
    const int32_t[::1] codes,  # IN, in [0, n_classes)
    const double[::1] C,       # IN
    Py_ssize_t n_classes,
    double tol,
    int max_iter,
    unsigned int seed,
):
    """A solver for all classes at once."""
    cdef Solver made = Solver()
    cdef Limits limits
    limits.tol, limits.max_iter, limits.seed = tol, max_iter, seed
    limits.start = NULL
    made.kept = rows, codes, C
    if rows.is_single:
        made.c = make_joint[float](method, rows, bias, codes, C, n_classes, limits, NULL)
    else:
        made.c = make_joint[double](method, rows, bias, codes, C, n_classes, limits, NULL)
    return made


def compatibility_solver(
    const floating[:, :, ::1] psi,  # IN, (n, k, D)
    const int32_t[::1] codes,       # IN, in [0, k)
    const double[::1] C,            # IN
    double tol,
    int max_iter,
    unsigned int seed,
):
    """A solver for scores that are linear in features of a row and a class."""
    cdef Solver made = Solver()
    cdef Limits limits
    limits.tol, limits.max_iter, limits.seed = tol, max_iter, seed
    limits.start = NULL
    made.kept = psi, codes, C
    made.c = held(c_compatibility(&psi[0, 0, 0], &codes[0], &C[0], psi.shape[0], psi.shape[1],
                                  psi.shape[2], limits))
    return made


def advance(list solvers, bint apart, int n_threads):
    """One round of every solver that is not done."""
    cdef Py_ssize_t k, n = len(solvers)
    cdef Py_ssize_t[::1] pointers = np.empty(n, np.intp)
    cdef Status status
    for k in range(n):
        pointers[k] = <Py_ssize_t>(<Solver?>solvers[k]).c
    with nogil:
        status = c_advance(<CSolver* const*>&pointers[0], n, apart, n_threads)
    check(status)


def repeats(Rows rows):
    """Whether a sparse row has a column twice."""
    cdef CRows[float] single
    cdef CRows[double] double_
    cdef bint is_single = rows.is_single
    cdef bool_t result = False
    cdef Status status
    if is_single:
        single = of[float](rows, NULL)
    else:
        double_ = of[double](rows, NULL)
    with nogil:
        if is_single:
            status = c_repeats(single, &result)
        else:
            status = c_repeats(double_, &result)
    check(status)
    return bool(result)


def combine(
    Rows rows,
    double bias,
    const double[::1] a,  # IN, (n)
    double[::1] out,      # OUT, (d + 1)
    int n_threads,
):
    """The sum of a_i x_i."""
    cdef CRows[float] single
    cdef CRows[double] double_
    cdef bint is_single = rows.is_single
    cdef Status status
    if is_single:
        single = of[float](rows, NULL)
    else:
        double_ = of[double](rows, NULL)
    with nogil:
        if is_single:
            status = c_combine(single, bias, &a[0], &out[0], n_threads)
        else:
            status = c_combine(double_, bias, &a[0], &out[0], n_threads)
    check(status)


def scores(
    Rows rows,
    const double[:, ::1] W,     # IN, (k, d)
    const double[::1] offsets,  # IN, (k)
    double[:, ::1] out,         # OUT, (n, k)
    int n_threads,
):
    """What is left of (n, d) rows times k rows of weights."""
    cdef CRows[float] single
    cdef CRows[double] double_
    cdef bint is_single = rows.is_single
    cdef Status status
    if is_single:
        single = of[float](rows, NULL)
    else:
        double_ = of[double](rows, NULL)
    with nogil:
        if is_single:
            status = c_scores(single, &W[0, 0], &offsets[0], W.shape[0], &out[0, 0], n_threads)
        else:
            status = c_scores(double_, &W[0, 0], &offsets[0], W.shape[0], &out[0, 0], n_threads)
    check(status)
