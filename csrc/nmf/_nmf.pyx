"""Non-negative matrix factorisation. Arguments are already validated; see csrc/nmf/nmf.h."""

from cython cimport floating
from libcpp cimport bool as bool_t

from fastml._native cimport rows as rows_of
from fastml._native.rows cimport CRows, Rows
from fastml._native.runtime cimport Status, bind_pool, check, the_pool

cdef extern from "nmf/nmf.h" namespace "fastml" nogil:
    cdef cppclass Factor[T]:
        T* at
        Py_ssize_t n
        Py_ssize_t k
        Py_ssize_t ld

    cdef cppclass Sweep[T]:
        const T* G
        const Py_ssize_t* order
        T l1
        int sweeps

    Status c_survey "fastml::survey"[T](const CRows[T]&, double*, double*, int) noexcept
    Status c_gram "fastml::gram"[T](const Factor[T]&, T*, int) noexcept
    Status c_times "fastml::times"[T](const CRows[T]&, const Factor[T]&, T*, int) noexcept
    Status c_descend "fastml::descend"[T](
        const CRows[T]&, const Factor[T]&, const T*, const Sweep[T]&, const Factor[T]&, T*,
        double*, int) noexcept

    cdef cppclass Turns[T]:
        T* at[2]
        T* gram[2]
        Py_ssize_t k
        Py_ssize_t size[2]
        Py_ssize_t ld[2]
        Py_ssize_t ldg
        T* sums
        T l1[2]
        T l2[2]
        const Py_ssize_t* order[2]
        int sweeps[2]

    Py_ssize_t c_sums_size "fastml::sums_size"[T](Py_ssize_t, Py_ssize_t, Py_ssize_t) noexcept
    Status c_alternate "fastml::alternate"[T](
        const T*, const Turns[T]&, int, double, double*, double*, int*, int) noexcept

    cdef cppclass Update[T]:
        double beta
        T l1
        T l2
        T gamma
        bool_t flush
        T* num
        T* den
        T rho

    cdef cppclass Yield[T]:
        T* num
        T* den
        T* gram
        T* sums

    Status c_multiply "fastml::multiply"[T](
        const CRows[T]&, const Factor[T]&, const T*, const Update[T]&, bool_t, const Factor[T]&,
        const Yield[T]&, int) noexcept
    Status c_multiply_given "fastml::multiply_given"[T](
        const T*, const T*, bool_t, const Update[T]&, const Factor[T]&, const Yield[T]&,
        int) noexcept
    Status c_divergence "fastml::divergence"[T](
        const CRows[T]&, const Factor[T]&, const Factor[T]&, double, double*, int) noexcept

bind_pool(the_pool())


cdef Factor[floating] factor(floating[:, ::1] at, Py_ssize_t k) noexcept:
    cdef Factor[floating] F
    F.at, F.n, F.k, F.ld = &at[0, 0], at.shape[0], k, at.shape[1]
    return F


cdef floating* pointer(floating[:, ::1] array) noexcept:
    return &array[0, 0] if array is not None else NULL


ctypedef (double, double, double, double, bint) How  # beta, l1, l2, gamma, flush


cdef Update[floating] update_of(
        How how, floating[:, ::1] num, floating[:, ::1] den, double rho) noexcept:
    cdef Update[floating] update
    update.beta, update.l1, update.l2 = how[0], <floating>how[1], <floating>how[2]
    update.gamma, update.flush = <floating>how[3], how[4]
    update.num, update.den, update.rho = pointer(num), pointer(den), <floating>rho
    return update


def survey(
    Rows X,  # IN
    int n_threads,
):
    """The least of the values that X stores, and their sum."""
    cdef bint single = X.is_single
    cdef double least = 0, sum = 0
    cdef Status status
    with nogil:
        if single:
            status = c_survey(X.single, &least, &sum, n_threads)
        else:
            status = c_survey(X.double_, &least, &sum, n_threads)
    check(status)
    return least, sum


def gram(
    floating[:, ::1] F,    # IN, (n, ld)
    floating[:, ::1] out,  # OUT, (ld, ld)
    int n_threads,
):
    """Write FᵀF."""
    cdef Factor[floating] c_F = factor(F, F.shape[1])
    cdef Status status
    with nogil:
        status = c_gram(c_F, &out[0, 0], n_threads)
    check(status)


def times(
    floating[:, ::1] B,    # IN, (d, ld)
    Rows X,                # IN
    floating[:, ::1] out,  # OUT, (n, ld)
    int n_threads,
):
    """Write X·B."""
    cdef CRows[floating] c_X = rows_of.of[floating](X, NULL)
    cdef Factor[floating] c_B = factor(B, B.shape[1])
    cdef Status status
    with nogil:
        status = c_times(c_X, c_B, &out[0, 0], n_threads)
    check(status)


def descend(
    floating[:, ::1] W,             # INOUT, (n, ld)
    Rows X,                         # IN, sparse, or None
    floating[:, ::1] B,             # IN, (d, ld), or products, (n, ld)
    const floating[:, ::1] G,       # IN, (ld, ld)
    const Py_ssize_t[::1] order,    # IN, (k)
    double l1,
    int sweeps,
    floating[:, ::1] gram,          # OUT, (ld, ld), or None
    int n_threads,
):
    """Sweep over the coordinates of W; return the violation. Without X, B is X·B."""
    cdef CRows[floating] c_X
    cdef Py_ssize_t k = order.shape[0]
    cdef Factor[floating] c_W = factor(W, k), c_B = factor(B, k)
    cdef Sweep[floating] sweep
    cdef const floating* products = NULL
    cdef floating* p_gram = pointer(gram)
    cdef double violation = 0
    cdef Status status
    if X is None:
        products = c_B.at
        c_X.data = c_X.shift = NULL
        c_X.indices = c_X.indptr = NULL
        c_X.n = c_X.d = 0
    else:
        c_X = rows_of.of[floating](X, NULL)
    sweep.G, sweep.order, sweep.l1, sweep.sweeps = &G[0, 0], &order[0], l1, sweeps
    with nogil:
        status = c_descend(c_X, c_B, products, sweep, c_W, p_gram, &violation, n_threads)
    check(status)
    return violation


def sums_of_turns(
    Rows X,  # IN, dense
    Py_ssize_t k,
):
    """The size of the sums that `alternate` takes."""
    if X.is_single:
        return c_sums_size[float](X.single.n, X.single.d, k)
    return c_sums_size[double](X.double_.n, X.double_.d, k)


def alternate(
    floating[:, ::1] W,            # INOUT, transposed and with zeros (k, ·), and H
    floating[:, ::1] H,
    Rows X,                        # IN, dense, (n, d)
    tuple grams,                   # OUT, of W, and INOUT, of H, with its penalty, (ld, ld)
    floating[::1] sums,            # INOUT, so many as sums_of_turns tells
    const Py_ssize_t[:, ::1] order,  # IN, of the coordinates of W, and of H, (2, k)
    (double, double, double, double) penalties,  # L1 of W and H, L2 of W and H
    (int, int) sweeps,
    int count,
    double tol,
    double first,
    int n_threads,
):
    """Up to `count` turns of both; return how many there were, the last violation and the first."""
    cdef CRows[floating] c_X = rows_of.of[floating](X, NULL)
    cdef Turns[floating] turns
    cdef floating[:, ::1] gram
    cdef double violation = 0
    cdef int done = 0
    cdef Status status
    turns.at[0], turns.at[1] = &W[0, 0], &H[0, 0]
    turns.ld[0], turns.ld[1] = W.shape[1], H.shape[1]
    turns.size[0], turns.size[1], turns.k = c_X.n, c_X.d, W.shape[0]
    for f in range(2):
        gram = grams[f]
        turns.gram[f], turns.ldg = &gram[0, 0], gram.shape[0]
        turns.order[f] = &order[f, 0]
    turns.l1[0], turns.l1[1] = <floating>penalties[0], <floating>penalties[1]
    turns.l2[0], turns.l2[1] = <floating>penalties[2], <floating>penalties[3]
    turns.sweeps[0], turns.sweeps[1] = sweeps[0], sweeps[1]
    turns.sums = &sums[0]
    with nogil:
        status = c_alternate(
            c_X.data, turns, count, tol, &first, &violation, &done, n_threads)
    check(status)
    return done, violation, first


def multiply(
    floating[:, ::1] W,        # INOUT, (n, ld)
    Rows X,                    # IN
    floating[:, ::1] B,        # IN, (d, ld)
    const floating[::1] den,   # IN, of B: its gram (beta 2) or sums (beta 1), or None
    Py_ssize_t k,
    How how,
    bint update,
    floating[:, ::1] num_kept,  # INOUT, (n, ld), or None, and den_kept
    floating[:, ::1] den_kept,
    double rho,
    floating[:, ::1] num,      # OUT, (d, ld), or None
    floating[:, ::1] back_den,  # OUT, (d, ld), or None
    floating[:, ::1] gram,     # OUT, (ld, ld), or None
    floating[::1] sums,        # OUT, (ld), or None
    int n_threads,
):
    """Multiply W by its factors. `how`: beta, l1, l2, gamma, flush."""
    cdef CRows[floating] c_X = rows_of.of[floating](X, NULL)
    cdef Factor[floating] c_W = factor(W, k), c_B = factor(B, k)
    cdef Update[floating] c_how = update_of(how, num_kept, den_kept, rho)
    cdef const floating* p_den = rows_of.pointer(den)
    cdef Yield[floating] out
    cdef Status status
    out.num, out.den, out.gram = pointer(num), pointer(back_den), pointer(gram)
    out.sums = &sums[0] if sums is not None and sums.shape[0] else NULL
    with nogil:
        status = c_multiply(c_X, c_B, p_den, c_how, update, c_W, out, n_threads)
    check(status)


def multiply_given(
    floating[:, ::1] W,        # INOUT, (n, ld)
    const floating[:, ::1] num,  # IN, (n, ld)
    const floating[::1] den,   # IN, (n * ld), or (ld) for all rows
    Py_ssize_t k,
    How how,
    floating[:, ::1] num_kept,
    floating[:, ::1] den_kept,
    double rho,
    floating[:, ::1] gram,     # OUT, (ld, ld), or None
    floating[::1] sums,        # OUT, (ld), or None
    int n_threads,
):
    """Multiply W by its factors num / den, `how` as in multiply."""
    cdef Factor[floating] c_W = factor(W, k)
    cdef Update[floating] c_how = update_of(how, num_kept, den_kept, rho)
    cdef bint one_den = den.shape[0] == W.shape[1]
    cdef Yield[floating] out
    cdef Status status
    out.num = out.den = NULL
    out.gram = pointer(gram)
    out.sums = &sums[0] if sums is not None and sums.shape[0] else NULL
    with nogil:
        status = c_multiply_given(&num[0, 0], &den[0], one_den, c_how, c_W, out, n_threads)
    check(status)


def divergence(
    floating[:, ::1] W,  # IN, (n, ld)
    Rows X,              # IN
    floating[:, ::1] B,  # IN, (d, ld)
    Py_ssize_t k,
    double beta,
    int n_threads,
):
    """The sum over entries of what csrc/nmf/nmf.h says."""
    cdef CRows[floating] c_X = rows_of.of[floating](X, NULL)
    cdef Factor[floating] c_W = factor(W, k), c_B = factor(B, k)
    cdef double sum = 0
    cdef Status status
    with nogil:
        status = c_divergence(c_X, c_B, c_W, beta, &sum, n_threads)
    check(status)
    return sum
