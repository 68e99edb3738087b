"""K-medians: clustering by Manhattan distances to medians."""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import validate_data

from fastml._native import kmedians as native
from fastml._native.rows import Rows
from fastml._runtime.sparse import with_short_indices
from fastml._runtime.threads import n_threads
from fastml.cluster._partition import Partition, relocate
from fastml.cluster._seeding import dense_rows, draw_probabilities, weights_of
from fastml.metrics.pairwise import manhattan_distances


class Data(NamedTuple):
    """Rows, and for sparse ones their columns, as the kernels take them."""

    rows: Rows
    columns: Rows | None


class Run(NamedTuple):
    labels: np.ndarray
    inertia: float
    centers: np.ndarray
    n_iter: int


class KMedians(Partition):
    """K-medians clustering: Manhattan (L1) distances, and medians for centers.

    Like k-means, but it minimises the sum of absolute differences: outliers pull a center no
    further than to the next row, and a feature counts by its spread and not by its square. Rows
    are given to the nearest center in turn with every center becoming the median, feature by
    feature, of its rows; neither step increases the sum.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.

    init : {"k-medians++", "random"}, callable or array-like of shape \
            (n_clusters, n_features), default="k-medians++"
        The initial centers. "k-medians++": rows that are drawn one after the other, by their
        distance to the nearest of those before, each the best of several tries. "random": any
        rows. A callable takes `X`, `n_clusters` and a random state, and returns an array.

    n_init : "auto" or int, default="auto"
        How many runs to make, of which the best is kept. "auto": 10 for "random" or a callable,
        else 1.

    max_iter : int, default=300
        The most iterations of a run.

    tol : float, default=1e-4
        A run ends when the centers move by no more than this, all in all, in an iteration:
        relative to the mean absolute deviation of the data from its medians.

    verbose : int, default=0
        Whether to print the progress.

    random_state : int, RandomState instance or None, default=None
        Decides the initial centers. An int makes fits repeatable.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The medians of the clusters. Of an even number of rows (or where exactly half of the
        weight is on either side) the median is midway between the middle two.

    labels_ : ndarray of shape (n_samples,)
        The cluster of each row.

    inertia_ : float
        The sum of the distances of the rows to their centers, weighted if there are weights.

    n_iter_ : int
        The number of iterations of the best run.

    n_features_in_ : int
        The number of features.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        The names of the features, if all of them are strings.

    See Also
    --------
    KMeans : Squared Euclidean distances and means.
    KernelKMeans : Distances in the feature space of a kernel.

    Notes
    -----
    Rows with weight are what medians are taken of; a weight of two counts as two rows. A cluster
    that runs empty is given the row farthest from its center. The result does not depend on the
    number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.cluster import KMedians
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0], [10, 900]])
    >>> kmedians = KMedians(n_clusters=2, init=[[0, 0], [9, 0]]).fit(X)
    >>> kmedians.labels_
    array([0, 0, 0, 1, 1, 1, 1], dtype=int32)
    >>> kmedians.cluster_centers_
    array([[ 1.,  2.],
           [10.,  3.]])
    >>> kmedians.predict([[0, 0], [12, 3]])
    array([0, 1], dtype=int32)
    """

    _parameter_constraints: ClassVar[dict] = {
        **Partition._parameter_constraints,
        "init": [StrOptions({"k-medians++", "random"}), callable, "array-like"],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        init="k-medians++",
        n_init="auto",
        max_iter=300,
        tol=1e-4,
        verbose=0,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state

    def _fit(self, X: Any, sample_weight: Any) -> None:
        X = self._validated(X, reset=True)
        w = weights_of(sample_weight, X, ensure_non_negative=True)
        columns = Rows(X.T.tocsr()) if issparse(X) else None
        best = self._best_run(X, Data(Rows(X), columns), w, sample_weight)
        vars(self).update(_fitted(best.centers))
        self.labels_ = best.labels
        self.inertia_ = best.inertia
        self.n_iter_ = best.n_iter

    def _predict(self, X: Any) -> np.ndarray:
        return _assigned(*self._rows_and_centers(X))

    def _transform(self, X: Any) -> np.ndarray:
        X, centers = self._rows_and_centers(X)
        if issparse(X):
            centers = type(X)(centers)
        return manhattan_distances(X, centers).astype(X.dtype, copy=False)

    def _inertia(self, X: Any, sample_weight: Any) -> float:
        X, centers = self._rows_and_centers(X)
        w, labels = weights_of(sample_weight, X), _assigned(X, centers)
        return native.deviation(Rows(X), centers, w, labels, None, n_threads())

    def _validated(self, X: Any, reset: bool) -> Any:
        X = validate_data(
            self,
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            accept_large_sparse=False,
            reset=reset,
        )
        if issparse(X):
            X = with_short_indices(X)
            if not X.has_canonical_format:  # |x| of a sum is not the sum of |x|
                X = X.copy()
                X.sum_duplicates()
        return X

    def _rows_and_centers(self, X: Any) -> tuple[Any, np.ndarray]:
        """Validated rows and the centers, in one dtype: double if they came in two."""
        X = self._validated(X, reset=False)
        centers = np.require(self.cluster_centers_, requirements="CA")
        if X.dtype != centers.dtype:
            X, centers = X.astype(np.float64), centers.astype(np.float64)
        return X, centers

    def _initial_centers(
        self, rows: Rows, w: np.ndarray | None, random_state: np.random.RandomState
    ) -> np.ndarray:
        if isinstance(self.init, str) and self.init == "k-medians++":
            return dense_rows(rows, greedy_seeds(rows, w, self.n_clusters, random_state))
        if isinstance(self.init, str):
            p = draw_probabilities(w, rows.n, rows.dtype)
            return dense_rows(rows, random_state.choice(rows.n, self.n_clusters, False, p))
        centers = self.init
        if callable(centers):
            centers = centers(rows.X, self.n_clusters, random_state=random_state)
        centers = check_array(centers, dtype=rows.dtype, copy=True, order="C")
        if centers.shape != (self.n_clusters, rows.d):
            raise ValueError(
                f"The shape of the initial centers {centers.shape} does not match the number of "
                f"clusters {self.n_clusters} and the number of features of the data {rows.d}."
            )
        return centers

    def _run(self, data, w, random_state, task):
        rows, threads = data.rows, n_threads()
        centers = self._initial_centers(rows, w, random_state)
        self._report("Initialization complete")
        tolerance = self.tol and self.tol * _spread(data, threads)
        labels, weights = np.full(rows.n, -1, np.int32), np.empty(self.n_clusters)
        for i in range(self.max_iter):
            with task.subtask("iteration") as step:
                settled = native.assign(rows, centers, labels, threads) == 0
                if self.verbose:
                    inertia = native.deviation(rows, centers, w, labels, None, threads)
                    print(f"Iteration {i}, inertia {inertia}")
                moved = centers.copy()
                native.medians(data.rows, data.columns, moved, w, labels, weights, threads)
                if not weights.all():
                    distance = np.empty(rows.n, rows.dtype)
                    native.deviation(rows, centers, w, labels, distance, threads)
                    if relocate(labels, weights, w, distance):
                        settled = False
                        native.medians(rows, data.columns, moved, w, labels, weights, threads)
                shift = float(np.abs(moved - centers).sum(dtype=np.float64))
                centers = moved
                step.attributes = lambda centers=centers: _fitted(centers)
            if settled or shift <= tolerance:
                reason = "strict convergence" if settled else f"shift {shift} within tolerance"
                self._report(f"Converged at iteration {i}: {reason}.")
                break
            if step.stop:
                break
        if not settled:
            # The centers moved after the last assignment: labels as predict will give them.
            native.assign(rows, centers, labels, threads)
        inertia = native.deviation(rows, centers, w, labels, None, threads)
        return Run(labels, inertia, centers, i + 1)


def _fitted(centers: np.ndarray) -> dict[str, Any]:
    return {"cluster_centers_": centers, "_n_features_out": len(centers)}


def _assigned(X: Any, centers: np.ndarray) -> np.ndarray:
    labels = np.zeros(X.shape[0], np.int32)
    native.assign(Rows(X), centers, labels, n_threads())
    return labels


def _spread(data: Data, threads: int) -> float:
    """The mean absolute deviation of the entries from the medians of their columns."""
    rows = data.rows
    center, one_cluster = np.zeros((1, rows.d), rows.dtype), np.zeros(rows.n, np.int32)
    native.medians(rows, data.columns, center, None, one_cluster, np.empty(1), threads)
    total = native.deviation(rows, center, None, one_cluster, None, threads)
    return total / (rows.n * rows.d)


def greedy_seeds(
    rows: Rows, w: np.ndarray | None, n_clusters: int, random_state: np.random.RandomState
) -> np.ndarray:
    """The rows that greedy k-means++ picks when what counts are distances and not their squares."""
    threads, n_trials = n_threads(), 2 + int(np.log(n_clusters))
    block = native.rows_of_block(rows.n)
    closest = np.full(rows.n, np.inf, rows.dtype)
    left = np.empty((-(-rows.n // block), 1))  # of the potential, by block
    tried = np.empty((len(left), n_trials))
    picked = np.empty(n_clusters, np.intp)
    for c in range(n_clusters):
        if c == 0:
            best = random_state.choice(rows.n, p=draw_probabilities(w, rows.n, rows.dtype))
        else:
            found = _drawn(closest, w, left[:, 0], block, random_state.uniform(size=n_trials))
            candidates = dense_rows(rows, found)
            native.potentials(rows, closest, w, candidates, False, tried, threads)
            best = found[tried.sum(axis=0).argmin()]
        picked[c] = best
        native.potentials(rows, closest, w, dense_rows(rows, [best]), True, left, threads)
    return picked


def _drawn(
    closest: np.ndarray, w: np.ndarray | None, left: np.ndarray, block: int, share: np.ndarray
) -> np.ndarray:
    """The rows at which the running sum of the potential reaches shares of the whole."""
    upto = left.cumsum()
    target = share * upto[-1]
    blocks = np.minimum(upto.searchsorted(target), len(upto) - 1)
    found = np.empty(len(share), np.intp)
    for i, b in enumerate(blocks):
        inside = closest[b * block : (b + 1) * block].astype(np.float64)
        if w is not None:
            inside *= w[b * block : (b + 1) * block]
        running = inside.cumsum() + (upto[b] - left[b])
        found[i] = b * block + min(running.searchsorted(target[i]), len(inside) - 1)
    return found
