"""Packed trees for prediction; see csrc/forest/forest.h for the contract."""

from libc.stdint cimport int32_t, int64_t
from libcpp cimport bool as bool_t
from libcpp.vector cimport vector

import numpy as np
from scipy.sparse import issparse

from fastml._native.runtime cimport Status, bind_pool, check, the_pool

cdef extern from "common/rows.h" namespace "fastml" nogil:
    cdef cppclass Rows "fastml::Rows<float>":
        const float* data
        const int32_t* indices
        const int32_t* indptr
        Py_ssize_t n
        Py_ssize_t d

cdef extern from "forest/forest.h" namespace "fastml" nogil:
    cdef enum class Layout(int):
        narrow

    cdef enum class Fault(int):
        none

    cdef cppclass GivenTree:
        const Py_ssize_t* left
        const Py_ssize_t* right
        const Py_ssize_t* feature
        const Py_ssize_t* samples
        const double* threshold
        const unsigned char* missing_left
        const Py_ssize_t* columns
        Py_ssize_t n_features
        const double* values
        Py_ssize_t n

    cdef cppclass PackedTree:
        void* nodes
        int32_t* origin
        int32_t* value_row
        const double* values
        Py_ssize_t n_nodes
        Py_ssize_t n_rows
        int depth
        Fault fault
        Py_ssize_t faulty

    cdef cppclass PackedForest:
        const PackedTree* trees
        Py_ssize_t n_trees
        Py_ssize_t d
        Py_ssize_t width
        Py_ssize_t steps
        Layout layout

    Layout layout_for(Py_ssize_t, Py_ssize_t) noexcept
    Py_ssize_t node_size(Layout) noexcept
    Status c_pack "fastml::pack"(
        const GivenTree*, PackedTree*, Py_ssize_t, Py_ssize_t, Layout, int) noexcept
    Status c_sum_values "fastml::sum_values"(
        const PackedForest&, const Rows&, bool_t, double*, int) noexcept
    Status c_classify "fastml::classify"(
        const PackedForest&, const Rows&, Py_ssize_t, Py_ssize_t*, int) noexcept
    Status c_each_values "fastml::each_values"(
        const PackedForest&, const Rows&, double*, int) noexcept
    Status c_leaves "fastml::leaves"(
        const PackedForest&, const Rows&, Py_ssize_t*, int) noexcept
    Status c_count_passed "fastml::count_passed"(
        const PackedForest&, const Rows&, Py_ssize_t*, int) noexcept
    Status c_list_passed "fastml::list_passed"[Index](
        const PackedForest&, const Rows&, const Py_ssize_t*, const Py_ssize_t*, Index*,
        int) noexcept

ctypedef fused Index:
    int32_t
    int64_t

bind_pool(the_pool())

FAULTS = (
    "",
    "has one child",
    "has a child that is not a later node of the tree",
    "has a child that another node has too",
    "splits on a feature that the tree has not",
    "has a threshold of NaN",
)
BATCH = 32  # trees whose arrays are copied and packed at a time


class _Given:
    """Copies of a tree's arrays: what is checked cannot change before it is walked."""

    def __init__(self, Py_ssize_t n, tree, values, columns):
        for name, array, dtype in (
            ("left", tree.children_left, np.intp),
            ("right", tree.children_right, np.intp),
            ("feature", tree.feature, np.intp),
            ("samples", tree.n_node_samples, np.intp),
            ("threshold", tree.threshold, np.float64),
            ("missing_left", tree.missing_go_to_left, np.uint8),
        ):
            copy = np.array(array, dtype=dtype, order="C")
            if copy.shape != (n,):
                raise ValueError("its arrays differ in length from its number of nodes")
            setattr(self, name, copy)
        self.values = np.ascontiguousarray(values, dtype=np.float64).reshape(n, -1)
        self.columns = columns


cdef GivenTree _borrow(given, Py_ssize_t n_features):
    cdef const Py_ssize_t[::1] left = given.left, right = given.right, feature = given.feature
    cdef const Py_ssize_t[::1] samples = given.samples, columns = given.columns
    cdef const double[::1] threshold = given.threshold
    cdef const unsigned char[::1] missing_left = given.missing_left
    cdef const double[:, ::1] values = given.values
    cdef GivenTree tree
    tree.left, tree.right, tree.feature = &left[0], &right[0], &feature[0]
    tree.samples, tree.threshold = &samples[0], &threshold[0]
    tree.missing_left = &missing_left[0]
    tree.columns = &columns[0] if columns is not None else NULL
    tree.values = &values[0, 0]
    tree.n, tree.n_features = left.shape[0], n_features
    return tree


def _aligned(Py_ssize_t size):
    # Uninitialised, and starting on a cache line.
    raw = np.empty(size + 64, dtype=np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start:start + size]


def _columns(features, Py_ssize_t n_features, Py_ssize_t d):
    columns = np.array(features, dtype=np.intp, order="C", ndmin=1)
    if columns.shape != (n_features,) or columns.min() < 0 or columns.max() >= d:
        raise ValueError(f"features must name {n_features} columns out of {d} for each tree")
    return columns


cdef class Forest:
    """Trees packed for prediction: checked, and copied.

    Parameters
    ----------
    trees : sequence of sklearn.tree._tree.Tree
        At least one. ValueError tells what is wrong with a tree that cannot be walked safely.
    values : sequence of arrays, optional
        For each tree what its nodes predict instead of `tree.value`: (nodes, classes) or
        (nodes, outputs, classes).
    features : sequence of integer arrays, optional
        For each tree which of the then `n_features` columns of X are its features.
    """
    cdef vector[PackedTree] packed
    cdef PackedForest forest
    cdef object nodes, origin, values
    cdef readonly object node_counts
    cdef readonly Py_ssize_t n_trees, n_features, n_outputs, n_classes

    def __cinit__(self, trees, int n_threads=1, *, values=None, features=None, n_features=None):
        self.n_trees = len(trees)
        if not self.n_trees:
            raise ValueError("a forest needs a tree")
        self.n_features = trees[0].n_features if n_features is None else n_features
        if values is None:
            self.n_outputs, self.n_classes = trees[0].n_outputs, trees[0].max_n_classes
        else:
            shape = np.shape(values[0])[1:]
            self.n_outputs, self.n_classes = shape if len(shape) == 2 else (1, *shape)
        for t, tree in enumerate(trees):
            if not 0 < tree.node_count <= min(tree.capacity, 2**31 - 2):
                raise ValueError(
                    f"tree {t} is not valid: it has {tree.node_count} nodes and room for "
                    f"{tree.capacity}"
                )
        self.node_counts = np.array([tree.node_count for tree in trees], dtype=np.intp)
        cdef Py_ssize_t width = self.n_outputs * self.n_classes
        if width <= 0 or self.n_features <= 0:
            raise ValueError("trees without features or values are not valid")
        self.forest.d, self.forest.width = self.n_features, width
        self.forest.n_trees = self.n_trees
        self.forest.layout = layout_for(self.n_features, self.node_counts.max())
        self._make_room()
        self.values = []
        for start in range(0, self.n_trees, BATCH):
            given = [
                self._given(t, trees[t], values, features)
                for t in range(start, min(start + BATCH, self.n_trees))
            ]
            self._pack(start, given, [tree.n_features for tree in trees[start:start + BATCH]],
                       n_threads)
        self.forest.trees = &self.packed[0]

    cdef int _make_room(self) except -1:
        cdef Py_ssize_t size = node_size(self.forest.layout), first = 0, t
        rooms = [(n + 8) // 8 * 8 for n in self.node_counts.tolist()]  # whole cache lines
        self.nodes = _aligned(sum(rooms) * size)
        self.origin = np.empty(sum(rooms), dtype=np.int32)
        cdef unsigned char[::1] nodes = self.nodes
        cdef int32_t[::1] origin = self.origin
        self.packed.resize(self.n_trees)
        for t in range(self.n_trees):
            self.packed[t].nodes = &nodes[first * size]
            self.packed[t].origin = &origin[first]
            first += rooms[t]
        return 0

    def _given(self, Py_ssize_t t, tree, values, features):
        """Tree `t`, its shapes checked."""
        n = int(self.node_counts[t])
        value = tree.value if values is None else np.asarray(values[t])
        shapes = [(n, self.n_outputs, self.n_classes)]
        if self.n_outputs == 1 and values is not None:
            shapes.append((n, self.n_classes))
        problem = ""
        if value.shape not in shapes:
            problem = f"its values are of shape {value.shape} and not {shapes[0]}"
        elif features is None and tree.n_features != self.n_features:
            problem = f"it has {tree.n_features} features and not {self.n_features}"
        if problem:
            raise ValueError(f"tree {t} is not valid: {problem}")
        columns = None
        if features is not None:
            columns = _columns(features[t], tree.n_features, self.n_features)
        return _Given(n, tree, value, columns)

    cdef int _pack(self, Py_ssize_t start, list given, list n_features, int n_threads) except -1:
        cdef Py_ssize_t count = len(given), k
        cdef vector[GivenTree] borrowed
        cdef PackedTree* packed = &self.packed[start]
        cdef Status status
        cdef int32_t[::1] row
        cdef const double[::1] flat
        borrowed.resize(count)
        rows = [np.empty(len(one.left) // 2 + 1, dtype=np.int32) for one in given]
        for k in range(count):
            borrowed[k] = _borrow(given[k], n_features[k])
            row = rows[k]
            packed[k].value_row = &row[0]
        with nogil:
            status = c_pack(&borrowed[0], packed, count, self.forest.width, self.forest.layout,
                            n_threads)
        check(status)
        for k in range(count):
            packed[k].value_row = NULL
            if packed[k].fault != Fault.none:
                raise ValueError(
                    f"tree {start + k} is not valid: node {packed[k].faulty} "
                    f"{FAULTS[<int>packed[k].fault]}"
                )
            used = given[k].values[rows[k][:packed[k].n_rows]]
            self.values.append(used)
            flat = used.reshape(-1)
            packed[k].values = &flat[0]
            self.forest.steps += packed[k].depth + 1
        return 0

    @property
    def nbytes(self):
        """Bytes of memory that the packed trees take."""
        return self.nodes.nbytes + self.origin.nbytes + sum(rows.nbytes for rows in self.values)

    cdef Rows _rows(self, X, list keep) except *:
        """X, float32, as rows; `keep` holds what it borrows."""
        cdef const float[::1] data
        cdef const int32_t[::1] indices, indptr
        cdef const float[:, ::1] dense
        cdef Rows rows
        rows.data = NULL
        rows.indices = NULL
        rows.indptr = NULL
        if X.dtype != np.float32:
            raise ValueError(f"X must be float32, not {X.dtype}")
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(f"X must have {self.n_features} columns, not the shape {X.shape}")
        rows.n, rows.d = X.shape
        if not issparse(X):
            dense = np.require(X, requirements="CA")
            keep.append(dense)
            rows.data = &dense[0, 0] if rows.n else NULL
            return rows
        if X.format != "csr":
            raise ValueError(f"X must be CSR, not {X.format}")
        data, indices, indptr = _checked_csr(X)
        keep += [data, indices, indptr]
        # A matrix of zeros has no first index, but rows are told to be sparse by having indices.
        rows.indices = &indices[0] if indices.shape[0] else &indptr[0]
        rows.indptr = &indptr[0]
        rows.data = &data[0] if data.shape[0] else NULL
        return rows

    def predict(self, X, int n_threads, bint average=False):
        """(n, outputs, classes): the leaves' values added up in the order of the trees.

        Divided by their number if `average`; if not, those of a single tree keep their -0.0.
        """
        if self.n_trees == 1 and not average:
            return self.each(X, n_threads)[:, 0]
        cdef list keep = []
        cdef Rows rows = self._rows(X, keep)
        out = np.empty((rows.n, self.n_outputs, self.n_classes))
        cdef double[:, :, ::1] sums = out
        cdef Status status = Status.ok
        if rows.n:
            with nogil:
                status = c_sum_values(self.forest, rows, average, &sums[0, 0, 0], n_threads)
        check(status)
        return out

    def classes(self, X, int n_threads):
        """(n, outputs): the class, as a number, with the greatest average."""
        cdef list keep = []
        cdef Rows rows = self._rows(X, keep)
        out = np.empty((rows.n, self.n_outputs), dtype=np.intp)
        cdef Py_ssize_t[:, ::1] places = out
        cdef Status status = Status.ok
        if rows.n:
            with nogil:
                status = c_classify(self.forest, rows, self.n_outputs, &places[0, 0], n_threads)
        check(status)
        return out

    def each(self, X, int n_threads):
        """(n, trees, outputs, classes): what each tree predicts."""
        cdef list keep = []
        cdef Rows rows = self._rows(X, keep)
        out = np.empty((rows.n, self.n_trees, self.n_outputs, self.n_classes))
        cdef double[:, :, :, ::1] values = out
        cdef Status status = Status.ok
        if rows.n:
            with nogil:
                status = c_each_values(self.forest, rows, &values[0, 0, 0, 0], n_threads)
        check(status)
        return out

    def apply(self, X, int n_threads):
        """(n, trees): the leaf of each tree, by its number in the tree."""
        cdef list keep = []
        cdef Rows rows = self._rows(X, keep)
        out = np.empty((rows.n, self.n_trees), dtype=np.intp)
        cdef Py_ssize_t[:, ::1] found = out
        cdef Status status = Status.ok
        if rows.n:
            with nogil:
                status = c_leaves(self.forest, rows, &found[0, 0], n_threads)
        check(status)
        return out

    def decision_path(self, X, int n_threads, bint wide=False):
        """`indices` and `indptr` of the CSR matrix of the nodes that rows pass through.

        A column is a node; those of a tree follow those of the tree before. Both are int32 if
        that is enough and not `wide`, else int64.
        """
        cdef list keep = []
        cdef Rows rows = self._rows(X, keep)
        indptr = np.zeros(rows.n + 1, dtype=np.intp)
        cdef Py_ssize_t[::1] starts = indptr
        cdef Status status = Status.ok
        if rows.n:
            with nogil:
                status = c_count_passed(self.forest, rows, &starts[1], n_threads)
        check(status)
        np.cumsum(indptr, out=indptr)
        small = not wide and max(starts[rows.n], self.node_counts.sum()) < 2**31
        indices = np.empty(starts[rows.n], dtype=np.int32 if small else np.int64)
        if small:
            self._list[int32_t](rows, starts, indices, n_threads)
        else:
            self._list[int64_t](rows, starts, indices, n_threads)
        return indices, indptr.astype(indices.dtype)

    cdef int _list(self, Rows rows, const Py_ssize_t[::1] starts, Index[::1] nodes,
                   int n_threads) except -1:
        cdef const Py_ssize_t[::1] offsets = np.cumsum(self.node_counts) - self.node_counts
        cdef Status status = Status.ok
        if rows.n:
            with nogil:
                status = c_list_passed(
                    self.forest, rows, &starts[0], &offsets[0], &nodes[0], n_threads)
        return check(status)


def _checked_csr(X):
    """data, indices, indptr of a CSR matrix; ValueError if they would lead out of it."""
    if max(len(X.data), X.shape[1]) >= 2**31:
        raise ValueError("a sparse X holds less than 2**31 values")
    indices = np.ascontiguousarray(X.indices, dtype=np.int32)
    indptr = np.ascontiguousarray(X.indptr, dtype=np.int32)
    if (
        len(indptr) != X.shape[0] + 1
        or indptr[0] != 0
        or indptr[X.shape[0]] > min(len(X.data), len(indices))
        or (np.diff(indptr) < 0).any()
        or (len(indices) and not 0 <= indices.min() <= indices.max() < X.shape[1])
    ):
        raise ValueError("X is not a valid CSR matrix")
    return np.ascontiguousarray(X.data), indices, indptr
