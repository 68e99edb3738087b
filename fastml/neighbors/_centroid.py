"""Classification by the nearest centroid."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn import neighbors as stock
from sklearn.discriminant_analysis import DiscriminantAnalysisPredictionMixin
from sklearn.utils._available_if import available_if
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_is_fitted, validate_data

from fastml._native import neighbors as native
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.threads import n_threads
from fastml._runtime.versioned import Versioned
from fastml.linalg._whitening import whitening
from fastml.metrics import pairwise_distances_argmin
from fastml.neighbors._spaces import as_floats

Scores = DiscriminantAnalysisPredictionMixin
StockNearestCentroid = stock.NearestCentroid


@documented_by(StockNearestCentroid)
class NearestCentroid(Versioned, StockNearestCentroid):
    """Nearest centroid classifier, compiled.

    Beyond scikit-learn's, `metric` may be "mahalanobis", for dense rows: centroids are means, and
    distances are measured by the inverse of the covariance within classes, kept as `covariance_`.
    That is the mean of the classes' own, weighted by `priors`, so that the model is linear
    discriminant analysis (solver "lsqr"), with the same decision function and probabilities.

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
            raise ValueError("metric='mahalanobis' needs a dense X: pass X.toarray()")
        super().fit(X, y)
        if self.metric == "mahalanobis":
            # As validated above, and the means before they shrink.
            X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
            codes = np.searchsorted(self.classes_, y)
            counts = np.bincount(codes)
            sums = np.stack([np.bincount(codes, column) for column in X.T], axis=1)
            residuals = X - (sums / counts[:, None])[codes]
            weight = (self.class_prior_ / counts)[codes]
            with np.errstate(over="ignore", invalid="ignore"):
                self.covariance_ = (residuals * weight[:, None]).T @ residuals
            self._whitening = whitening(self.covariance_)
        return self

    @documented_by(StockNearestCentroid.predict)
    @accelerated
    def predict(self, X):
        """Predict the class of the centroid that is nearest to each row of `X`."""
        check_is_fitted(self)
        uniform = np.isclose(self.class_prior_, 1 / len(self.classes_)).all()
        if self.metric == "mahalanobis" or not uniform:
            return Scores.predict(self, X)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        if issparse(X):
            return self.classes_[pairwise_distances_argmin(X, self.centroids_, metric=self.metric)]
        queries = as_floats(X).astype(np.float64, copy=False)
        return self.classes_[_nearest(queries, self.centroids_, self.metric)]

    def _decision_function(self, X):
        if self.metric != "mahalanobis":
            return super()._decision_function(X)
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        # About the centroids, wherever the origin is.
        origin = self.centroids_.mean(axis=0)
        centroids = (self.centroids_ - origin) @ self._whitening
        products = (X - origin) @ self._whitening @ centroids.T
        with np.errstate(divide="ignore"):  # a prior may be 0
            return products - row_norms(centroids, squared=True) / 2 + np.log(self.class_prior_)

    def _has_scores(self):
        return self.metric != "manhattan"

    decision_function = available_if(_has_scores)(Scores.decision_function)
    predict_proba = available_if(_has_scores)(Scores.predict_proba)
    predict_log_proba = available_if(_has_scores)(Scores.predict_log_proba)

    def __to_sklearn_state__(self, state: dict[str, Any]) -> dict[str, Any]:
        if self.metric == "mahalanobis":
            raise TypeError("scikit-learn's NearestCentroid has no metric 'mahalanobis'")
        return state


def _nearest(queries: np.ndarray, centroids: np.ndarray, metric: str) -> np.ndarray:
    rows = np.empty((queries.shape[0], 1), dtype=np.int64)
    centroids = np.require(centroids, np.float64, "CA")
    native.nearest(queries, centroids, metric, False, None, rows, n_threads())
    return rows[:, 0]
