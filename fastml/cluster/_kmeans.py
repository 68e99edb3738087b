"""K-means."""

import warnings
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn import cluster as stock
from sklearn.base import TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import (
    _is_arraylike_not_scalar,
    check_is_fitted,
    validate_data,
)

from fastml._native import kmeans as native
from fastml._native.rows import Rows
from fastml._runtime.callbacks import CallbackSupportMixin, fit_context, fit_task
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.parameters import validate_params
from fastml._runtime.threads import n_threads
from fastml._runtime.versioned import Versioned
from fastml.cluster._lloyd import Run, lloyd
from fastml.cluster._seeding import (
    centred,
    dense_rows,
    draw_probabilities,
    greedy_seeds,
    weights_of,
)

# scikit-learn's own classes and functions, whatever its names are bound to later.
StockKMeans = stock.KMeans


class NearestCenter(TransformerMixin):
    """What k-means models do once they have centers.

    A TransformerMixin itself, because `set_output` wraps the methods of such classes only.
    """

    @documented_by(StockKMeans.predict)
    @accelerated
    def predict(self, X):
        """Predict the closest cluster of each row of `X`; ties go to the lower index."""
        check_is_fitted(self)
        return self._labels(*self._rows_and_centers(X))

    @documented_by(StockKMeans.transform)
    @accelerated
    def transform(self, X):
        """Distances from each row of `X` to each center, shape (n_samples, n_clusters)."""
        check_is_fitted(self)
        return self._transform(X)

    @documented_by(StockKMeans.score)
    @accelerated
    def score(self, X, y=None, sample_weight=None):
        """Minus the (weighted) sum of squared distances of `X` to the nearest centers."""
        check_is_fitted(self)
        X, centers = self._rows_and_centers(X)
        w = weights_of(sample_weight, X)
        return -self._inertia(X, w, centers, self._labels(X, centers))

    def _transform(self, X):  # scikit-learn's fit_transform calls it too, with X as given
        return self._distances(*self._rows_and_centers(X))

    def _rows_and_centers(self, X: Any) -> tuple[Any, np.ndarray]:
        """Validated rows and the centers, in one dtype: double if they came in two."""
        X = validate_data(
            self,
            X,
            accept_sparse="csr",
            reset=False,
            dtype=[np.float64, np.float32],
            order="C",
            accept_large_sparse=False,
        )
        centers = np.require(self.cluster_centers_, requirements="CA")
        if X.dtype != centers.dtype:
            X, centers = X.astype(np.float64), centers.astype(np.float64)
        return X, centers

    @staticmethod
    def _labels(X: Any, centers: np.ndarray) -> np.ndarray:
        labels = np.zeros(X.shape[0], dtype=np.int32)
        rows, centers = about_their_mean(X, centers)
        native.assign(rows, centers, None, labels, None, None, n_threads())
        return labels

    @staticmethod
    def _distances(X: Any, centers: np.ndarray) -> np.ndarray:
        out = np.empty((X.shape[0], centers.shape[0]), dtype=X.dtype)
        rows, centers = about_their_mean(X, centers)
        native.distances(rows, centers, out, n_threads())
        return out

    @staticmethod
    def _inertia(X: Any, w: np.ndarray | None, centers: np.ndarray, labels: np.ndarray) -> float:
        return native.inertia(Rows(X), centers, w, labels, None, n_threads())


def about_their_mean(X: Any, centers: np.ndarray) -> tuple[Rows, np.ndarray]:
    """Rows and centers, both less the mean of the centers (CSR: as they are)."""
    if issparse(X):
        return Rows(X), centers
    shift = centers.mean(axis=0)
    if not np.isfinite(shift).all():
        shift = centers[0]  # the sum is out of range, the centers are not
    return Rows(X, shift), centers - shift


def initial_centers(
    estimator: Any,
    rows: Rows,
    w: np.ndarray | None,
    random_state: np.random.RandomState,
    k: int | None = None,
) -> np.ndarray:
    """Centers by the estimator's `init`, less the rows' shift: k, or as many as it has clusters."""
    init, k = estimator.init, estimator.n_clusters if k is None else k
    if isinstance(init, str) and init == "k-means++":
        return dense_rows(rows, greedy_seeds(rows, w, k, random_state))
    if isinstance(init, str):  # "random"
        probabilities = draw_probabilities(w, rows.n, rows.dtype)
        return dense_rows(rows, random_state.choice(rows.n, size=k, replace=False, p=probabilities))
    if callable(init):  # scikit-learn hands out centred rows
        given = rows.X if rows.shift is None else rows.X - rows.shift
        init = init(given, k, random_state=random_state)
        centers = check_array(init, dtype=rows.dtype, copy=False, order="C")
        if k == estimator.n_clusters:
            estimator._validate_center_shape(rows.X, centers)
        elif centers.shape != (k, rows.d):
            raise ValueError(f"init gave centers of shape {centers.shape}, not {(k, rows.d)}.")
        return centers
    centers = check_array(init, dtype=rows.dtype, copy=True, order="C")
    estimator._validate_center_shape(rows.X, centers)
    return centers if rows.shift is None else centers - rows.shift


@documented_by(StockKMeans)
class KMeans(Versioned, CallbackSupportMixin, NearestCenter, StockKMeans):
    """K-means clustering, compiled.

    The same random draws as scikit-learn's, hence for the same `random_state` the same clustering
    up to rounding; the same bits for any number of threads. `algorithm="elkan"` runs the same
    iterations as "lloyd" and needs no memory of its own. `X` is neither copied nor written to,
    whatever `copy_x`.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.cluster import KMeans
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> kmeans = KMeans(n_clusters=2, random_state=0, n_init="auto").fit(X)
    >>> kmeans.labels_
    array([1, 1, 1, 0, 0, 0], dtype=int32)
    >>> kmeans.predict([[0, 0], [12, 3]])
    array([1, 0], dtype=int32)
    >>> kmeans.cluster_centers_
    array([[10.,  2.],
           [ 1.,  2.]])
    """

    @documented_by(StockKMeans.fit)
    @accelerated
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Compute the clustering of the rows of `X`."""
        X = validate_data(
            self,
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            accept_large_sparse=False,
            ensure_all_finite=False,  # centred() looks at every entry anyway
        )
        rows, variance = centred(X, self)
        self._check_params_vs_input(X, self.tol * variance.mean())
        random_state = check_random_state(self.random_state)
        w = weights_of(sample_weight, X)
        self._n_threads = n_threads()

        best = None
        metadata = {"sample_weight": sample_weight}
        with fit_task(self, self._n_init, X=X, y=y, metadata=metadata) as task:
            for _ in range(self._n_init):
                with task.subtask("run", self.max_iter) as run_task:
                    run = self._run(rows, w, random_state, run_task)
                if best is None or (
                    run.inertia < best.inertia and not same_clustering(run.labels, best.labels)
                ):
                    best = run
                if run_task.stop:
                    break

        found = np.count_nonzero(np.bincount(best.labels, minlength=self.n_clusters))
        if found < self.n_clusters:
            warnings.warn(
                f"Number of distinct clusters ({found}) found smaller than n_clusters "
                f"({self.n_clusters}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
                stacklevel=3,
            )
        vars(self).update(self._fitted(best.centers, rows.shift))
        self.labels_ = best.labels
        self.inertia_ = best.inertia
        self.n_iter_ = best.n_iter
        return self

    def _run(self, rows, w, random_state, task) -> Run:
        centers = initial_centers(self, rows, w, random_state)
        report = None
        if self.verbose:
            print("Initialization complete")
            report = self._print
        return lloyd(
            rows,
            w,
            centers,
            max_iter=self.max_iter,
            tol=self._tol,
            threads=self._n_threads,
            report=report,
            task=task,
            attributes=(lambda centers: self._fitted(centers, rows.shift)) if task else None,
        )

    def _print(self, line: str) -> None:
        # scikit-learn's lloyd ends this line with a full stop, its elkan does not.
        if line.startswith("Iteration") and self._algorithm == "lloyd":
            line += "."
        print(line)

    def _fitted(self, centers: np.ndarray, shift: np.ndarray | None) -> dict[str, Any]:
        centers = centers if shift is None else centers + shift
        return {"cluster_centers_": centers, "_n_features_out": centers.shape[0]}

    def _check_params_vs_input(self, X, tol):
        if X.shape[0] < self.n_clusters:
            raise ValueError(f"n_samples={X.shape[0]} should be >= n_clusters={self.n_clusters}.")
        self._tol = tol
        self._n_init = self.n_init
        given = _is_arraylike_not_scalar(self.init)
        if self.n_init == "auto":
            self._n_init = (
                1 if given or (isinstance(self.init, str) and self.init != "random") else 10
            )
        if given and self._n_init != 1:
            warnings.warn(
                "Explicit initial center position passed: performing only one init in "
                f"{type(self).__name__} instead of n_init={self._n_init}.",
                RuntimeWarning,
                stacklevel=4,
            )
            self._n_init = 1
        self._algorithm = self.algorithm
        if self.algorithm == "elkan" and self.n_clusters == 1:
            warnings.warn(
                "algorithm='elkan' doesn't make sense for a single cluster. Using 'lloyd' instead.",
                RuntimeWarning,
                stacklevel=4,
            )
            self._algorithm = "lloyd"


def same_clustering(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether labels `a` determine labels `b`."""
    first = np.unique(a, return_index=True)[1]
    image = np.empty(a.max() + 1, dtype=b.dtype)
    image[a[first]] = b[first]
    return bool((image[a] == b).all())


@documented_by(stock.k_means)
@accelerated
@validate_params(
    {
        "X": ["array-like", "sparse matrix"],
        "sample_weight": ["array-like", None],
        "return_n_iter": [bool],
    },
    prefer_skip_nested_validation=False,
)
def k_means(
    X,
    n_clusters,
    *,
    sample_weight=None,
    init="k-means++",
    n_init="auto",
    max_iter=300,
    verbose=False,
    tol=1e-4,
    random_state=None,
    copy_x=True,
    algorithm="lloyd",
    return_n_iter=False,
):
    """K-means clustering as a function: see `KMeans`.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.cluster import k_means
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> centers, labels, inertia = k_means(X, n_clusters=2, n_init="auto", random_state=0)
    >>> centers
    array([[10.,  2.],
           [ 1.,  2.]])
    >>> labels
    array([1, 1, 1, 0, 0, 0], dtype=int32)
    >>> inertia
    16.0
    """
    model = KMeans(
        n_clusters=n_clusters,
        init=init,
        n_init=n_init,
        max_iter=max_iter,
        verbose=verbose,
        tol=tol,
        random_state=random_state,
        copy_x=copy_x,
        algorithm=algorithm,
    ).fit(X, sample_weight=sample_weight)
    result = model.cluster_centers_, model.labels_, model.inertia_
    return (*result, model.n_iter_) if return_n_iter else result
