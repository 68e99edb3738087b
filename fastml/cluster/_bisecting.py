"""Bisecting k-means."""

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn import cluster as stock
from sklearn.cluster._bisect_k_means import _BisectingTree
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fastml._native import kmeans as native
from fastml._native.rows import Rows
from fastml._runtime.callbacks import CallbackSupportMixin, fit_context, fit_task
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.threads import n_threads
from fastml._runtime.versioned import Versioned
from fastml.cluster._kmeans import NearestCenter, initial_centers
from fastml.cluster._lloyd import Run, lloyd
from fastml.cluster._seeding import centred, weights_of

StockBisectingKMeans = stock.BisectingKMeans


@documented_by(StockBisectingKMeans)
class BisectingKMeans(Versioned, CallbackSupportMixin, NearestCenter, StockBisectingKMeans):
    """Bisecting k-means clustering, compiled.

    The same random draws as scikit-learn's, hence for the same `random_state` the same tree up to
    rounding; the same bits for any number of threads. `algorithm="elkan"` runs the same iterations
    as "lloyd". `X` is not written to, whatever `copy_x`; of its rows, only those of the cluster
    that is being split are copied.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.cluster import BisectingKMeans
    >>> X = np.array([[1, 1], [10, 1], [3, 1],
    ...               [10, 0], [2, 1], [10, 2],
    ...               [10, 8], [10, 9], [10, 10]])
    >>> model = BisectingKMeans(n_clusters=3, random_state=0).fit(X)
    >>> model.labels_
    array([0, 2, 0, 2, 0, 2, 1, 1, 1], dtype=int32)
    >>> model.predict([[0, 0], [12, 3]])
    array([0, 2], dtype=int32)
    >>> model.cluster_centers_
    array([[ 2.,  1.],
           [10.,  9.],
           [10.,  1.]])
    """

    @documented_by(StockBisectingKMeans.fit)
    @accelerated
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Compute the clustering of the rows of `X` by splitting clusters in two."""
        X = validate_data(
            self,
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            accept_large_sparse=False,
        )
        n = X.shape[0]
        if n < self.n_clusters:
            raise ValueError(f"n_samples={n} should be >= n_clusters={self.n_clusters}.")
        self._random_state = check_random_state(self.random_state)
        w = weights_of(sample_weight, X)
        self._n_threads = n_threads()

        rows = centred(X)[0]
        mean = np.asarray(X.mean(axis=0), dtype=X.dtype).ravel() if issparse(X) else rows.shift
        vars(self).pop("_X_mean", None)
        if not issparse(X):
            self._X_mean = mean
        center = mean if issparse(X) else np.zeros_like(mean)
        tree = self._bisecting_tree = _BisectingTree(center=center, indices=np.arange(n), score=0)
        metadata = {"sample_weight": sample_weight}
        with fit_task(self, self.n_clusters - 1, X=X, y=y, metadata=metadata) as task:
            for _ in range(self.n_clusters - 1):
                with task.subtask("bisection") as step:
                    self._split(rows, w, tree.get_cluster_to_bisect())
                    step.attributes = self._fitted
                if step.stop:
                    break

        vars(self).update(self._fitted())
        self.labels_ = np.empty(n, dtype=np.int32)
        for leaf in tree.iter_leaves():
            self.labels_[leaf.indices] = leaf.label
            leaf.indices = None
        self.inertia_ = self._inertia(X, w, self.cluster_centers_, self.labels_)
        return self

    def _split(self, rows: Rows, w: np.ndarray | None, node: Any) -> None:
        """Give a leaf of the tree two leaves, by the best of `n_init` runs of 2-means."""
        if len(node.indices) < rows.n:
            rows = Rows(rows.X[node.indices], rows.shift)
            w = None if w is None else w[node.indices]
        best: Run | None = None
        for _ in range(self.n_init):
            run = lloyd(
                rows,
                w,
                initial_centers(self, rows, w, self._random_state, 2),
                max_iter=self.max_iter,
                tol=self.tol,
                threads=self._n_threads,
                report=self._print if self.verbose else None,
            )
            if best is None or run.inertia < best.inertia * (1 - 1e-6):
                best = run
        if self.verbose:
            print(f"New centroids from bisection: {best.centers}")
        if self.bisecting_strategy == "biggest_inertia":
            sqdist = np.empty(rows.n, rows.dtype)
            native.inertia(rows, best.centers, None, best.labels, sqdist, self._n_threads)
            scores = np.bincount(best.labels, sqdist if w is None else w * sqdist, minlength=2)
        else:
            scores = np.bincount(best.labels, minlength=2)
        node.split(best.labels, best.centers, scores)

    def _print(self, line: str) -> None:
        # scikit-learn's lloyd ends this line with a full stop, its elkan does not.
        lloyd_runs = self.algorithm == "lloyd" or self.n_clusters == 1
        print(line + "." if lloyd_runs and line.startswith("Iteration") else line)

    def _fitted(self) -> dict[str, Any]:
        """The attributes of the model that the tree stands for now; numbers its leaves."""
        leaves = list(self._bisecting_tree.iter_leaves())
        for i, leaf in enumerate(leaves):
            leaf.label = i
        centers = np.array([leaf.center for leaf in leaves])
        if hasattr(self, "_X_mean"):
            centers += self._X_mean
        return {"cluster_centers_": centers, "_n_features_out": len(leaves)}

    @documented_by(StockBisectingKMeans.predict)
    @accelerated
    def predict(self, X):
        """Predict the cluster of each row of `X`, going down the tree of splits."""
        check_is_fitted(self)
        X, _ = self._rows_and_centers(X)
        mean = getattr(self, "_X_mean", None)
        labels = np.empty(X.shape[0], dtype=np.int32)
        waiting = [(self._bisecting_tree, np.arange(X.shape[0]))]
        while waiting:
            node, index = waiting.pop()
            if node.left is None:
                labels[index] = node.label
            elif len(index):
                centers = np.vstack((node.left.center, node.right.center))
                centers = (centers if mean is None else centers + mean).astype(X.dtype, copy=False)
                rows = X if len(index) == X.shape[0] else X[index]
                right = self._labels(rows, centers).astype(bool)
                waiting += (node.left, index[~right]), (node.right, index[right])
        return labels
