"""Classification by the nearest centroid."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import issparse
from sklearn import neighbors as stock
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from fastml._native import neighbors as native
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.threads import n_threads
from fastml._runtime.versioned import Versioned
from fastml.metrics import pairwise_distances_argmin
from fastml.neighbors._spaces import as_floats

StockNearestCentroid = stock.NearestCentroid


@documented_by(StockNearestCentroid)
class NearestCentroid(Versioned, StockNearestCentroid):
    """Nearest centroid classifier, compiled.

    Beyond scikit-learn's, `metric` may be "mahalanobis": centroids are means, and distances are
    measured by the inverse of the covariance within classes, kept as `covariance_`. With `priors`
    that is linear discriminant analysis.

    Examples
    --------
    >>> from fastml.neighbors import NearestCentroid
    >>> X = [[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]]
    >>> NearestCentroid(metric="mahalanobis").fit(X, [1, 1, 1, 2, 2, 2]).predict([[-0.8, -1]])
    array([1])
    """

    _parameter_constraints = StockNearestCentroid._parameter_constraints | {
        "metric": [StrOptions({"manhattan", "euclidean", "mahalanobis"})]
    }

    @documented_by(StockNearestCentroid.fit)
    @accelerated
    def fit(self, X, y):
        """Compute the centroid of each class."""
        if self.metric == "mahalanobis" and issparse(X):
            raise ValueError("metric='mahalanobis' needs a dense X")
        super().fit(X, y)
        if self.metric == "mahalanobis":
            # As validated above, and the means before they shrink.
            X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
            codes = np.searchsorted(self.classes_, y)
            counts = np.bincount(codes)
            sums = np.stack([np.bincount(codes, column) for column in X.T], axis=1)
            residuals = X - (sums / counts[:, None])[codes]
            self.covariance_ = residuals.T @ residuals / max(1, len(X) - len(counts))
        return self

    @documented_by(StockNearestCentroid.predict)
    @accelerated
    def predict(self, X):
        """Predict the class of the centroid that is nearest to each row of `X`."""
        check_is_fitted(self)
        uniform = np.isclose(self.class_prior_, 1 / len(self.classes_)).all()
        if self.metric != "mahalanobis" and not uniform:
            return super().predict(X)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        if issparse(X):
            return self.classes_[pairwise_distances_argmin(X, self.centroids_, metric=self.metric)]
        queries, centroids = as_floats(X).astype(np.float64, copy=False), self.centroids_
        if self.metric == "mahalanobis":
            root = _whitening(self.covariance_)
            queries, centroids = queries @ root, centroids @ root
        if uniform:
            metric = "manhattan" if self.metric == "manhattan" else "euclidean"
            return self.classes_[_nearest(queries, centroids, metric)]
        scores = queries @ centroids.T - np.einsum("ij,ij->i", centroids, centroids) / 2
        return self.classes_[np.argmax(scores + np.log(self.class_prior_), axis=1)]

    def __to_sklearn_state__(self, state: dict[str, Any]) -> dict[str, Any]:
        if self.metric == "mahalanobis":
            raise TypeError("scikit-learn's NearestCentroid has no metric 'mahalanobis'")
        return state


def _nearest(queries: np.ndarray, centroids: np.ndarray, metric: str) -> np.ndarray:
    rows = np.empty((queries.shape[0], 1), dtype=np.int64)
    centroids = np.require(centroids, np.float64, "CA")
    native.nearest(queries, centroids, metric, False, None, rows, n_threads())
    return rows[:, 0]


def _whitening(covariance: np.ndarray) -> np.ndarray:
    """W with W·Wᵀ the (pseudo-)inverse of a covariance."""
    values, vectors = eigh(covariance)
    kept = values > values[-1] * len(values) * np.finfo(np.float64).eps
    if not kept.any():
        return np.eye(len(values))
    return np.ascontiguousarray(vectors[:, kept] / np.sqrt(values[kept]))
