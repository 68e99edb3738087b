"""Newton steps on likelihoods. Arguments are already validated; see likelihood.h."""

from cython cimport floating
from libc.stdint cimport int32_t, uintptr_t

from fastml._native.runtime cimport Status, bind_pool, check, the_pool

cdef extern from "likelihood/likelihood.h" namespace "fastml" nogil:
    cdef cppclass Likelihood[T]:
        pass

    cdef enum class Family(int):
        pass

    cdef cppclass Scored[T]:
        const Py_ssize_t* indptr
        const int32_t* indices
        const T* ratings
        const T* factors
        const T* offset
        Py_ssize_t n, ld

    double c_longest_move "fastml::longest_move"
    Likelihood[float] of_floats "fastml::likelihood_of<float>"(Family) noexcept
    Likelihood[double] of_doubles "fastml::likelihood_of<double>"(Family) noexcept
    Status c_evaluate "fastml::evaluate"[T](
        Likelihood[T], const T*, const T*, Py_ssize_t, T*, T*, T*, int) noexcept
    Status c_linearise "fastml::linearise"[T](
        const Scored[T]&, Likelihood[T], const T*, T*, T*, T*, double*, int) noexcept
    Status c_damp "fastml::damp"[T](
        const Scored[T]&, Likelihood[T], const double*, const T*, T*, T*, T*, const double*,
        double*, int) noexcept

bind_pool(the_pool())

longest_move = c_longest_move
FAMILIES = ("gaussian", "bernoulli", "poisson")


def address_of(str family, bint double_precision):
    """The address of the code for a family."""
    cdef Family which = <Family><int>FAMILIES.index(family)
    if double_precision:
        return <uintptr_t>of_doubles(which)
    return <uintptr_t>of_floats(which)


def evaluate(
    const floating[::1] ratings,      # IN, not empty
    const floating[::1] scores,       # IN
    uintptr_t likelihood,             # address
    floating[::1] value,              # OUT
    floating[::1] first,              # OUT
    floating[::1] second,             # OUT
    int n_threads,
):
    """Write the logarithm of the likelihood of ratings, and its two derivatives."""
    cdef Status status
    with nogil:
        status = c_evaluate(<Likelihood[floating]>likelihood, &ratings[0], &scores[0],
                            ratings.shape[0], &value[0], &first[0], &second[0], n_threads)
    check(status)


cdef Scored[floating] scored(
    const Py_ssize_t[::1] indptr, const int32_t[::1] indices, const floating[::1] ratings,
    const floating[:, ::1] factors, const floating[::1] offset
):
    cdef Scored[floating] rows
    rows.indptr, rows.n = &indptr[0], indptr.shape[0] - 1
    rows.indices = &indices[0]
    rows.ratings, rows.factors, rows.offset = &ratings[0], &factors[0, 0], &offset[0]
    rows.ld = factors.shape[1]
    return rows


def linearise(
    const floating[::1] ratings,      # IN, not empty
    const Py_ssize_t[::1] indptr,     # IN, (rows + 1)
    const int32_t[::1] indices,       # IN
    const floating[:, ::1] factors,   # IN, (columns, ld)
    const floating[::1] offset,       # IN, (columns)
    uintptr_t likelihood,             # address
    const floating[:, ::1] x,         # IN, (rows, ld)
    floating[::1] scores,             # OUT, an entry each
    floating[::1] target,             # OUT
    floating[::1] scale,              # OUT
    double[::1] loss,                 # OUT, (rows)
    int n_threads,
):
    """Write the regression of a Newton step."""
    cdef Scored[floating] rows = scored(indptr, indices, ratings, factors, offset)
    cdef Status status
    with nogil:
        status = c_linearise(rows, <Likelihood[floating]>likelihood, &x[0, 0], &scores[0],
                             &target[0], &scale[0], &loss[0], n_threads)
    check(status)


def damp(
    const floating[::1] ratings,      # IN, not empty
    const Py_ssize_t[::1] indptr,     # IN, (rows + 1)
    const int32_t[::1] indices,       # IN
    const floating[:, ::1] factors,   # IN, (columns, ld)
    const floating[::1] offset,       # IN, (columns)
    uintptr_t likelihood,             # address
    const double[::1] penalty,        # IN, (rows)
    const floating[:, ::1] step,      # IN, (rows, ld)
    floating[:, ::1] x,               # INOUT, (rows, ld)
    floating[::1] scores,             # INOUT, an entry each
    floating[::1] moves,              # OUT, scratch
    const double[::1] loss,           # IN, (rows)
    int n_threads,
):
    """Go as far towards `step` as lowers the loss; return that of all rows."""
    cdef Scored[floating] rows = scored(indptr, indices, ratings, factors, offset)
    cdef double total = 0
    cdef Status status
    with nogil:
        status = c_damp(rows, <Likelihood[floating]>likelihood, &penalty[0], &step[0, 0], &x[0, 0],
                        &scores[0], &moves[0], &loss[0], &total, n_threads)
    check(status)
    return total
