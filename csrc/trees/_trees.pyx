"""Growing decision trees. Arguments are already validated; see csrc/trees/grow.h."""

from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libcpp cimport bool as bool_t
from libcpp.vector cimport vector

import numpy as np
from scipy.sparse import issparse

from sklearn.tree._tree import NODE_DTYPE

from fastml._native.runtime cimport Status, bind_pool, check, the_pool

cdef extern from "trees/columns.h" namespace "fastml" nogil:
    cdef struct CColumns "fastml::Columns":
        Py_ssize_t n
        Py_ssize_t d
        const bool_t* missing

    Py_ssize_t most_rows

    cdef cppclass LevelSet:
        pass

    cdef cppclass ColumnStore:
        Status rank(const float*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, int) noexcept
        Status copy(const float*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, int) noexcept
        Status sparse(
            const float*, const int32_t*, const int32_t*, Py_ssize_t, Py_ssize_t, bool_t, int
        ) noexcept
        Status take(const CColumns&, const int64_t*, Py_ssize_t, int) noexcept
        void categorize(const int32_t*)
        const CColumns& columns() noexcept
        Py_ssize_t bytes() noexcept

cdef extern from "trees/choice.h" namespace "fastml" nogil:
    Status c_invert_cdf "fastml::invert_cdf"(
        const double*, Py_ssize_t, const double*, Py_ssize_t, int64_t*) noexcept

cdef extern from "trees/tree.h" namespace "fastml" nogil:
    cdef enum class CriterionName(int):
        gini
        entropy
        misclassification
        squared_error
        poisson
        absolute_error
        user

    ctypedef double (*Impurity)(const double*, const double*, Py_ssize_t) noexcept nogil

    cdef cppclass Growth:
        const CColumns* columns
        const double* y
        Py_ssize_t n_outputs
        const int64_t* n_classes
        Py_ssize_t max_n_classes
        CriterionName criterion
        Impurity impurity
        bool_t random_splits
        Py_ssize_t max_features
        Py_ssize_t max_depth
        Py_ssize_t min_samples_split
        Py_ssize_t min_samples_leaf
        double min_weight_leaf
        double min_impurity_decrease
        Py_ssize_t max_leaf_nodes
        const int8_t* monotonic

    cdef cppclass Node:
        pass

cdef extern from "trees/levels.h" namespace "fastml" nogil:
    cdef cppclass CLevelTree "fastml::LevelTree":
        const double* values

    bint pack_levels(
        const Node*, const LevelSet*, Py_ssize_t, const int32_t*, Py_ssize_t, CLevelTree&) except +
    Status walk_levels(
        const CLevelTree*, Py_ssize_t, const float*, Py_ssize_t, Py_ssize_t, Py_ssize_t, double*,
        int64_t*, int) noexcept

cdef extern from "trees/grow.h" namespace "fastml" nogil:
    cdef cppclass Ripe:
        Py_ssize_t number
        const Node* nodes
        Py_ssize_t n_nodes
        Py_ssize_t max_depth
        const double* values
        const LevelSet* levels

    ctypedef bool_t (*Take)(void*, const Ripe&) noexcept

    cdef cppclass WeightsOfTrees:
        const double* real
        const int32_t* counts
        Py_ssize_t n
        const uint32_t* bootstraps
        Py_ssize_t draws

    cdef cppclass CGarden "fastml::Garden":
        CGarden(
            const Growth&, const WeightsOfTrees&, const uint32_t*, Py_ssize_t, int) except +
        Status work(Take, void*) noexcept

cdef extern from "trees/replay.h" namespace "fastml" nogil:
    Py_ssize_t row_slack
    cdef cppclass ReplayScratch:
        ReplayScratch(Py_ssize_t) noexcept
        bint is_made "operator bool"() noexcept
    void c_replay_sort "fastml::replay_sort"(
        uint32_t*, int32_t*, Py_ssize_t, ReplayScratch&) noexcept
    Py_ssize_t c_replay_partition "fastml::replay_partition"(
        int32_t*, const uint8_t*, Py_ssize_t, ReplayScratch&) noexcept
    Py_ssize_t c_replay_missing_last "fastml::replay_missing_last"(
        int32_t*, const uint8_t*, Py_ssize_t, ReplayScratch&) noexcept

cdef extern from "trees/bootstrap.h" namespace "fastml" nogil:
    void c_draw_bootstrap "fastml::draw_bootstrap"(
        uint32_t, Py_ssize_t, Py_ssize_t, int32_t*) noexcept

bind_pool(the_pool())

CRITERIA = {
    "gini": CriterionName.gini,
    "entropy": CriterionName.entropy,
    "log_loss": CriterionName.entropy,
    "misclassification": CriterionName.misclassification,
    "squared_error": CriterionName.squared_error,
    "friedman_mse": CriterionName.squared_error,
    "poisson": CriterionName.poisson,
    "absolute_error": CriterionName.absolute_error,
}


def refusal(criterion):
    """Why trees cannot be grown here, or None."""
    if isinstance(criterion, str) and criterion not in CRITERIA:
        return f"the criterion {criterion!r} is not native"
    return None


cdef class Columns:
    """The matrix `X` (n, d), float32 without infinities, as growing trees read it.

    With `ranks`, for best splits, each feature is kept as the ranks of its values; without, for
    random splits, as it is. Sparse ones are CSC, without missing values or repeated entries; their
    indices ascend. Features of which `levels` (d,) int32 is not zero are categorical, with so many
    levels; see csrc/trees/columns.h. One object serves all trees of a forest.
    """
    cdef ColumnStore store
    cdef readonly bint ranks
    cdef readonly object levels
    cdef tuple kept  # what the store points to

    def __init__(self, X, *, bint ranks, int n_threads, levels=None):
        cdef const int32_t[::1] n_levels
        if X.shape[0] > most_rows:
            raise ValueError(f"trees take at most {most_rows} rows, not {X.shape[0]}")
        self.ranks = ranks
        self.levels = levels
        if issparse(X):
            self.set_sparse(X, n_threads)
        else:
            self.set_dense(X, n_threads)
        if levels is not None:
            n_levels = levels
            self.store.categorize(&n_levels[0])

    cdef set_dense(self, const float[:, :] X, int n_threads):
        cdef Py_ssize_t n = X.shape[0], d = X.shape[1]
        cdef Py_ssize_t row = X.strides[0] // 4, column = X.strides[1] // 4
        cdef Status status
        with nogil:
            if self.ranks:
                status = self.store.rank(&X[0, 0], row, column, n, d, n_threads)
            else:
                status = self.store.copy(&X[0, 0], row, column, n, d, n_threads)
        check(status)

    cdef set_sparse(self, X, int n_threads):
        cdef const float[::1] data = X.data
        cdef const int32_t[::1] indices = X.indices, indptr = X.indptr
        cdef Py_ssize_t n = X.shape[0], d = X.shape[1]
        cdef Status status
        self.kept = X.data, X.indices
        with nogil:
            status = self.store.sparse(
                &data[0], &indices[0], &indptr[0], n, d, self.ranks, n_threads)
        check(status)

    def take(self, const int64_t[::1] rows, *, int n_threads):
        """These rows, of ranks that are not sparse; copies of a row have its target and weight."""
        cdef Columns taken = Columns.__new__(Columns)
        cdef Status status
        taken.ranks = True
        taken.kept = (self,)
        with nogil:
            status = taken.store.take(
                self.store.columns(), &rows[0], rows.shape[0], n_threads)
        check(status)
        return taken

    @property
    def n(self):
        return self.store.columns().n

    @property
    def d(self):
        return self.store.columns().d

    @property
    def nbytes(self):
        return self.store.bytes()

    @property
    def missing(self):
        """Which features have NaN."""
        return np.array([self.store.columns().missing[f] for f in range(self.d)], dtype=bool)


cdef class Garden:
    """Trees that grow side by side, one a seed.

    Splits are the best ones if `columns` holds ranks, otherwise random ones. The criterion is a
    name, or the address of an Impurity; see csrc/trees/tree.h.
    """
    cdef CGarden* garden
    cdef Growth growth
    cdef tuple kept  # what the garden points to
    cdef object take, error
    cdef list taken
    cdef bint is_over

    def __cinit__(
        self,
        Columns columns not None,
        const double[:, ::1] y,            # IN (n, n_outputs)
        weights,                           # IN (1 or T, n) float64, int32, or None
        seeds,                             # IN (T,)
        *,
        bootstraps=None,                   # IN (T,): seeds, of `draws` rows each, or None
        Py_ssize_t draws=0,
        criterion,
        n_classes,
        Py_ssize_t max_features,
        max_depth,
        Py_ssize_t min_samples_split,
        Py_ssize_t min_samples_leaf,
        double min_weight_leaf,
        double min_impurity_decrease,
        max_leaf_nodes,
        monotonic_cst,
        int n_threads,
    ):
        cdef const int64_t[::1] classes = None
        cdef const int8_t[::1] monotonic = monotonic_cst
        cdef const double[:, ::1] real
        cdef const int32_t[:, ::1] counts
        cdef const uint32_t[::1] states = np.ascontiguousarray(seeds, dtype=np.uint32)
        cdef const uint32_t[::1] drawn = None
        cdef WeightsOfTrees given
        cdef Growth* growth = &self.growth

        growth.columns = &columns.store.columns()
        growth.y = &y[0, 0]
        growth.n_outputs = y.shape[1]
        growth.n_classes = NULL
        growth.max_n_classes = 1
        if n_classes is not None:
            classes = np.ascontiguousarray(n_classes, dtype=np.int64)
            growth.n_classes = &classes[0]
            growth.max_n_classes = max(n_classes)
        growth.impurity = NULL
        if isinstance(criterion, str):
            growth.criterion = CRITERIA[criterion]
        else:
            growth.criterion = CriterionName.user
            growth.impurity = <Impurity><Py_ssize_t>criterion
        growth.random_splits = not columns.ranks
        growth.max_features = max_features
        growth.max_depth = 2**31 - 1 if max_depth is None else max_depth
        growth.min_samples_split = min_samples_split
        growth.min_samples_leaf = min_samples_leaf
        growth.min_weight_leaf = min_weight_leaf
        growth.min_impurity_decrease = min_impurity_decrease
        growth.max_leaf_nodes = -1 if max_leaf_nodes is None else max_leaf_nodes
        growth.monotonic = NULL
        if monotonic is not None:
            growth.monotonic = &monotonic[0]
        if weights is not None:
            given.n = weights.shape[0]
            if weights.dtype == np.int32:
                counts = weights
                given.counts = &counts[0, 0]
            else:
                real = weights
                given.real = &real[0, 0]
        if bootstraps is not None:
            drawn = np.ascontiguousarray(bootstraps, dtype=np.uint32)
            given.bootstraps, given.draws = &drawn[0], draws
        self.kept = columns, y, weights, classes, monotonic, states, drawn
        self.garden = new CGarden(growth[0], given, &states[0], states.shape[0], n_threads)

    def __dealloc__(self):
        del self.garden

    def harvest(self, take):
        """Work until trees are complete: list of their numbers and what `take` returns, unordered.

        It is empty when all trees have been. take(nodes, values, max_depth) is called as soon as a
        tree is complete, by the thread that has grown it. Nodes and values are as scikit-learn's
        Tree has them. With categorical features there is a fourth, the levels that go left, 256
        bits a node. The arrays are good during the call. After an error there is nothing more to
        harvest.
        """
        cdef Status status
        if self.is_over:
            raise RuntimeError("growing these trees has ended by an error")
        self.is_over = True
        self.take, self.taken = take, []
        with nogil:
            status = self.garden.work(take_ripe, <void*> self)
        check(status)
        if self.error is not None:
            raise self.error
        self.is_over = False
        return self.taken

    cdef arrays(self, const Ripe& ripe):
        cdef Py_ssize_t n = ripe.n_nodes
        shape = n, self.growth.n_outputs, self.growth.max_n_classes
        nodes = self.seen(ripe.nodes, n * sizeof(Node), NODE_DTYPE)
        values = self.seen(ripe.values, 8 * n * shape[1] * shape[2], np.float64).reshape(shape)
        if ripe.levels == NULL:
            return nodes, values, ripe.max_depth
        levels = self.seen(ripe.levels, n * sizeof(LevelSet), np.uint64).reshape(n, -1)
        return nodes, values, ripe.max_depth, levels

    cdef seen(self, const void* start, Py_ssize_t size, dtype):
        cdef Bytes part = Bytes.__new__(Bytes)
        part.owner, part.start, part.size = self, start, size
        return np.frombuffer(part, dtype)


cdef bool_t take_ripe(void* context, const Ripe& ripe) noexcept with gil:
    cdef Garden garden = <Garden> context
    try:
        garden.taken.append((ripe.number, garden.take(*garden.arrays(ripe))))
    except BaseException as error:
        garden.error = error
    return garden.error is None


cdef class Bytes:
    """Memory that `owner` keeps, to be read."""
    cdef object owner
    cdef const void* start
    cdef Py_ssize_t size

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, <void*> self.start, self.size, 1, flags)


cdef class LevelForest:
    """Trees with categorical features, packed for prediction: checked, and copied.

    `trees` are pairs of a `Tree` and the levels that go left, (nodes, 4) uint64. Features of which
    `n_levels` (d,) int32 is not zero are categorical.
    """
    cdef vector[CLevelTree] packed
    cdef list values
    cdef readonly object node_counts
    cdef readonly Py_ssize_t d, width

    def __init__(self, trees, const int32_t[::1] n_levels):
        cdef const signed char[::1] node_bytes
        cdef const uint64_t[:, ::1] words
        cdef const double[:, ::1] values
        cdef Py_ssize_t t, n
        self.d = n_levels.shape[0]
        self.values = []
        self.packed.resize(len(trees))
        self.node_counts = np.array([tree.node_count for tree, _ in trees], dtype=np.intp)
        for t, (tree, levels) in enumerate(trees):
            n = tree.node_count
            node_bytes, words = tree.__getstate__()["nodes"].view(np.int8), levels
            self.values.append(np.ascontiguousarray(tree.value).reshape(n, -1))
            values = self.values[t]
            self.width = values.shape[1]
            if words.shape[0] != n or words.shape[1] * 8 != sizeof(LevelSet) or not pack_levels(
                <const Node*>&node_bytes[0], <const LevelSet*>&words[0, 0], n, &n_levels[0], self.d,
                self.packed[t],
            ):
                raise ValueError(f"tree {t} is not valid: its nodes make no tree with such sets")
            self.packed[t].values = &values[0, 0]

    def sums(self, const float[:, ::1] X, int n_threads):
        """The leaves' values (n, width), added in the order of the trees."""
        out = np.empty((X.shape[0], self.width))
        cdef double[:, ::1] sums = out
        self._walk(X, &sums[0, 0] if X.shape[0] else NULL, NULL, n_threads)
        return out

    def leaves(self, const float[:, ::1] X, int n_threads):
        """The numbers of the leaves (n, n_trees)."""
        out = np.empty((X.shape[0], len(self.node_counts)), dtype=np.int64)
        cdef int64_t[:, ::1] leaves = out
        self._walk(X, NULL, &leaves[0, 0] if X.shape[0] else NULL, n_threads)
        return out

    cdef _walk(self, const float[:, ::1] X, double* sums, int64_t* leaves, int n_threads):
        cdef Status status
        if X.shape[1] != self.d:
            raise ValueError(f"X has {X.shape[1]} features, the trees have {self.d}")
        with nogil:
            status = walk_levels(self.packed.data(), self.packed.size(), &X[0, 0], X.shape[0],
                                 self.d, self.width, sums, leaves, n_threads)
        check(status)


def invert_cdf(
    const double[::1] cdf,  # IN, ascending to 1
    const double[::1] u,    # IN, in [0, 1)
    int64_t[::1] out,       # OUT, np.searchsorted(cdf, u, side="right")
):
    cdef Status status
    with nogil:
        status = c_invert_cdf(&cdf[0], cdf.shape[0], &u[0], u.shape[0], &out[0])
    check(status)


# Orders of rows as scikit-learn's trees leave them, for tests.

cdef ReplayScratch* scratch(Py_ssize_t m) except NULL:
    cdef ReplayScratch* made = new ReplayScratch(m)
    if not made.is_made():
        del made
        raise MemoryError
    return made


def draw_bootstrap(uint32_t seed, Py_ssize_t draws, int32_t[::1] counts):
    """Fill `counts` (n,), n > 0, with how often each row is drawn."""
    with nogil:
        c_draw_bootstrap(seed, counts.shape[0], draws, &counts[0])


def replay_sort(uint32_t[::1] codes, int32_t[::1] rows):
    """Sort both by `codes`, in place."""
    cdef Py_ssize_t m = codes.shape[0]
    cdef ReplayScratch* memory = scratch(m)
    if m:
        c_replay_sort(&codes[0], &rows[0], m, memory[0])
    del memory


def replay_partition(int32_t[::1] rows, const uint8_t[::1] left):
    """Move the rows that go left to the front; their number. Behind both is some slack."""
    cdef Py_ssize_t m = rows.shape[0] - row_slack, n_left = 0
    cdef ReplayScratch* memory = scratch(m)
    if m:
        n_left = c_replay_partition(&rows[0], &left[0], m, memory[0])
    del memory
    return n_left


def replay_missing_last(int32_t[::1] rows, const uint8_t[::1] present):
    """Move the rows without a value to the end; the number of the others."""
    cdef Py_ssize_t m = rows.shape[0], n_present = 0
    cdef ReplayScratch* memory = scratch(m)
    if m:
        n_present = c_replay_missing_last(&rows[0], &present[0], m, memory[0])
    del memory
    return n_present
