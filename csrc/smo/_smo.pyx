"""The dual of kernel machines. Arguments are already validated; see csrc/smo/smo.h."""

from typing import NamedTuple

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int8_t, int64_t
from libc.stdlib cimport calloc, free
from libcpp.memory cimport unique_ptr

import numpy as np

from fastml._native.rows cimport CRows, of
from fastml._native.rows cimport Rows as DataRows
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

    cdef cppclass CMeasure "fastml::Measure":
        Metric metric
        double gamma
        double coef0
        double degree
        const double* weights
        bint by_differences

cdef extern from "smo/smo.h" namespace "fastml" nogil:
    cdef cppclass Kernel:
        pass
    ctypedef int (*RowsFunction)(void*, const Py_ssize_t*, Py_ssize_t, double*) noexcept
    unique_ptr[Kernel] gram_kernel[T](const T*, Py_ssize_t, Py_ssize_t, Py_ssize_t) noexcept
    unique_ptr[Kernel] rows_kernel[T](const CRows[T]&, const CMeasure&) noexcept
    unique_ptr[Kernel] function_kernel(Py_ssize_t, RowsFunction, void*) noexcept

    cdef enum class SvmEnd(int):
        converged

    cdef struct SvmProblem:
        Py_ssize_t m
        const Py_ssize_t* rows
        const int8_t* signs
        const double* linear
        const double* upper
        const double* start
        double* alpha
        double* gradient
    cdef struct SvmOptions:
        bint nu
        bint bias
        bint shrinking
        double tol
        double cache_bytes
        int64_t max_iter
    cdef struct SvmSolution:
        double rho
        double r
        double objective
        double gap
        int64_t n_iter
        SvmEnd end

cdef extern from *:
    """
    #include <atomic>
    #include <chrono>
    #include "smo/smo.h"
    namespace {
    // Calls `tell`, which takes the GIL, a few times a second.
    class Watch final : public fastml::SvmWatch {
      public:
        using Tell = int (*)(void*, double, double);
        Watch(void* context, Tell tell) : context_(context), tell_(tell), next_(now() + wait) {}
        fastml::Status look(double steps, double gap) noexcept override {
            if (stopped_.load()) return fastml::Status::interrupted;
            const auto total = total_.fetch_add(static_cast<std::int64_t>(steps)) + steps;
            std::int64_t next = next_.load();
            if (now() < next || !next_.compare_exchange_strong(next, now() + wait))
                return fastml::Status::ok;
            const int answer = tell_(context_, total, gap);
            if (answer == 1) enough_.store(true);
            if (answer >= 0) return fastml::Status::ok;
            stopped_.store(true);
            return fastml::Status::interrupted;
        }
        bool enough() const noexcept override { return enough_.load(); }
      private:
        static constexpr std::int64_t wait = 100;
        static std::int64_t now() {
            using namespace std::chrono;
            return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
        }
        void* context_;
        Tell tell_;
        std::atomic<std::int64_t> total_{0}, next_;
        std::atomic<bool> stopped_{false}, enough_{false};
    };
    }
    """
    cdef cppclass SvmWatch "fastml::SvmWatch":
        pass
    cdef cppclass Watch(SvmWatch):
        Watch(void*, int (*)(void*, double, double) noexcept)

cdef extern from "smo/smo.h" namespace "fastml" nogil:
    Status solve_svm(
        const Kernel&, const SvmProblem*, Py_ssize_t, const SvmOptions&, SvmWatch&, SvmSolution*,
        int) noexcept

bind_pool(the_pool())

NAMES = {"poly": "polynomial"}


class Problem(NamedTuple):
    """min 1/2 a'Qa + linear'a with Q[s, t] = signs[s] signs[t] K(rows[s], rows[t])."""

    rows: np.ndarray  # intp, into the kernel's; a row may come several times
    signs: np.ndarray  # int8, -1 or 1
    linear: np.ndarray
    upper: np.ndarray
    start: np.ndarray | None = None  # feasible; zeros by default


class Solution(NamedTuple):
    """The decision function is the sum of alpha[s] signs[s] K(rows[s], .) less rho."""

    alpha: np.ndarray
    rho: float
    r: float  # with nu, what libsvm divides by
    objective: float
    n_iter: int  # two-variable steps
    gap: float  # violation of the optimality conditions, from a gradient in float64
    status: int  # 0 converged, 1 max_iter, 2 no step makes it better in float64
    gradient: np.ndarray  # of the objective by alpha, in float64


cdef int _ask(
    void* context, const Py_ssize_t* ids, Py_ssize_t count, double* out
) noexcept with gil:
    cdef Rows rows = <Rows>context
    cdef double[:, ::1] values = <double[:count, :rows.n]>out
    try:
        np.asarray(values)[:] = rows.given(np.asarray(<Py_ssize_t[:count]>ids).copy())
    except BaseException as error:
        rows.error = error
        return 1
    return 0


cdef int _tell(void* context, double steps, double gap) noexcept with gil:
    cdef list watch = <list>context
    try:
        if watch[0] is not None:
            return bool(watch[0](int(steps), gap))
        PyErr_CheckSignals()  # inside a task nothing else looks for Ctrl-C
    except BaseException as error:
        watch.append(error)
        return -1
    return 0


cdef class Rows:
    """Training rows and their kernel: made once a fit, read by every problem."""

    cdef unique_ptr[Kernel] kernel
    cdef readonly Py_ssize_t n
    cdef object given, error

    def __init__(self, X, str kernel, *, double gamma=1, double coef0=0, double degree=1,
                 int n_threads=1):
        cdef DataRows rows = DataRows(X)
        cdef CMeasure measure
        measure.metric = Metric[NAMES.get(kernel, kernel)]
        measure.gamma, measure.coef0, measure.degree = gamma, coef0, degree
        measure.weights = NULL
        measure.by_differences = False
        self.n, self.given = rows.n, rows
        if rows.is_single:
            self.kernel = rows_kernel[float](of[float](rows, NULL), measure)
        else:
            self.kernel = rows_kernel[double](of[double](rows, NULL), measure)
        self._check()

    @classmethod
    def of_gram(cls, K, int n_threads=1):
        cdef Rows self = cls.__new__(cls)
        self.n, self.given = K.shape[0], K
        cdef const float[:, :] single
        cdef const double[:, :] wide
        cdef Py_ssize_t rows = K.strides[0] // K.itemsize, columns = K.strides[1] // K.itemsize
        if K.dtype == np.float32:
            single = K
            self.kernel = gram_kernel(&single[0, 0], self.n, rows, columns)
        else:
            wide = K
            self.kernel = gram_kernel(&wide[0, 0], self.n, rows, columns)
        self._check()
        return self

    @classmethod
    def of_function(cls, Py_ssize_t n, rows, diagonal=None, int n_threads=1):
        cdef Rows self = cls.__new__(cls)
        self.n, self.given = n, rows
        self.kernel = function_kernel(n, <RowsFunction>_ask, <void*>self)
        self._check()
        return self

    def _check(self):
        if not self.kernel:
            raise MemoryError("fastml: no memory for the rows of a kernel")


cdef class _Problems:
    """Problems and solutions as the solver takes them."""

    cdef SvmProblem* at
    cdef SvmSolution* solved
    cdef list arrays, results
    cdef Py_ssize_t n

    def __cinit__(self, problems):
        self.n = len(problems)
        self.at = <SvmProblem*>calloc(self.n + 1, sizeof(SvmProblem))
        self.solved = <SvmSolution*>calloc(self.n + 1, sizeof(SvmSolution))
        self.arrays, self.results = [], []
        if not self.at or not self.solved:
            raise MemoryError
        for p, problem in enumerate(problems):
            self.take(&self.at[p], problem)

    def __dealloc__(self):
        free(self.at)
        free(self.solved)

    cdef take(self, SvmProblem* to, problem):
        cdef const Py_ssize_t[::1] rows = np.ascontiguousarray(problem.rows, np.intp)
        cdef const int8_t[::1] signs = np.ascontiguousarray(problem.signs, np.int8)
        cdef const double[::1] linear = np.ascontiguousarray(problem.linear, np.float64)
        cdef const double[::1] upper = np.ascontiguousarray(problem.upper, np.float64)
        cdef const double[::1] start
        cdef double[:, ::1] out = np.zeros((2, rows.shape[0]))
        to.m, to.rows, to.signs = rows.shape[0], &rows[0], &signs[0]
        to.linear, to.upper = &linear[0], &upper[0]
        to.alpha, to.gradient = &out[0, 0], &out[1, 0]
        if problem.start is not None:
            start = np.ascontiguousarray(problem.start, np.float64)
            to.start = &start[0]
            self.arrays.append(start)
        self.arrays.append((rows, signs, linear, upper))
        self.results.append(np.asarray(out))

    def solutions(self):
        cdef SvmSolution s
        solutions = []
        for p, (alpha, gradient) in enumerate(self.results):
            s = self.solved[p]
            solutions.append(
                Solution(alpha, s.rho, s.r, s.objective, s.n_iter, s.gap, <int>s.end, gradient))
        return solutions


def solve(
    Rows rows,
    problems,
    *,
    bint nu=False,
    bint bias=True,
    double tol=1e-3,
    bint shrinking=True,
    double cache_size=200,
    int64_t max_iter=-1,
    int n_threads=1,
    progress=None,
):
    """Solve each problem. `progress(steps, gap)`, called a few times a second, may return True
    to end it."""
    cdef _Problems all = _Problems(problems)
    cdef SvmOptions options
    options.nu, options.bias, options.shrinking = nu, bias, shrinking
    options.tol, options.cache_bytes, options.max_iter = tol, cache_size * (1 << 20), max_iter
    cdef list told = [progress]
    cdef Watch* watch = new Watch(<void*>told, _tell)
    cdef Status status
    rows.error = None
    try:
        with nogil:
            status = solve_svm(rows.kernel.get()[0], all.at, all.n, options, watch[0], all.solved,
                               n_threads)
    finally:
        del watch
    if status == Status.interrupted and (rows.error or len(told) > 1):
        raise rows.error or told[1]
    check(status)
    return all.solutions()
