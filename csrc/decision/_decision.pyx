"""What one-vs-one machines make of their sums. Arguments are already validated.

Pairs of k classes (i, j), i < j, come in the order (0, 1), (0, 2), ..., (1, 2), ...; a decision
above 0 is a vote for i. Votes that are level go to the lower class.
"""

from libc.math cimport fabs
from libc.stdlib cimport calloc, free


def assemble(
    const double[:, :, ::1] sums,       # IN, (n, k, at least k - 1): by class and by the others
    const double[::1] intercept,        # IN, (pairs)
    double[:, ::1] out,                 # OUT, (n, pairs)
):
    """The decision of each pair: what the support vectors of both its classes have for it."""
    cdef Py_ssize_t n = sums.shape[0], k = sums.shape[1], row, i, j, p
    with nogil:
        for row in range(n):
            p = 0
            for i in range(k):
                for j in range(i + 1, k):
                    out[row, p] = sums[row, i, j - 1] + sums[row, j, i] + intercept[p]
                    p += 1


def winners(
    const double[:, ::1] decisions,  # IN, (n, pairs)
    Py_ssize_t k,
    Py_ssize_t[::1] out,             # OUT, (n)
):
    """The class with most votes."""
    cdef Py_ssize_t n = decisions.shape[0], row, i, j, p, best
    cdef Py_ssize_t* votes = <Py_ssize_t*>calloc(k, sizeof(Py_ssize_t))
    if not votes:
        raise MemoryError
    with nogil:
        for row in range(n):
            for i in range(k):
                votes[i] = 0
            p = 0
            for i in range(k):
                for j in range(i + 1, k):
                    votes[i if decisions[row, p] > 0 else j] += 1
                    p += 1
            best = 0
            for i in range(1, k):
                if votes[i] > votes[best]:
                    best = i
            out[row] = best
    free(votes)


def one_against_rest(
    const double[:, ::1] decisions,  # IN, (n, pairs)
    double[:, ::1] out,              # OUT, (n, k)
):
    """Votes, and the sums of the decisions squeezed in between them."""
    cdef Py_ssize_t n = out.shape[0], k = out.shape[1], row, i, j, p
    cdef double sum
    cdef double* sums = <double*>calloc(k, sizeof(double))
    if not sums:
        raise MemoryError
    with nogil:
        for row in range(n):
            for i in range(k):
                sums[i] = out[row, i] = 0
            p = 0
            for i in range(k):
                for j in range(i + 1, k):
                    sums[i] += decisions[row, p]
                    sums[j] -= decisions[row, p]
                    # Not `> 0`, as in `winners`: a level decision is nobody's there, and i's here.
                    out[row, j if decisions[row, p] < 0 else i] += 1
                    p += 1
            for i in range(k):
                sum = sums[i]
                out[row, i] += sum / (3 * (fabs(sum) + 1))
    free(sums)


def couple(
    const double[:, ::1] pairs,  # IN, (n, pairs): of i against j, within 0 and 1
    double[:, ::1] out,          # OUT, (n, k)
):
    """Probabilities of classes from those of pairs (Wu, Lin and Weng, 2004; their second way)."""
    cdef Py_ssize_t n = out.shape[0], k = out.shape[1], row
    cdef double* scratch = <double*>calloc(2 * k * k + k, sizeof(double))
    if not scratch:
        raise MemoryError
    with nogil:
        for row in range(n):
            couple_row(&pairs[row, 0], k, scratch, scratch + k * k, scratch + 2 * k * k,
                       &out[row, 0])
    free(scratch)


cdef void couple_row(
    const double* pairs, Py_ssize_t k, double* r, double* Q, double* Qp, double* p
) noexcept nogil:
    cdef Py_ssize_t t, j, e = 0, _
    cdef double pQp, error, step
    for t in range(k):
        for j in range(t + 1, k):
            r[t * k + j], r[j * k + t] = pairs[e], 1 - pairs[e]
            e += 1
    for t in range(k):
        p[t] = 1.0 / k
        Q[t * k + t] = 0
        for j in range(k):
            if j != t:
                Q[t * k + t] += r[j * k + t] * r[j * k + t]
                Q[t * k + j] = -r[j * k + t] * r[t * k + j]
    for _ in range(max(100, k)):
        pQp = error = 0
        for t in range(k):
            Qp[t] = 0
            for j in range(k):
                Qp[t] += Q[t * k + j] * p[j]
            pQp += p[t] * Qp[t]
        for t in range(k):
            error = max(error, fabs(Qp[t] - pQp))
        if error < 0.005 / k:
            return
        for t in range(k):
            step = (pQp - Qp[t]) / Q[t * k + t]
            p[t] += step
            pQp = (pQp + step * (step * Q[t * k + t] + 2 * Qp[t])) / (1 + step) / (1 + step)
            for j in range(k):
                Qp[j] = (Qp[j] + step * Q[t * k + j]) / (1 + step)
                p[j] /= 1 + step
