"""K-means with the Mahalanobis distance."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from sklearn.base import clone
from sklearn.utils import check_array
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, validate_data

from fastml._runtime.callbacks import fit_task
from fastml.cluster._kmeans import KMeans
from fastml.cluster._partition import Partition
from fastml.linalg._whitening import standardized


class MahalanobisKMeans(Partition):
    """K-means with the Mahalanobis distance, the same for all clusters.

    The distance of x and y is the root of (x - y)ᵀ S⁻¹ (x - y): differences count by how rare
    they are, whatever the units of the features and the correlations between them. Rows are
    whitened, by the Cholesky factor of S, and clustered by k-means; the centers are given in the
    coordinates of the data.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.

    covariance : array-like of shape (n_features, n_features) or estimator, default=None
        S. An estimator, such as those of `sklearn.covariance`, is cloned and fitted, and has S as
        its `covariance_`. None: the covariance of the rows, weighted if they are.

    shrinkage : float, default=0.0
        How much of S is replaced by a multiple of the identity that has the same trace, from 0 to
        1. More than 0 makes any S invertible.

    init : {"k-means++", "random"}, callable or array-like of shape \
            (n_clusters, n_features), default="k-means++"
        The initial centers, as in `KMeans`, but by Mahalanobis distances. Arrays are in the
        coordinates of the data, and so is what a callable gets and returns.

    n_init : "auto" or int, default="auto"
        How many runs to make, of which the best is kept. "auto": 10 for "random" or a callable,
        else 1.

    max_iter : int, default=300
        The most iterations of a run.

    tol : float, default=1e-4
        A run ends when the centers move by no more than this, as in `KMeans`.

    verbose : int, default=0
        Whether to print the progress.

    random_state : int, RandomState instance or None, default=None
        Decides the initial centers. An int makes fits repeatable.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The means of the clusters.

    labels_ : ndarray of shape (n_samples,)
        The cluster of each row.

    inertia_ : float
        The sum of the squared Mahalanobis distances of the rows to their centers, weighted if
        there are weights.

    n_iter_ : int
        The number of iterations of the best run.

    covariance_ : ndarray of shape (n_features, n_features)
        S, after shrinkage.

    location_ : ndarray of shape (n_features,)
        The mean of the rows.

    n_features_in_ : int
        The number of features.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        The names of the features, if all of them are strings.

    See Also
    --------
    KMeans : Euclidean distances.
    GaussianMixture : With `covariance_type="tied"`, S is that of the rows about their centers.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.cluster import MahalanobisKMeans
    >>> X = np.array([[1, 200], [1, 400], [1, 0], [10, 200], [10, 400], [10, 0]])
    >>> model = MahalanobisKMeans(n_clusters=2, n_init=5, random_state=0).fit(X)
    >>> centers = model.cluster_centers_
    >>> centers[centers[:, 0].argsort()].round(6)
    array([[  1., 200.],
           [ 10., 200.]])
    """

    _parameter_constraints: ClassVar[dict] = {
        **Partition._parameter_constraints,
        "covariance": ["array-like", HasMethods("fit"), None],
        "shrinkage": [Interval(Real, 0, 1, closed="both")],
        "init": [StrOptions({"k-means++", "random"}), callable, "array-like"],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        covariance=None,
        shrinkage=0.0,
        init="k-means++",
        n_init="auto",
        max_iter=300,
        tol=1e-4,
        verbose=0,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.covariance = covariance
        self.shrinkage = shrinkage
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state

    def _fit(self, X: Any, sample_weight: Any) -> None:
        X = self._validated(X, reset=True)
        n_init = self._starts(X)
        w = None
        if sample_weight is not None:
            w = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        self.location_ = np.average(X, axis=0, weights=w).astype(X.dtype, copy=False)
        covariance = self._shrunk(self._covariance_of(X, w))
        self._factor = _factor_of(covariance, len(X))
        self.covariance_ = covariance
        inner = KMeans(
            self.n_clusters,
            init=self._whitened_init(X),
            n_init=n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            verbose=self.verbose,
            random_state=self.random_state,
        )
        task = fit_task(self, 1, X=X, metadata={"sample_weight": sample_weight})
        with task, task.subtask("k-means") as step:
            inner.fit(self._whitened(X), sample_weight=w)
            centers = inner.cluster_centers_ @ self._factor.T.astype(X.dtype) + self.location_
            step.attributes = {"kmeans_": inner, "cluster_centers_": centers}
        self.kmeans_, self.cluster_centers_ = inner, centers
        self.labels_, self.inertia_, self.n_iter_ = inner.labels_, inner.inertia_, inner.n_iter_
        self._n_features_out = self.n_clusters

    def _predict(self, X: Any) -> np.ndarray:
        return self.kmeans_.predict(self._whitened(self._validated(X, reset=False)))

    def _transform(self, X: Any) -> np.ndarray:
        return self.kmeans_.transform(self._whitened(self._validated(X, reset=False)))

    def _inertia(self, X: Any, sample_weight: Any) -> float:
        X = self._whitened(self._validated(X, reset=False))
        return -self.kmeans_.score(X, sample_weight=sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False  # whitened rows are dense
        return tags

    def _validated(self, X: Any, reset: bool) -> np.ndarray:
        return validate_data(self, X, dtype=[np.float64, np.float32], order="C", reset=reset)

    def _covariance_of(self, X: np.ndarray, w: np.ndarray | None) -> np.ndarray:
        if hasattr(self.covariance, "fit"):
            fitted = clone(self.covariance).fit(X)
            if not hasattr(fitted, "covariance_"):
                raise TypeError(
                    f"covariance={self.covariance!r} has no covariance_ after its fit: give an "
                    "estimator such as those of sklearn.covariance, or a matrix."
                )
            return np.asarray(fitted.covariance_, dtype=np.float64)
        if self.covariance is None:
            centred = X.astype(np.float64) - self.location_
            weight = np.full(len(X), 1 / len(X)) if w is None else w / w.sum()
            with np.errstate(over="ignore", invalid="ignore"):
                return (centred * weight[:, None]).T @ centred
        covariance = check_array(self.covariance, dtype=np.float64, input_name="covariance")
        if covariance.shape != (X.shape[1], X.shape[1]):
            raise ValueError(
                f"covariance has shape {covariance.shape}, but X has {X.shape[1]} features."
            )
        if not np.allclose(covariance, covariance.T, rtol=1e-8, atol=1e-12 * abs(covariance).max()):
            raise ValueError("covariance is not symmetric.")
        return covariance

    def _shrunk(self, covariance: np.ndarray) -> np.ndarray:
        mean = np.trace(covariance) / len(covariance)
        with np.errstate(invalid="ignore"):  # what overflowed is refused later
            target = self.shrinkage * mean * np.eye(len(covariance))
            return (1 - self.shrinkage) * covariance + target

    def _whitened(self, X: np.ndarray) -> np.ndarray:
        centred = X.astype(np.float64) - self.location_
        white = solve_triangular(self._factor, centred.T, lower=True, check_finite=False).T
        return np.ascontiguousarray(white, dtype=X.dtype)

    def _whitened_init(self, X: np.ndarray) -> Any:
        def init(white, k, random_state):
            points = self.init
            if callable(points):
                points = points(X, k, random_state=random_state)
            points = check_array(points, dtype=X.dtype, order="C")
            if points.shape != (k, X.shape[1]):
                raise ValueError(
                    f"The shape of the initial centers {points.shape} does not match the number "
                    f"of clusters {k} and the number of features of the data {X.shape[1]}."
                )
            # What k-means hands out is centred, and so has to be what it gets.
            return self._whitened(points) - (self._whitened(X[:1]) - white[:1])

        return self.init if isinstance(self.init, str) else init


def _factor_of(covariance: np.ndarray, n: int) -> np.ndarray:
    """The lower Cholesky factor; an error that says what to do if there is none to speak of."""
    scale, correlations = standardized(covariance)
    try:
        if not (scale > 0).all():
            raise LinAlgError
        factor = cholesky(correlations, lower=True)
        if np.diagonal(factor).min() < np.sqrt(len(factor) * np.finfo(np.float64).eps):
            raise LinAlgError
    except LinAlgError:
        rank = np.linalg.matrix_rank(covariance, hermitian=True)
        raise ValueError(
            f"The covariance is singular or not positive definite (rank {rank} of "
            f"{len(covariance)}; n_samples={n}), so Mahalanobis distances do not exist. "
            "Set shrinkage above 0, drop features that others determine, or give another "
            "covariance."
        ) from None
    return factor * scale[:, None]
