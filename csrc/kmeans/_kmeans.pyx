"""K-means kernels. Arguments are already validated; see csrc/kmeans/kmeans.h for the contract."""

from cython cimport floating
from libc.stdint cimport int32_t, uint64_t
from libcpp cimport bool as bool_t

import numpy as np

from fastml._native.rows cimport CRows, Rows, of, pointer
from fastml._native.runtime cimport Status, bind_pool, check, the_pool

cdef extern from "kmeans/kmeans.h" namespace "fastml" nogil:
    Status c_assign "fastml::assign"[T](
        const CRows[T]&, const T*, const T*, Py_ssize_t, int32_t*, Py_ssize_t*, double*, double*,
        int) noexcept
    Status c_sum_by_label "fastml::sum_by_label"[T](
        const CRows[T]&, const T*, const int32_t*, Py_ssize_t, double*, double*, int) noexcept
    Status c_inertia "fastml::inertia"[T](
        const CRows[T]&, const T*, const T*, const int32_t*, Py_ssize_t, T*, double*,
        int) noexcept
    Status c_distances "fastml::distances"[T](
        const CRows[T]&, const T*, Py_ssize_t, T*, int) noexcept
    Status c_column_moments "fastml::column_moments"[T](
        const CRows[T]&, double*, double*, int) noexcept

cdef extern from "kmeans/lloyd.h" namespace "fastml" nogil:
    cdef cppclass Bounds:
        float* upper
        float* lower

    cdef cppclass KeptRows:
        float* words
        float* norms
        float* lost

    Py_ssize_t kept_size(Py_ssize_t, Py_ssize_t, bool_t, Py_ssize_t*) noexcept

    cdef cppclass CMemory "fastml::Memory"[T]:
        Bounds bounds
        int32_t* before
        int32_t* work
        T* centers
        double* sums
        double* weights
        KeptRows kept
        bool_t wanted
        bool_t bounded
        int wait
        int patience
        int age
        double settled

    Status c_lloyd_step "fastml::lloyd_step"[T](
        const CRows[T]&, const T*, const T*, Py_ssize_t, CMemory[T]&, int32_t*, Py_ssize_t*,
        double*, double*, int) noexcept

cdef extern from "kmeans/seeding.h" namespace "fastml" nogil:
    cdef cppclass Sketch:
        unsigned char* codes
        float* half_norm
        float* error
        float* reach
        uint64_t* nearer
        float* rows
        Py_ssize_t row

    void sketch_shape(Py_ssize_t, Py_ssize_t, Py_ssize_t*, Py_ssize_t*, Py_ssize_t*) noexcept
    cdef enum:
        max_sketched
        most_parts

    Status c_make_sketch "fastml::make_sketch"[T](const CRows[T]&, Sketch&, bool_t*, int) noexcept
    Py_ssize_t c_panels_size "fastml::panels_size"[T](Py_ssize_t, Py_ssize_t) noexcept
    Status c_make_panels "fastml::make_panels"[T](const CRows[T]&, T*, int) noexcept
    Status c_gains "fastml::gains"[T](
        const CRows[T]&, const T*, const T*, const Sketch*, const T*, const Py_ssize_t*,
        Py_ssize_t, double*, int) noexcept
    Status c_accept "fastml::accept"[T](
        const CRows[T]&, const T*, T*, const Sketch*, const T*, Py_ssize_t, Py_ssize_t, double*,
        double*, int) noexcept
    void c_search_cumulative "fastml::search_cumulative"[T](
        const T*, const T*, Py_ssize_t, const double*, const double*, Py_ssize_t,
        Py_ssize_t*) noexcept

bind_pool(the_pool())


def assign(
    Rows rows,
    const floating[:, ::1] centers,  # IN
    const floating[::1] w,           # IN, or None
    int32_t[::1] labels,             # INOUT
    double[:, ::1] sums,             # OUT, or None
    double[::1] weights,             # OUT, or None
    int n_threads,
):
    """Label every row with its nearest center; return how many labels changed."""
    cdef CRows[floating] r = of[floating](rows, NULL)
    cdef const floating* pw = pointer(w)
    cdef double* psums = &sums[0, 0] if sums is not None else NULL
    cdef double* pweights = &weights[0] if weights is not None else NULL
    cdef Py_ssize_t changed = 0
    cdef Status status
    with nogil:
        status = c_assign(r, pw, &centers[0, 0], centers.shape[0], &labels[0], &changed, psums,
                          pweights, n_threads)
    check(status)
    return changed


def sum_by_label(
    Rows rows,
    w,                          # IN, of the rows' dtype, or None
    const int32_t[::1] labels,  # IN
    double[:, ::1] sums,        # OUT
    double[::1] weights,        # OUT
    int n_threads,
):
    """The weighted sum of the rows of each label, and its weight."""
    cdef const float[::1] w32
    cdef const double[::1] w64
    cdef const float* p32 = NULL
    cdef const double* p64 = NULL
    cdef bint single = rows.is_single
    cdef Status status
    if w is not None and single:
        w32 = w
        p32 = &w32[0]
    elif w is not None:
        w64 = w
        p64 = &w64[0]
    with nogil:
        if single:
            status = c_sum_by_label(rows.single, p32, &labels[0], weights.shape[0], &sums[0, 0],
                                    &weights[0], n_threads)
        else:
            status = c_sum_by_label(rows.double_, p64, &labels[0], weights.shape[0], &sums[0, 0],
                                    &weights[0], n_threads)
    check(status)


def inertia(
    Rows rows,
    const floating[:, ::1] centers,  # IN
    const floating[::1] w,           # IN, or None
    const int32_t[::1] labels,       # IN
    floating[::1] sqdist,            # OUT, or None
    int n_threads,
):
    """The weighted sum of squared distances to the assigned centers."""
    cdef CRows[floating] r = of[floating](rows, NULL)
    cdef const floating* pw = pointer(w)
    cdef floating* psqdist = &sqdist[0] if sqdist is not None else NULL
    cdef double total = 0
    cdef Status status
    with nogil:
        status = c_inertia(r, pw, &centers[0, 0], &labels[0], centers.shape[0], psqdist,
                           &total, n_threads)
    check(status)
    return total


def distances(
    Rows rows,
    const floating[:, ::1] centers,  # IN
    floating[:, ::1] out,            # OUT
    int n_threads,
):
    """Euclidean distances from every row to every center."""
    cdef CRows[floating] r = of[floating](rows, NULL)
    cdef Status status
    with nogil:
        status = c_distances(r, &centers[0, 0], centers.shape[0], &out[0, 0], n_threads)
    check(status)


def column_moments(
    Rows rows,
    double[::1] mean,      # OUT
    double[::1] variance,  # OUT
    int n_threads,
):
    """Mean and variance of every column, zeros counted; the shift is ignored."""
    cdef bint single = rows.is_single
    cdef Status status
    with nogil:
        if single:
            status = c_column_moments(rows.single, &mean[0], &variance[0], n_threads)
        else:
            status = c_column_moments(rows.double_, &mean[0], &variance[0], n_threads)
    check(status)


def move_centers(
    const floating[:, ::1] centers,  # IN
    floating[::1] counts,            # INOUT: the weight that each is the mean of
    const double[:, ::1] sums,       # IN: of rows that join them
    const double[::1] weights,       # IN
    floating[:, ::1] moved,          # OUT
):
    """The means of centers together with the rows that join them."""
    cdef Py_ssize_t j, p
    cdef double count, total
    with nogil:
        for j in range(centers.shape[0]):
            if weights[j] > 0:
                count, total = counts[j], counts[j] + weights[j]
                for p in range(centers.shape[1]):
                    moved[j, p] = <floating>((sums[j, p] + centers[j, p] * count) / total)
                counts[j] = <floating>total
            else:
                moved[j] = centers[j]


cdef class Memory:
    """What Lloyd's steps on dense rows remember: bounds on distances, and the sums of clusters.

    `w` are the weights, of the rows' dtype, or None.
    """
    cdef Rows rows
    cdef object w, buffers
    cdef int n_threads
    cdef CMemory[float] single
    cdef CMemory[double] double_

    def __init__(self, Rows rows, w, Py_ssize_t k, int n_threads):
        self.rows, self.w, self.n_threads = rows, w, n_threads
        if rows.is_single:
            self._begin[float](&self.single, k, NULL)
        else:
            self._begin[double](&self.double_, k, NULL)

    cdef _begin(self, CMemory[floating]* memory, Py_ssize_t k, const floating* kind):
        cdef float[:, ::1] bounds = np.empty((2, self.rows.n), dtype=np.float32)
        cdef int32_t[:, ::1] lists = np.empty((2, self.rows.n), dtype=np.int32)
        cdef floating[:, ::1] centers = np.empty((k, self.rows.d), dtype=self.rows.X.dtype)
        cdef double[::1] sums = np.empty(k * (self.rows.d + 1))
        cdef Py_ssize_t stride
        cdef Py_ssize_t size = kept_size(self.rows.n, self.rows.d, floating is float, &stride)
        cdef float[::1] kept = np.empty(size, dtype=np.float32)
        self.buffers = bounds, lists, centers, sums, kept
        if size:
            memory.kept.words = &kept[0]
            memory.kept.lost = &kept[size - stride]
            memory.kept.norms = memory.kept.lost - stride
        memory.bounds.upper, memory.bounds.lower = &bounds[0, 0], &bounds[1, 0]
        memory.before, memory.work = &lists[0, 0], &lists[1, 0]
        memory.centers = &centers[0, 0]
        memory.sums, memory.weights = &sums[0], &sums[k * self.rows.d]
        np.asarray(lists)[0] = -1
        memory.age = 1 << 16  # no sums yet

    def step(
        self,
        const floating[:, ::1] centers,  # IN
        int32_t[::1] labels,             # INOUT: what the last step left
        double[:, ::1] sums,             # OUT, or None
        double[::1] weights,             # OUT, or None
    ):
        """Label every row with its nearest center; return how many labels changed."""
        cdef CRows[floating] r = of[floating](self.rows, NULL)
        cdef const floating[::1] w = self.w
        cdef const floating* pw = pointer(w)
        cdef double* psums = &sums[0, 0] if sums is not None else NULL
        cdef double* pweights = &weights[0] if weights is not None else NULL
        cdef Py_ssize_t changed = 0
        cdef Status status
        with nogil:
            if floating is float:
                status = c_lloyd_step(r, pw, &centers[0, 0], centers.shape[0], self.single,
                                      &labels[0], &changed, psums, pweights, self.n_threads)
            else:
                status = c_lloyd_step(r, pw, &centers[0, 0], centers.shape[0], self.double_,
                                      &labels[0], &changed, psums, pweights, self.n_threads)
        check(status)
        return changed


MAX_SKETCHED = max_sketched


cdef class Seeds:
    """The centers that k-means++ has picked so far: closest squared distances to them.

    `w`, of the rows' dtype, may be None. With `sketched` (dense rows only), rows are first
    compared by 8-bit codes: the same numbers come out, sooner if there are many centers to pick.
    `gains` takes up to `MAX_SKETCHED` candidates then.
    """
    cdef Rows rows
    cdef int n_threads
    cdef bint single, sketched
    cdef object closest_, w_
    cdef object buffers  # what `sketch` or `panels` points into
    cdef Sketch sketch
    cdef double parts[most_parts]
    cdef void* closest
    cdef const void* w
    cdef void* panels

    def __init__(self, Rows rows, w, bint sketched, int n_threads):
        self.rows, self.w_, self.n_threads = rows, w, n_threads
        self.single = rows.is_single
        self.closest_ = np.full(rows.n, np.inf, dtype=rows.X.dtype)
        self.closest = <void*><size_t>self.closest_.ctypes.data
        self.w = <const void*><size_t>w.ctypes.data if w is not None else NULL
        self.sketched = sketched
        self.panels = NULL
        if sketched:
            self._make_sketch()
        if not self.sketched and self._takes_panels():
            self._make_panels()

    def _takes_panels(self):
        return isinstance(self.rows.X, np.ndarray) and self.rows.n * self.rows.d <= 1 << 25

    def _make_panels(self):
        cdef Status status
        cdef Py_ssize_t n = self.rows.n, d = self.rows.d
        size = c_panels_size[float](n, d) if self.single else c_panels_size[double](n, d)
        self.buffers = np.empty(size, dtype=self.rows.X.dtype)
        self.panels = <void*><size_t>self.buffers.ctypes.data
        with nogil:
            if self.single:
                status = c_make_panels(self.rows.single, <float*>self.panels, self.n_threads)
            else:
                status = c_make_panels(self.rows.double_, <double*>self.panels, self.n_threads)
        check(status)

    def _make_sketch(self):
        cdef Py_ssize_t panels = 0, padded = 0, n_bytes = 0
        sketch_shape(self.rows.n, self.rows.d, &panels, &padded, &n_bytes)
        cdef unsigned char[::1] codes = np.empty(n_bytes, dtype=np.uint8)
        cdef float[:, ::1] per_row = np.empty((3, padded), dtype=np.float32)
        cdef uint64_t[::1] nearer = np.empty(max_sketched * panels, dtype=np.uint64)
        cdef bool_t usable = False
        cdef Status status
        self.buffers = codes, per_row, nearer, self._make_rows()
        self.sketch.codes = &codes[0]
        self.sketch.half_norm = &per_row[0, 0]
        self.sketch.error = &per_row[1, 0]
        self.sketch.reach = &per_row[2, 0]
        self.sketch.nearer = &nearer[0]
        with nogil:
            if self.single:
                status = c_make_sketch(self.rows.single, self.sketch, &usable, self.n_threads)
            else:
                status = c_make_sketch(self.rows.double_, self.sketch, &usable, self.n_threads)
        check(status)
        self.sketched = usable

    def _make_rows(self):
        """Room for the rows in single precision: for long ones, unless it takes much memory."""
        if self.single or self.rows.d < 64 or self.rows.n * self.rows.d > 1 << 26:
            self.sketch.rows = NULL
            return None
        line = 64
        self.sketch.row = -(-self.rows.d * 4 // line) * (line // 4)
        entries = np.empty(self.rows.n * self.sketch.row * 4 + line, dtype=np.uint8)
        start = -entries.ctypes.data % line
        self.sketch.rows = <float*><size_t>(entries.ctypes.data + start)
        return entries

    def accept(self, Py_ssize_t row, Py_ssize_t candidate=-1):
        """Make `row` a center; return the potential that is left.

        `candidate`: which candidate of the last call of `gains` it was, if it was one.
        """
        cdef const Sketch* sketch = &self.sketch if self.sketched else NULL
        cdef double total = 0
        cdef Status status
        with nogil:
            if self.single:
                status = c_accept(self.rows.single, <const float*>self.w, <float*>self.closest,
                                  sketch, <const float*>self.panels, row, candidate, self.parts,
                                  &total, self.n_threads)
            else:
                status = c_accept(self.rows.double_, <const double*>self.w, <double*>self.closest,
                                  sketch, <const double*>self.panels, row, candidate, self.parts,
                                  &total, self.n_threads)
        check(status)
        return total

    def gains(self, const Py_ssize_t[::1] candidates, double[::1] gain):
        """How much of the potential each candidate row would take off."""
        cdef const Sketch* sketch = &self.sketch if self.sketched else NULL
        cdef Py_ssize_t n_candidates = candidates.shape[0]
        cdef Status status
        if self.sketched and n_candidates > max_sketched:
            raise ValueError(f"{n_candidates} candidates: codes take {max_sketched} at a time.")
        with nogil:
            if self.single:
                status = c_gains(self.rows.single, <const float*>self.w, <const float*>self.closest,
                                 sketch, <const float*>self.panels, &candidates[0], n_candidates,
                                 &gain[0], self.n_threads)
            else:
                status = c_gains(self.rows.double_, <const double*>self.w,
                                 <const double*>self.closest, sketch, <const double*>self.panels,
                                 &candidates[0], n_candidates, &gain[0], self.n_threads)
        check(status)

    def search(self, const double[::1] targets, Py_ssize_t[::1] rows):
        """The rows at which the running sum of the potential reaches `targets`, ascending."""
        cdef Py_ssize_t n_targets = targets.shape[0]
        with nogil:
            if self.single:
                c_search_cumulative(<const float*>self.closest, <const float*>self.w, self.rows.n,
                                    self.parts, &targets[0], n_targets, &rows[0])
            else:
                c_search_cumulative(<const double*>self.closest, <const double*>self.w,
                                    self.rows.n, self.parts, &targets[0], n_targets, &rows[0])
