"""Pairs of rows. Arguments are already validated; see csrc/pairwise/pairwise.h for the contract."""

from cython cimport floating
from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp cimport bool as bool_t

import numpy as np
from scipy.sparse import issparse

from fastml._native.rows cimport CRows, Rows, of
from fastml._native.runtime cimport Status, bind_pool, check, the_pool

cdef extern from "pairwise/pairwise.h" namespace "fastml" nogil:
    cpdef enum class Metric(int):
        linear
        polynomial
        sigmoid
        cosine
        rbf
        laplacian
        chi2
        additive_chi2
        intersection
        normalized_intersection
        euclidean
        sqeuclidean
        manhattan
        chebyshev
        minkowski
        cosine_distance
        haversine
        nan_euclidean
        nan_sqeuclidean
        braycurtis
        relative
        canberra
        hamming

    cpdef enum class Elementary(int):
        exp
        log
        tanh
        pow
        sin
        asin

    cdef cppclass CMeasure "fastml::Measure":
        Metric metric
        double gamma
        double coef0
        double degree
        const double* weights
        bool_t by_differences

    bool_t c_takes_sparse "fastml::takes_sparse"(Metric) noexcept
    Status c_gram "fastml::gram"[T](
        const CRows[T]&, const CRows[T]&, const CMeasure&, bool_t, bool_t, T*, int) noexcept
    Status c_nearest "fastml::nearest"[T](
        const CRows[T]&, const CRows[T]&, const CMeasure&, int64_t*, double*, int) noexcept
    Status c_gram_apply "fastml::gram_apply"[T](
        const CRows[T]&, const CRows[T]&, const CMeasure&, const T*, Py_ssize_t, double*,
        int) noexcept
    cdef cppclass CPacked "fastml::Packed"[T]:
        CRows[T] Y
        CMeasure measure
        T* panels
        T* norms
        T* sizes
        T* shift
        double* values
        double* long_norms
        int32_t* rows
        Py_ssize_t* starts

    cdef struct PackedSizes:
        Py_ssize_t of[4]

    PackedSizes c_packed_sizes "fastml::packed_sizes"[T](
        const CRows[T]&, const CMeasure&) noexcept
    Status c_pack "fastml::pack"[T](CPacked[T]&, int) noexcept
    Status c_packed_apply "fastml::packed_apply"[T](
        const CRows[T]&, const CPacked[T]&, const T*, Py_ssize_t, const Py_ssize_t*, Py_ssize_t,
        double*, int) noexcept
    void c_elementary "fastml::elementary"[T](
        Elementary, const T*, Py_ssize_t, T, T*) noexcept

cdef extern from "pairwise/booleans.h" namespace "fastml" nogil:
    cpdef enum class Agreement(int):
        dice
        jaccard
        rogerstanimoto
        russellrao
        sokalsneath
        yule

    Status c_boolean_distances "fastml::boolean_distances"(
        const uint64_t*, Py_ssize_t, const uint64_t*, Py_ssize_t, Py_ssize_t, Py_ssize_t,
        Agreement, double*, int) noexcept

cdef extern from "pairwise/product.h" namespace "fastml" nogil:
    Status c_product_sizes "fastml::product_sizes"[T](
        const CRows[T]&, const CRows[T]&, int64_t*, int) noexcept
    Status c_product_entries "fastml::product_entries"[T](
        const CRows[T]&, const CRows[T]&, const int64_t*, int32_t*, T*, int) noexcept

bind_pool(the_pool())


cdef class Measure:
    """A metric by name with its parameters; `gamma`, `coef0`, `degree`, `weights` if it has them.

    `by_differences`: of Euclidean distances, for rows that are not finite.
    """
    cdef CMeasure c
    cdef const double[::1] weights

    def __init__(self, str metric, double gamma=1, double coef0=0, double degree=1,
                 const double[::1] weights=None, bint by_differences=False):
        self.c.metric = Metric[metric]
        self.c.gamma, self.c.coef0, self.c.degree = gamma, coef0, degree
        self.weights = weights
        self.c.weights = &weights[0] if weights is not None else NULL
        self.c.by_differences = by_differences

    @property
    def takes_sparse(self):
        return c_takes_sparse(self.c.metric)


def gram(
    Rows X,
    Rows Y,
    Measure measure,
    bint symmetric,   # Y is X
    bint transposed,
    out,              # OUT, (n, m) of their dtype
    int n_threads,
):
    """The measure of every pair of rows."""
    # To find the version for a dtype takes Cython as long as a small matrix takes.
    if X.is_single:
        fill[float](X, Y, measure, symmetric, transposed, out, n_threads)
    else:
        fill[double](X, Y, measure, symmetric, transposed, out, n_threads)


cdef int fill(
    Rows X, Rows Y, Measure measure, bint symmetric, bint transposed, floating[:, ::1] out,
    int n_threads,
) except -1:
    cdef CRows[floating] x = of[floating](X, NULL)
    cdef CRows[floating] y = of[floating](Y, NULL)
    cdef Status status
    with nogil:
        status = c_gram(x, y, measure.c, symmetric, transposed, &out[0, 0], n_threads)
    return check(status)


def nearest(
    Rows X,
    Rows Y,
    Measure measure,
    int64_t[::1] index,     # OUT
    double[::1] distance,   # OUT
    int n_threads,
):
    """The nearest row of Y for every row of X, and how far it is."""
    cdef bint single = X.is_single
    cdef CRows[float] x32, y32
    cdef CRows[double] x64, y64
    cdef Status status
    if single:
        x32, y32 = of[float](X, NULL), of[float](Y, NULL)
    else:
        x64, y64 = of[double](X, NULL), of[double](Y, NULL)
    with nogil:
        if single:
            status = c_nearest(x32, y32, measure.c, &index[0], &distance[0], n_threads)
        else:
            status = c_nearest(x64, y64, measure.c, &index[0], &distance[0], n_threads)
    check(status)


def gram_apply(
    Rows X,
    Rows Y,
    Measure measure,
    const floating[:, ::1] V,  # IN
    double[:, ::1] out,        # OUT
    int n_threads,
):
    """The matrix of the measure times V."""
    cdef CRows[floating] x = of[floating](X, NULL)
    cdef CRows[floating] y = of[floating](Y, NULL)
    cdef Status status
    with nogil:
        status = c_gram_apply(x, y, measure.c, &V[0, 0], V.shape[1], &out[0, 0], n_threads)
    check(status)


cdef class Packed:
    """Rows and what their kernel values are multiplied by, laid out once for many products.

    V (m, r) is of the dtype of Y; segment s of the rows of Y ends before row ends[s].
    """
    cdef Rows Y
    cdef object V, ends
    cdef list kept
    cdef CPacked[float] single
    cdef CPacked[double] double_

    def __init__(self, Rows Y, Measure measure, V, const Py_ssize_t[::1] ends, int n_threads):
        self.Y, self.V, self.ends = Y, V, ends
        if Y.is_single:
            self.kept = lay_out[float](Y, measure, &self.single, n_threads)
        else:
            self.kept = lay_out[double](Y, measure, &self.double_, n_threads)

    def apply(self, Rows X, double[:, ::1] out, int n_threads):
        """The products of the rows of X, (n, segments * r)."""
        if issparse(X.X) != issparse(self.Y.X):
            raise TypeError("dense rows meet dense rows, and sparse ones sparse ones")
        if X.X.dtype != self.Y.X.dtype:
            raise TypeError("rows and what they meet differ in dtype")
        if X.is_single:
            products[float](X, self.V, self.ends, &self.single, out, n_threads)
        else:
            products[double](X, self.V, self.ends, &self.double_, out, n_threads)


cdef list lay_out(Rows Y, Measure measure, CPacked[floating]* packed, int n_threads):
    cdef PackedSizes sizes
    cdef Status status
    cdef floating[::1] a, b, c, d
    cdef double[::1] values, norms
    cdef int32_t[::1] rows
    cdef Py_ssize_t[::1] starts
    packed.Y, packed.measure = of[floating](Y, NULL), measure.c
    sizes = c_packed_sizes(packed.Y, packed.measure)
    # One more than there are, so that each has an address.
    dtypes = ("f8", "f8", "i4", np.intp) if issparse(Y.X) else (Y.X.dtype,) * 4
    kept = [np.empty(sizes.of[i] + 1, dtypes[i]) for i in range(4)]
    if issparse(Y.X):
        values, norms, rows, starts = kept
        packed.values, packed.long_norms = &values[0], &norms[0]
        packed.rows, packed.starts = &rows[0], &starts[0]
    else:
        a, b, c, d = kept
        packed.panels, packed.norms, packed.sizes, packed.shift = &a[0], &b[0], &c[0], &d[0]
    with nogil:
        status = c_pack(packed[0], n_threads)
    check(status)
    return kept


cdef int products(
    Rows X, const floating[:, ::1] V, const Py_ssize_t[::1] ends,
    const CPacked[floating]* packed, double[:, ::1] out, int n_threads,
) except -1:
    cdef CRows[floating] x = of[floating](X, NULL)
    cdef Status status
    with nogil:
        status = c_packed_apply(
            x, packed[0], &V[0, 0], V.shape[1], &ends[0], ends.shape[0], &out[0, 0], n_threads)
    return check(status)


def boolean_distances(
    const uint64_t[:, ::1] X,  # IN, rows of bits
    const uint64_t[:, ::1] Y,  # IN
    Py_ssize_t bits,           # of a row; the spare ones of its last word are 0
    str agreement,
    double[:, ::1] out,        # OUT
    int n_threads,
):
    """Distances of all pairs of rows of bits."""
    cdef Agreement which = Agreement[agreement]
    cdef Status status
    with nogil:
        status = c_boolean_distances(
            &X[0, 0], X.shape[0], &Y[0, 0], Y.shape[0], X.shape[1], bits, which, &out[0, 0],
            n_threads)
    check(status)


def product_sizes(Rows X, Rows Yt, int64_t[::1] starts, int n_threads):
    """Where the rows of the sparse product of X and Yt begin."""
    cdef CRows[double] x64, y64
    cdef CRows[float] x32, y32
    cdef bint single = X.is_single
    cdef Status status
    if single:
        x32, y32 = of[float](X, NULL), of[float](Yt, NULL)
    else:
        x64, y64 = of[double](X, NULL), of[double](Yt, NULL)
    with nogil:
        if single:
            status = c_product_sizes(x32, y32, &starts[0], n_threads)
        else:
            status = c_product_sizes(x64, y64, &starts[0], n_threads)
    check(status)


def product_entries(
    Rows X,
    Rows Yt,
    const int64_t[::1] starts,  # IN
    int32_t[::1] indices,       # OUT, as many as starts says
    floating[::1] data,         # OUT
    int n_threads,
):
    """The entries of the sparse product of X and Yt."""
    cdef CRows[floating] x = of[floating](X, NULL)
    cdef CRows[floating] y = of[floating](Yt, NULL)
    cdef Status status
    with nogil:
        status = c_product_entries(x, y, &starts[0], &indices[0], &data[0], n_threads)
    check(status)


def elementary(str function, const floating[::1] x, floating[::1] out, double parameter=0):
    """exp, log, tanh, pow, sin or asin of every value."""
    cdef Elementary which = Elementary[function]
    with nogil:
        c_elementary(which, &x[0], x.shape[0], <floating>parameter, &out[0])
