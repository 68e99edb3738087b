"""Classification by a vote of neighbours."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn import neighbors as stock
from sklearn.utils.validation import check_is_fitted

from fastml._runtime.callbacks import fit_context
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.versioned import Versioned
from fastml.neighbors._base import KNeighbors, RadiusNeighbors, metric_refusal
from fastml.neighbors._kernels import with_kernels
from fastml.neighbors._votes import ball_shares, outputs, shares, winners

StockKNeighborsClassifier = stock.KNeighborsClassifier
StockRadiusNeighborsClassifier = stock.RadiusNeighborsClassifier


def _not_native(self, X):
    return metric_refusal(self, X)


@documented_by(StockKNeighborsClassifier)
class KNeighborsClassifier(Versioned, KNeighbors, StockKNeighborsClassifier):
    """Classifier implementing the k-nearest neighbors vote, compiled.

    The neighbors are exact whatever the `algorithm`; among rows at the same distance those with
    the lower index come first, and on equal votes the lower class.

    Examples
    --------
    >>> from fastml.neighbors import KNeighborsClassifier
    >>> model = KNeighborsClassifier(n_neighbors=3).fit([[0], [1], [2], [3]], [0, 0, 1, 1])
    >>> model.predict([[1.1]])
    array([0])
    >>> model.predict_proba([[0.9]])
    array([[0.66666667, 0.33333333]])
    """

    _parameter_constraints = with_kernels(StockKNeighborsClassifier._parameter_constraints)

    @documented_by(StockKNeighborsClassifier.fit)
    @accelerated
    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y):
        """Take the rows of `X` and their classes as those to search among."""
        return self._fit(X, y)

    @documented_by(StockKNeighborsClassifier.predict)
    @accelerated(unless=_not_native)
    def predict(self, X):
        """Predict the class that most neighbors of each row of `X` vote for."""
        check_is_fitted(self, "_fit_method")
        _, classes = outputs(self)
        codes = winners(self, X)
        labels = [each.take(codes[:, i]) for i, each in enumerate(classes)]
        if not self.outputs_2d_:
            return labels[0]
        return np.stack(labels, axis=1).astype(classes[0].dtype, copy=False)

    @documented_by(StockKNeighborsClassifier.predict_proba)
    @accelerated(unless=_not_native)
    def predict_proba(self, X):
        """The share of the votes that each class gets."""
        check_is_fitted(self, "_fit_method")
        found = shares(self, X)
        return found if self.outputs_2d_ else found[0]


@documented_by(StockRadiusNeighborsClassifier)
class RadiusNeighborsClassifier(Versioned, RadiusNeighbors, StockRadiusNeighborsClassifier):
    """Classifier implementing a vote among neighbors within a given radius, compiled.

    Examples
    --------
    >>> from fastml.neighbors import RadiusNeighborsClassifier
    >>> model = RadiusNeighborsClassifier(radius=1.0).fit([[0], [1], [2], [3]], [0, 0, 1, 1])
    >>> model.predict([[1.5]])
    array([0])
    >>> model.predict_proba([[1.0]])
    array([[0.66666667, 0.33333333]])
    """

    _parameter_constraints = with_kernels(StockRadiusNeighborsClassifier._parameter_constraints)

    @documented_by(StockRadiusNeighborsClassifier.fit)
    @accelerated
    def fit(self, X, y):
        """Take the rows of `X` and their classes as those to search among."""
        return super().fit(X, y)

    @documented_by(StockRadiusNeighborsClassifier.predict)
    @accelerated(unless=_not_native)
    def predict(self, X):
        """Predict the class that most neighbors of each row of `X` vote for."""
        return super().predict(X)

    @documented_by(StockRadiusNeighborsClassifier.predict_proba)
    @accelerated(unless=_not_native)
    def predict_proba(self, X):
        """The share of the votes that each class gets."""
        check_is_fitted(self, "_fit_method")
        found, counts = ball_shares(self, X, self._allow)
        outliers = np.flatnonzero(counts == 0)
        if outliers.size:
            for i, classes in enumerate(outputs(self)[1]):
                self._count_outliers(found[i], outliers, i, classes)
        return found if self.outputs_2d_ else found[0]

    def _allow(self, counts):
        outliers = np.flatnonzero(counts == 0)
        if self.outlier_label_ is None and outliers.size:
            raise ValueError(
                f"No neighbors found for test samples {outliers!r}, you can try using larger "
                "radius, giving a label for outliers, or considering removing them from your "
                "dataset."
            )

    def _count_outliers(self, shares, outliers, output, classes):
        known = np.flatnonzero(classes == self.outlier_label_[output])
        if known.size == 1:
            shares[outliers, known[0]] = 1.0
        else:
            warnings.warn(
                f"Outlier label {self.outlier_label_[output]} is not in training classes. All "
                "class probabilities of outliers will be assigned with 0.",
                stacklevel=5,
            )
