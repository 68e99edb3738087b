"""An exact k-d tree. Arguments are already validated; see csrc/kdtree/kdtree.h for the contract."""

from cython cimport floating
from libc.stdint cimport int64_t
from libcpp cimport bool as bool_t

import numpy as np

from fastml._native.runtime cimport Status, bind_pool, check, the_pool
from fastml._native.votes cimport CVote, Vote

cdef extern from "kdtree/kdtree.h" namespace "fastml" nogil:
    cdef enum class Metric(int):
        euclidean
        manhattan
        chebyshev
        minkowski

    cdef cppclass CTree "fastml::KDTree"[T]:
        Py_ssize_t n
        Py_ssize_t d
        Py_ssize_t leaves
        Metric metric
        double p
        Py_ssize_t shape(Py_ssize_t, Py_ssize_t) noexcept
        void borrow(T*, void*, T*, void*) noexcept
        void borrow_copies(void*, Py_ssize_t*, bool_t) noexcept

    Status c_squares_fit "fastml::squares_fit"[T](
        const T*, Py_ssize_t, bool_t*, int) noexcept
    Status c_find_leaders "fastml::find_leaders"[T](
        const T*, Py_ssize_t, Py_ssize_t, void*, Py_ssize_t*, int) noexcept
    Status c_build "fastml::build"[T](const T*, const void*, const CTree[T]&, int) noexcept
    Status c_list_copies "fastml::list_copies"[T](
        const CTree[T]&, const void*, Py_ssize_t, void*, Py_ssize_t*) noexcept
    Status c_nearest "fastml::nearest"[T, Out](
        const CTree[T]&, const T*, Py_ssize_t, Py_ssize_t, bool_t, Out*, int64_t*, int) noexcept
    Status c_nearest_vote "fastml::nearest_vote"[T](
        const CTree[T]&, const T*, Py_ssize_t, Py_ssize_t, bool_t, const CVote&, int) noexcept
    Status c_count_within "fastml::count_within"[T](
        const CTree[T]&, const T*, Py_ssize_t, const double*, int64_t*, int) noexcept
    Status c_collect_within "fastml::collect_within"[T](
        const CTree[T]&, const T*, Py_ssize_t, const double*, const int64_t*, bint, double*,
        int64_t*, int) noexcept
    Status c_within_vote "fastml::within_vote"[T](
        const CTree[T]&, const T*, Py_ssize_t, const double*, bool_t, const CVote&, int64_t*,
        int) noexcept
    cdef enum class DensityKernel(int):
        gaussian
        tophat
        epanechnikov
        exponential
        linear
        cosine

    Status c_log_kernel_sums "fastml::log_kernel_sums"[T](
        const CTree[T]&, const T*, Py_ssize_t, DensityKernel, double, const double*, double*,
        int) noexcept
    Status c_count_scanned "fastml::count_scanned"[T](
        const CTree[T]&, const T*, Py_ssize_t, Py_ssize_t, int64_t*, int) noexcept

ctypedef fused Out:
    float
    double

bind_pool(the_pool())

METRICS = {
    "euclidean": Metric.euclidean,
    "manhattan": Metric.manhattan,
    "chebyshev": Metric.chebyshev,
    "minkowski": Metric.minkowski,
}
KERNELS = {
    "gaussian": DensityKernel.gaussian,
    "tophat": DensityKernel.tophat,
    "epanechnikov": DensityKernel.epanechnikov,
    "exponential": DensityKernel.exponential,
    "linear": DensityKernel.linear,
    "cosine": DensityKernel.cosine,
}
FAN = 16  # points in a leaf


def squares_fit(const floating[:, ::1] X, int n_threads):
    """Whether squares of differences of these values are safe in their precision."""
    cdef bool_t fits = True
    cdef Status status
    with nogil:
        status = c_squares_fit(&X[0, 0], X.shape[0] * X.shape[1], &fits, n_threads)
    check(status)
    return fits


cdef void* _at(array):
    return NULL if array is None else <void*><size_t>array.ctypes.data


def _empty(Py_ssize_t size, dtype):
    """An uninitialised array that starts on a cache line."""
    itemsize = np.dtype(dtype).itemsize
    raw = np.empty(size * itemsize + 64, dtype=np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start:start + size * itemsize].view(dtype)


cdef class KDTree:
    """A k-d tree of the points `X` (n, d): C-contiguous, float32 or float64, n and d at least 1.

    It keeps a copy of the points. Queries have the dtype of `X`. float32 points are searched in
    single precision where that is safe, otherwise (very large or very small values, or metric
    "minkowski") in double.
    """
    cdef readonly object dtype, metric
    cdef readonly double p
    cdef readonly Py_ssize_t n, d
    cdef object points, index, boxes, lowest, copies, first_copy, wide
    cdef bint is_single
    cdef CTree[float] single
    cdef CTree[double] double_

    def __init__(self, X, metric="euclidean", double p=2, int n_threads=1):
        self.dtype, self.metric, self.p = X.dtype, metric, p
        self.n, self.d = X.shape
        self.is_single = (
            X.dtype == np.float32 and metric != "minkowski" and squares_fit(X, n_threads)
        )
        if self.is_single:
            if self.n >= np.iinfo(np.int32).max:
                raise ValueError("A tree of float32 points holds less than 2**31 - 1 of them")
            self._build[float](X, &self.single, n_threads)
        else:
            self._build[double](X.astype(np.float64, copy=False), &self.double_, n_threads)

    cdef int _build(self, const floating[:, ::1] X, CTree[floating]* tree, int n_threads) except -1:
        cdef Status status
        cdef Py_ssize_t distinct, nodes
        cdef void* leaders
        cdef void* firsts
        cdef void* copies
        cdef Py_ssize_t* first_copies
        cdef bool_t told_apart
        dtype, rows = (np.float32, np.int32) if floating is float else (np.float64, np.int64)
        leader, first = np.empty(self.n, dtype=rows), None
        leaders = _at(leader)
        with nogil:
            status = c_find_leaders(&X[0, 0], self.n, self.d, leaders, &distinct, n_threads)
        check(status)
        if distinct > self.n // 2:  # with few copies, lists of them cost more than they save
            distinct = self.n
        if distinct < self.n:
            first = np.flatnonzero(leader == np.arange(self.n, dtype=rows)).astype(rows)
        nodes = tree.shape(distinct, self.d)
        self.points = _empty(tree.leaves * self.d * FAN, dtype)
        self.index = _empty(tree.leaves * FAN, rows)
        self.boxes = _empty(nodes * self.d * 2 * FAN, dtype)
        self.lowest = _empty(nodes * FAN, rows)
        tree.metric = METRICS[self.metric]
        tree.p = self.p
        tree.borrow(<floating*>_at(self.points), _at(self.index), <floating*>_at(self.boxes),
                    _at(self.lowest))
        firsts = _at(first)
        with nogil:
            status = c_build(&X[0, 0], firsts, tree[0], n_threads)
        check(status)
        if distinct < self.n:
            self.copies = np.empty(self.n - distinct, dtype=rows)
            self.first_copy = np.empty(tree.leaves * FAN + 1, dtype=np.intp)
            copies, first_copies = _at(self.copies), <Py_ssize_t*>_at(self.first_copy)
            told_apart = self.metric != "minkowski" and squares_fit(X, n_threads)
            with nogil:
                status = c_list_copies(tree[0], leaders, self.n, copies, first_copies)
            tree.borrow_copies(copies, first_copies, told_apart)
        return check(status)

    @property
    def nbytes(self):
        """Bytes of memory that the tree takes."""
        parts = self.points, self.index, self.boxes, self.lowest, self.copies, self.first_copy
        return sum(0 if part is None else part.nbytes for part in parts)

    def rows(self):
        """The points, in the order in which they were given."""
        by_leaf = self.points.reshape(-1, self.d, FAN).transpose(0, 2, 1).reshape(-1, self.d)
        X = np.empty((self.n, self.d), dtype=self.dtype)
        # Only the last leaf has absent points, and has them at its end.
        copies = 0 if self.copies is None else len(self.copies)
        points = by_leaf[:self.n - copies]
        X[self.index[:len(points)]] = points
        if copies:
            X[self.copies] = points.repeat(np.diff(self.first_copy[:len(points) + 1]), axis=0)
        return X

    def __reduce__(self):
        # What is built again needs no check, and is the same.
        return KDTree, (self.rows(), self.metric, self.p)

    def _for(self, Q, int n_threads):
        """The tree to ask about `Q`, and `Q` as it takes it."""
        if not self.is_single:
            return self, Q.astype(np.float64, copy=False)
        if Q.dtype == np.float32 and squares_fit(Q, n_threads):
            return self, Q
        if self.wide is None:
            self.wide = KDTree(
                self.rows().astype(np.float64), self.metric, self.p, n_threads
            )
        return self.wide, Q.astype(np.float64)

    def query(self, Q, Py_ssize_t k, distances, indices, int n_threads, bint not_itself=False):
        """The `k` nearest points of each row of `Q`, nearest first; the lower index on ties.

        `Q` is None for the points themselves; with `not_itself` none is its own neighbour.
        `distances` (n_q, k), float32 or float64, and `indices`, int64, take the answer.
        """
        if Q is None:
            none = np.empty((0, self.d), dtype=self.points.dtype)
            nearest_of(self, none, k, not_itself, distances, indices, n_threads)
        elif len(Q):
            tree, Q = self._for(Q, n_threads)
            nearest_of(tree, Q, k, False, distances, indices, n_threads)

    def vote(self, Q, Py_ssize_t k, Vote vote, int n_threads):
        """Let the `k` nearest points of each row of `Q` vote; without `Q`, of each point itself.

        Then none is its own neighbour.
        """
        if Q is None:
            none = np.empty((0, self.d), dtype=self.points.dtype)
            vote_of(self, none, k, vote, n_threads)
        elif len(Q):
            tree, Q = self._for(Q, n_threads)
            vote_of(tree, Q, k, vote, n_threads)

    def count_within(self, Q, radius, int n_threads):
        """How many points are within `radius` (one, or one for each row) of each row of `Q`."""
        counts = np.zeros(len(Q), dtype=np.int64)
        if len(Q):
            tree, Q = self._for(Q, n_threads)
            count_of(tree, Q, _each(radius, len(Q)), counts, n_threads)
        return counts

    def query_radius(self, Q, radius, int n_threads, return_distance=True, sort=False):
        """The points within `radius` of each row of `Q`, as CSR: (indptr, indices, distances).

        `distances` is None unless wanted. With `sort`, nearest first, then by index.
        """
        indptr = np.zeros(len(Q) + 1, dtype=np.int64)
        np.cumsum(self.count_within(Q, radius, n_threads), out=indptr[1:])
        indices = np.empty(indptr[-1], dtype=np.int64)
        distances = np.empty(indptr[-1] if return_distance else 0, dtype=np.float64)
        if indptr[-1]:
            tree, Q = self._for(Q, n_threads)
            collect_of(tree, Q, _each(radius, len(Q)), indptr, sort,
                       distances, indices, n_threads)
        return indptr, indices, distances if return_distance else None

    def vote_within(self, Q, radius, bint not_itself, Vote vote, int n_threads):
        """Let the points within `radius` of each row of `Q` vote; returns how many they are.

        With `not_itself`, row i of `Q` is point i, which does not count among its own.
        """
        counts = np.zeros(len(Q), dtype=np.int64)
        if len(Q):
            tree, Q = self._for(Q, n_threads)
            vote_within_of(tree, Q, _each(radius, len(Q)), not_itself, vote, counts, n_threads)
        return counts

    def log_kernel_sums(
        self,
        const double[:, ::1] Q,       # IN
        kernel,
        double bandwidth,
        const double[::1] weights,    # IN: positive, or None
        double[::1] log_sums,         # OUT
        int n_threads,
    ):
        """The logarithm of the sum of (weighted) kernels at all points, for each row of `Q`.

        For a Euclidean tree of float64 points.
        """
        cdef DensityKernel kind = KERNELS[kernel]
        cdef const double* w = &weights[0] if weights is not None else NULL
        cdef Status status
        if self.is_single or self.metric != "euclidean":
            raise ValueError("densities need a Euclidean tree of float64 points")
        with nogil:
            status = c_log_kernel_sums(self.double_, &Q[0, 0], Q.shape[0], kind, bandwidth, w,
                                       &log_sums[0], n_threads)
        check(status)

    def scanned(self, Q, Py_ssize_t k, int n_threads=1):
        """How many points the search for the `k` nearest of each row of `Q` compares it with."""
        counts = np.zeros(len(Q), dtype=np.int64)
        if len(Q):
            tree, Q = self._for(Q, n_threads)
            scanned_of(tree, Q, k, counts, n_threads)
        return counts


def _each(radius, n):
    return np.ascontiguousarray(np.broadcast_to(np.asarray(radius, dtype=np.float64), n))


def nearest_of(
    KDTree tree,
    const floating[:, ::1] Q,  # IN; empty for the points themselves
    Py_ssize_t k,
    bint not_itself,
    Out[:, ::1] distances,     # OUT
    int64_t[:, ::1] indices,   # OUT
    int n_threads,
):
    cdef const floating* q = &Q[0, 0] if Q.shape[0] else NULL
    cdef Py_ssize_t n = Q.shape[0] if Q.shape[0] else tree.n
    cdef Status status
    with nogil:
        if floating is float:
            status = c_nearest(tree.single, q, n, k, not_itself, &distances[0, 0],
                               &indices[0, 0], n_threads)
        else:
            status = c_nearest(tree.double_, q, n, k, not_itself, &distances[0, 0],
                               &indices[0, 0], n_threads)
    check(status)


def vote_of(
    KDTree tree,
    const floating[:, ::1] Q,  # IN; empty for the points themselves
    Py_ssize_t k,
    Vote vote,                 # INOUT
    int n_threads,
):
    cdef const floating* q = &Q[0, 0] if Q.shape[0] else NULL
    cdef Py_ssize_t n = Q.shape[0] if Q.shape[0] else tree.n
    cdef Status status
    with nogil:
        if floating is float:
            status = c_nearest_vote(tree.single, q, n, k, q == NULL, vote.vote, n_threads)
        else:
            status = c_nearest_vote(tree.double_, q, n, k, q == NULL, vote.vote, n_threads)
    check(status)


def count_of(
    KDTree tree,
    const floating[:, ::1] Q,  # IN
    const double[::1] radius,  # IN
    int64_t[::1] counts,       # OUT
    int n_threads,
):
    cdef Status status
    with nogil:
        if floating is float:
            status = c_count_within(tree.single, &Q[0, 0], Q.shape[0], &radius[0], &counts[0],
                                    n_threads)
        else:
            status = c_count_within(tree.double_, &Q[0, 0], Q.shape[0], &radius[0], &counts[0],
                                    n_threads)
    check(status)


def collect_of(
    KDTree tree,
    const floating[:, ::1] Q,   # IN
    const double[::1] radius,   # IN
    const int64_t[::1] indptr,  # IN
    bint sort,
    double[::1] distances,      # OUT, or empty
    int64_t[::1] indices,       # OUT
    int n_threads,
):
    cdef double* out = &distances[0] if distances.shape[0] else NULL
    cdef Status status
    with nogil:
        if floating is float:
            status = c_collect_within(tree.single, &Q[0, 0], Q.shape[0], &radius[0], &indptr[0],
                                      sort, out, &indices[0], n_threads)
        else:
            status = c_collect_within(tree.double_, &Q[0, 0], Q.shape[0], &radius[0], &indptr[0],
                                      sort, out, &indices[0], n_threads)
    check(status)


def vote_within_of(
    KDTree tree,
    const floating[:, ::1] Q,  # IN
    const double[::1] radius,  # IN
    bint not_itself,
    Vote vote,                 # INOUT
    int64_t[::1] counts,       # OUT
    int n_threads,
):
    cdef Status status
    with nogil:
        if floating is float:
            status = c_within_vote(tree.single, &Q[0, 0], Q.shape[0], &radius[0], not_itself,
                                   vote.vote, &counts[0], n_threads)
        else:
            status = c_within_vote(tree.double_, &Q[0, 0], Q.shape[0], &radius[0], not_itself,
                                   vote.vote, &counts[0], n_threads)
    check(status)


def scanned_of(
    KDTree tree,
    const floating[:, ::1] Q,  # IN
    Py_ssize_t k,
    int64_t[::1] counts,       # OUT
    int n_threads,
):
    cdef Status status
    with nogil:
        if floating is float:
            status = c_count_scanned(tree.single, &Q[0, 0], Q.shape[0], k, &counts[0], n_threads)
        else:
            status = c_count_scanned(tree.double_, &Q[0, 0], Q.shape[0], k, &counts[0], n_threads)
    check(status)
