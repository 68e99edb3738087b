"""Classification by the nearest centroid."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn import neighbors as stock
from sklearn.discriminant_analysis import DiscriminantAnalysisPredictionMixin
from sklearn.utils import gen_batches
from sklearn.utils._available_if import available_if
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_is_fitted, validate_data

from fastml._native import neighbors as native
from fastml._native.kmeans import sum_by_label
from fastml._native.kmedians import medians
from fastml._native.rows import Rows
from fastml._runtime.callbacks import fit_context
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.plain import is_plain, is_plain_target, note_columns, validated
from fastml._runtime.threads import n_threads
from fastml._runtime.versioned import Versioned
from fastml.linalg._whitening import whitening
from fastml.metrics import pairwise_distances_argmin
from fastml.metrics._rows import pairs, rows_of
from fastml.neighbors._spaces import as_floats
from fastml.neighbors._targets import classes_of

Scores = DiscriminantAnalysisPredictionMixin
StockNearestCentroid = stock.NearestCentroid
BLOCK = 1 << 16  # values whose distances to centroids are squared at a time


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
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y):
        """Compute the centroid of each class."""
        if self.metric == "mahalanobis" and issparse(X):
            raise ValueError("metric='mahalanobis' needs a dense X: pass X.toarray()")
        X, y = self._validated(X, y)
        self.classes_, codes = classes_of(y)
        if self.classes_.size < 2:
            raise ValueError(
                "The number of classes has to be greater than one; got "
                f"{self.classes_.size} class: y needs two labels at least"
            )
        counts = np.bincount(codes)
        self.class_prior_ = self._priors(counts)
        groups = _Groups(_in_floats(X), codes, counts)
        sums = groups.sums()
        means = sums / counts[:, None]
        centroids = groups.medians() if self.metric == "manhattan" else means
        within = groups.squares_about(centroids)
        self.within_class_std_dev_ = np.sqrt(within / (X.shape[0] - len(counts)))
        if (self.within_class_std_dev_ == 0).any():
            warnings.warn(
                "self.within_class_std_dev_ has at least 1 zero standard deviation."
                "Inputs within the same classes for at least 1 feature are identical.",
                stacklevel=4,
            )
        if groups.are_constant(centroids, within):
            raise ValueError("All features have zero variance. Division by zero.")
        self.centroids_, self.deviations_ = self._shrunken(centroids, sums.sum(axis=0), counts)
        if self.metric == "mahalanobis":
            weights = np.sqrt(self.class_prior_ / counts)
            with np.errstate(over="ignore", invalid="ignore"):
                residuals = (groups.X - means[codes]) * weights[codes, None]
                self.covariance_ = residuals.T @ residuals
            self._whitening = whitening(self.covariance_)
        return self

    def _validated(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        if is_plain(X, sparse=True) and is_plain_target(y, X.shape[0]) and y.ndim == 1:
            note_columns(self, X)
            return X, y
        return validate_data(self, X, y, accept_sparse=["csr", "csc"])

    def _priors(self, counts: np.ndarray) -> np.ndarray:
        if isinstance(self.priors, str):
            empirical = self.priors == "empirical"
            return counts / counts.sum() if empirical else np.full(len(counts), 1 / len(counts))
        priors = np.asarray(self.priors)
        if (priors < 0).any():
            raise ValueError("priors must be non-negative")
        if np.isclose(priors.sum(), 1.0):
            return priors
        warnings.warn(
            "The priors do not sum to 1. Normalizing such that it sums to one.", stacklevel=5
        )
        return priors / priors.sum()

    def _shrunken(
        self, centroids: np.ndarray, total: np.ndarray, counts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The centroids, and how far they are from the mean of all rows in units of its error."""
        n = counts.sum()
        scale = self.within_class_std_dev_ + np.median(self.within_class_std_dev_)
        unit = np.sqrt(1 / counts - 1 / n)[:, None] * scale
        deviations = (centroids - total / n) / unit
        if not self.shrink_threshold:
            return centroids, deviations
        size = np.maximum(np.abs(deviations) - self.shrink_threshold, 0)
        deviations = size * np.sign(deviations)
        return total / n + unit * deviations, deviations

    @documented_by(StockNearestCentroid.predict)
    @accelerated
    def predict(self, X):
        """Predict the class of the centroid that is nearest to each row of `X`."""
        check_is_fitted(self)
        priors = self.class_prior_
        uniform = (priors == priors[0]).all() or np.isclose(priors, 1 / len(priors)).all()
        if self.metric == "mahalanobis" or not uniform:
            return Scores.predict(self, X)
        X = validated(self, X, sparse=True)
        if issparse(X):
            return self.classes_[pairwise_distances_argmin(X, self.centroids_, metric=self.metric)]
        queries = as_floats(X).astype(np.float64, copy=False)
        return self.classes_[_nearest(queries, self.centroids_, self.metric)]

    def _decision_function(self, X):
        check_is_fitted(self)
        X = validated(self, X, sparse=self.metric != "mahalanobis")
        X = X.astype(np.float64, copy=False)
        priors = self.class_prior_
        with np.errstate(divide="ignore"):  # a prior may be 0
            logarithms = np.log(priors)
        if self.metric == "mahalanobis":
            # About the centroids, wherever the origin is.
            origin = self.centroids_.mean(axis=0)
            centroids = (self.centroids_ - origin) @ self._whitening
            products = (X - origin) @ self._whitening @ centroids.T
            return products - row_norms(centroids, squared=True) / 2 + logarithms
        unit = np.where(self.within_class_std_dev_ == 0, 1, self.within_class_std_dev_)
        X = X._with_data(X.data / unit[X.indices]) if issparse(X) else X / unit
        metric = "sqeuclidean" if self.metric == "euclidean" else "manhattan"
        distances = pairs(metric, X, self.centroids_ / unit)
        if metric == "manhattan":
            distances **= 2
        return 2 * logarithms - distances

    def _has_scores(self):
        return self.metric != "manhattan"

    decision_function = available_if(_has_scores)(Scores.decision_function)
    predict_proba = available_if(_has_scores)(Scores.predict_proba)
    predict_log_proba = available_if(_has_scores)(Scores.predict_log_proba)

    def __to_sklearn_state__(self, state: dict[str, Any]) -> dict[str, Any]:
        if self.metric == "mahalanobis":
            raise TypeError("scikit-learn's NearestCentroid has no metric 'mahalanobis'")
        return state


class _Groups(NamedTuple):
    """The rows of each class: dense in C order, or CSR or CSC."""

    X: Any
    codes: np.ndarray
    counts: np.ndarray

    def _labels(self) -> np.ndarray:
        return self.codes.astype(np.int32)

    def _rows(self) -> Rows:
        return rows_of(self.X.tocsr() if issparse(self.X) else self.X)

    def sums(self) -> np.ndarray:
        sums, counts = np.empty((len(self.counts), self.X.shape[1])), np.empty(len(self.counts))
        sum_by_label(self._rows(), None, self._labels(), sums, counts, n_threads())
        return sums

    def medians(self) -> np.ndarray:
        columns = rows_of(self.X.T.tocsr()) if issparse(self.X) else None
        rows = self._rows() if columns is None else None
        found = np.empty((len(self.counts), self.X.shape[1]), self.X.dtype)
        counts = np.empty(len(self.counts))
        medians(rows, columns, found, None, self._labels(), counts, n_threads())
        return found.astype(np.float64, copy=False)

    def squares_about(self, centroids: np.ndarray) -> np.ndarray:
        """The sum over all rows of the squared distance to their centroid, in each column."""
        found = np.zeros(self.X.shape[1])
        if not issparse(self.X):
            for batch in gen_batches(*self.X.shape[:1], max(1, BLOCK // self.X.shape[1])):
                residuals = self.X[batch] - centroids[self.codes[batch]]
                found += np.einsum("ij,ij->j", residuals, residuals)
            return found
        stored = self.X.tocoo()
        where = self.codes[stored.row], stored.col
        about = centroids[where]
        found += np.bincount(stored.col, (stored.data - about) ** 2, len(found))
        unstored = np.repeat(self.counts[:, None], len(found), axis=1)
        np.subtract.at(unstored, where, 1)
        return found + (unstored * centroids**2).sum(axis=0)

    def are_constant(self, centroids: np.ndarray, squares: np.ndarray) -> bool:
        """Whether no column varies, of which the squares about centroids may differ by rounding."""
        error = 1e-6 * np.abs(centroids).max()
        if (squares > len(self.codes) * error**2).any():
            return False
        if issparse(self.X):
            return not (self.X.max(axis=0) - self.X.min(axis=0)).nnz
        return bool((self.X[0] == self.X).all())


def _in_floats(X: Any) -> Any:
    if not issparse(X):
        return as_floats(X)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _nearest(queries: np.ndarray, centroids: np.ndarray, metric: str) -> np.ndarray:
    rows = np.empty((queries.shape[0], 1), dtype=np.int64)
    centroids = np.require(centroids, np.float64, "CA")
    native.nearest(queries, centroids, metric, False, None, rows, n_threads())
    return rows[:, 0]
