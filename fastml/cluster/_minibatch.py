"""Mini-batch k-means (Sculley, 2010), with scikit-learn's reassignment and early stopping."""

from math import ceil
from typing import Any

import numpy as np
import sklearn
from sklearn import cluster as stock
from sklearn.utils import check_random_state
from sklearn.utils.fixes import parse_version
from sklearn.utils.validation import validate_data

from fastml._native import kmeans as native
from fastml._native.rows import Rows
from fastml._runtime.callbacks import CallbackSupportMixin, fit_context, fit_task
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.threads import n_threads
from fastml._runtime.versioned import Versioned
from fastml.cluster._kmeans import NearestCenter, initial_centers
from fastml.cluster._seeding import centred, dense_rows, draw_probabilities, weights_of

StockMiniBatchKMeans = stock.MiniBatchKMeans


# Since 1.9 scikit-learn draws rows by their weights and counts them alike in the batch; before, it
# drew them alike and counted them by their weights. The installed version decides.
DRAWN_BY_WEIGHT = parse_version(sklearn.__version__) >= parse_version("1.9.0rc1")


class Batches:
    """The mini-batches of a fit, with their weights, from scikit-learn's random draws."""

    def __init__(self, X: Any, w: np.ndarray | None, size: int) -> None:
        self._X, self._w, self._size = X, w, size
        if DRAWN_BY_WEIGHT:
            # RandomState.choice(n, size, p=p), but for its sums, which are made once.
            p = draw_probabilities(w, X.shape[0], X.dtype)
            np.random.RandomState(0).choice(len(p), p=p)  # NumPy's own checks of p
            self._cumulative = p.cumsum(dtype=np.float64)
            self._cumulative /= self._cumulative[-1]

    def draw(self, random_state: np.random.RandomState) -> tuple[Any, np.ndarray | None]:
        if DRAWN_BY_WEIGHT:
            positions = random_state.random_sample(self._size)
            return self._X[self._cumulative.searchsorted(positions, side="right")], None
        rows = random_state.randint(0, self._X.shape[0], self._size)
        return self._X[rows], None if self._w is None else self._w[rows]

    def total(self) -> Any:
        """What the mean inertia of a row is multiplied by for that of all."""
        by_weight = DRAWN_BY_WEIGHT and self._w is not None
        return np.sum(self._w) if by_weight else self._X.dtype.type(self._X.shape[0])


@documented_by(StockMiniBatchKMeans)
class MiniBatchKMeans(Versioned, CallbackSupportMixin, NearestCenter, StockMiniBatchKMeans):
    """Mini-batch k-means clustering, compiled.

    The same random draws as scikit-learn's, hence for the same `random_state` the same clustering
    up to rounding; the same bits for any number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.cluster import MiniBatchKMeans
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [4, 2], [4, 0], [4, 4],
    ...               [4, 5], [0, 1], [2, 2], [3, 2], [5, 5], [1, -1]])
    >>> kmeans = MiniBatchKMeans(n_clusters=2, random_state=0, batch_size=6, n_init="auto")
    >>> kmeans = kmeans.partial_fit(X[0:6, :])
    >>> kmeans = kmeans.partial_fit(X[6:12, :])
    >>> kmeans.cluster_centers_
    array([[3.375, 3.   ],
           [0.75 , 0.5  ]])
    >>> kmeans.predict([[0, 0], [4, 4]])
    array([1, 0], dtype=int32)
    """

    @documented_by(StockMiniBatchKMeans.fit)
    @accelerated
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Compute the clustering of the rows of `X` from mini-batches of them."""
        X = self._validated(X, reset=True)
        self._check_params_vs_input(X)
        random_state = check_random_state(self.random_state)
        w = weights_of(sample_weight, X)
        self._n_threads = n_threads()
        n = X.shape[0]

        centers = self._best_start(X, w, random_state)
        self._begin(X.dtype)
        self._ewa_inertia = self._ewa_inertia_min = None
        self._no_improvement = 0
        batches = Batches(X, w, self._batch_size)
        n_steps = (self.max_iter * n) // self._batch_size
        metadata = {"sample_weight": sample_weight}
        with fit_task(self, n_steps, X=X, y=y, metadata=metadata) as task:
            for i in range(n_steps):
                with task.subtask("batch") as step:
                    batch, w_batch = batches.draw(random_state)
                    moved, inertia = self._step(batch, w_batch, centers, random_state)
                    shift = np.sum((moved - centers) ** 2) if self._tol > 0.0 else 0
                    centers = moved
                    step.attributes = lambda centers=centers: _fitted(centers)
                if self._mini_batch_convergence(i, n_steps, n, shift, inertia) or step.stop:
                    break

        vars(self).update(_fitted(centers))
        self.n_steps_ = i + 1
        self.n_iter_ = ceil((i + 1) * self._batch_size / n)
        if self.compute_labels:
            self._label(X, w)
        else:
            self.inertia_ = self._ewa_inertia * batches.total()
        return self

    @documented_by(StockMiniBatchKMeans.partial_fit)
    @accelerated
    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None, sample_weight=None):
        """Update the clustering with one mini-batch."""
        begun = hasattr(self, "cluster_centers_")
        X = self._validated(X, reset=not begun)
        if not hasattr(self, "_random_state"):
            self._random_state = check_random_state(self.random_state)
        w = weights_of(sample_weight, X)
        self._n_threads = n_threads()
        if not begun:
            self._check_params_vs_input(X)
            self._begin(X.dtype)
            self.n_steps_ = getattr(self, "n_steps_", 0)
            self.cluster_centers_ = self._start(X, w, self._random_state)
        centers, _ = self._step(X, w, self.cluster_centers_, self._random_state)
        vars(self).update(_fitted(centers))
        if self.compute_labels:
            self._label(X, w)
        self.n_steps_ += 1
        return self

    def _validated(self, X: Any, reset: bool) -> Any:
        # Once there are centers their dtype is the model's.
        dtype = [np.float64, np.float32] if reset else self.cluster_centers_.dtype
        return validate_data(
            self,
            X,
            accept_sparse="csr",
            dtype=dtype,
            order="C",
            accept_large_sparse=False,
            reset=reset,
        )

    def _begin(self, dtype: np.dtype) -> None:
        self._counts = np.zeros(self.n_clusters, dtype=dtype)
        self._n_since_last_reassign = 0

    def _start(
        self, X: Any, w: np.ndarray | None, random_state: np.random.RandomState
    ) -> np.ndarray:
        """Initial centers from `init_size` rows of `X`."""
        if self._init_size < X.shape[0]:
            rows = random_state.randint(0, X.shape[0], self._init_size)
            X, w = X[rows], None if w is None else w[rows]
        # A callable gets the rows as they are, unlike that of KMeans.
        rows = Rows(X) if callable(self.init) else centred(X)[0]
        centers = initial_centers(self, rows, w, random_state)
        return centers if rows.shift is None else centers + rows.shift

    def _best_start(
        self, X: Any, w: np.ndarray | None, random_state: np.random.RandomState
    ) -> np.ndarray:
        """The best of `n_init` starts, by their inertia on rows drawn beforehand."""
        rows = random_state.randint(0, X.shape[0], self._init_size)
        X_valid, w_valid = X[rows], None if w is None else w[rows]
        best = None
        for i in range(self._n_init):
            if self.verbose:
                print(f"Init {i + 1}/{self._n_init} with method {self.init}")
            centers = self._start(X, w, random_state)
            labels = self._labels(X_valid, centers)
            inertia = self._inertia(X_valid, w_valid, centers, labels)
            if self.verbose:
                print(f"Inertia for init {i + 1}/{self._n_init}: {inertia}")
            if best is None or inertia < best[0]:
                best = inertia, centers
        return best[1]

    def _step(
        self,
        X: Any,
        w: np.ndarray | None,
        centers: np.ndarray,
        random_state: np.random.RandomState,
    ) -> tuple[np.ndarray, float]:
        """Move each center towards its rows of the batch; return them and the inertia before."""
        reassign = self._random_reassign()
        labels = self._labels(X, centers)
        inertia = self._inertia(X, w, centers, labels)
        sums, weights = np.empty(centers.shape), np.empty(len(centers))
        native.sum_by_label(Rows(X), w, labels, sums, weights, self._n_threads)

        moved = np.empty_like(centers)
        native.move_centers(centers, self._counts, sums, weights, moved)
        if reassign and self.reassignment_ratio > 0:
            self._reassign(X, moved, random_state)
        return moved, inertia

    def _reassign(self, X: Any, centers: np.ndarray, random_state: np.random.RandomState) -> None:
        """Replace centers of very low count by rows of the batch, half of it at most."""
        counts = self._counts
        low = counts < self.reassignment_ratio * counts.max()
        most = X.shape[0] // 2
        if low.sum() > 0.5 * X.shape[0]:
            low[np.argsort(counts)[most:]] = False
        n_low = low.sum()
        if n_low:
            rows = random_state.choice(X.shape[0], replace=False, size=n_low)
            if self.verbose:
                print(f"[MiniBatchKMeans] Reassigning {n_low} cluster centers.")
            centers[low] = dense_rows(Rows(X), rows)
        # Not so small a count that they are replaced again at once.
        counts[low] = counts[~low].min()

    def _label(self, X: Any, w: np.ndarray | None) -> None:
        self.labels_ = self._labels(X, self.cluster_centers_)
        self.inertia_ = self._inertia(X, w, self.cluster_centers_, self.labels_)


def _fitted(centers: np.ndarray) -> dict[str, Any]:
    return {"cluster_centers_": centers, "_n_features_out": centers.shape[0]}
