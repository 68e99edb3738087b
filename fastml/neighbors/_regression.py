"""Regression on the targets of neighbours."""

import warnings

from sklearn import neighbors as stock
from sklearn.utils.validation import check_is_fitted

from fastml._runtime.callbacks import fit_context
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.versioned import Versioned
from fastml.neighbors._base import KNeighbors, RadiusNeighbors, metric_refusal
from fastml.neighbors._kernels import with_kernels
from fastml.neighbors._votes import ball_means, means

StockKNeighborsRegressor = stock.KNeighborsRegressor
StockRadiusNeighborsRegressor = stock.RadiusNeighborsRegressor


def _not_native(self, X):
    return metric_refusal(self, X)


@documented_by(StockKNeighborsRegressor)
class KNeighborsRegressor(Versioned, KNeighbors, StockKNeighborsRegressor):
    """Regression based on the k nearest neighbors, compiled.

    The neighbors are exact whatever the `algorithm`; among rows at the same distance those with
    the lower index come first.

    Examples
    --------
    >>> from fastml.neighbors import KNeighborsRegressor
    >>> model = KNeighborsRegressor(n_neighbors=2).fit([[0], [1], [2], [3]], [0, 0, 1, 1])
    >>> model.predict([[1.5]])
    array([0.5])
    """

    _parameter_constraints = with_kernels(StockKNeighborsRegressor._parameter_constraints)

    @documented_by(StockKNeighborsRegressor.fit)
    @accelerated
    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y):
        """Take the rows of `X` and their targets as those to search among."""
        return self._fit(X, y)

    @documented_by(StockKNeighborsRegressor.predict)
    @accelerated(unless=_not_native)
    def predict(self, X):
        """Predict the (weighted) mean of the targets of the neighbors of each row of `X`."""
        check_is_fitted(self, "_fit_method")
        found = means(self, X)
        return found.ravel() if self._y.ndim == 1 else found


@documented_by(StockRadiusNeighborsRegressor)
class RadiusNeighborsRegressor(Versioned, RadiusNeighbors, StockRadiusNeighborsRegressor):
    """Regression based on neighbors within a fixed radius, compiled.

    Examples
    --------
    >>> from fastml.neighbors import RadiusNeighborsRegressor
    >>> model = RadiusNeighborsRegressor(radius=1.0).fit([[0], [1], [2], [3]], [0, 0, 1, 1])
    >>> model.predict([[1.5]])
    array([0.5])
    """

    _parameter_constraints = with_kernels(StockRadiusNeighborsRegressor._parameter_constraints)

    @documented_by(StockRadiusNeighborsRegressor.fit)
    @accelerated
    def fit(self, X, y):
        """Take the rows of `X` and their targets as those to search among."""
        return super().fit(X, y)

    @documented_by(StockRadiusNeighborsRegressor.predict)
    @accelerated(unless=_not_native)
    def predict(self, X):
        """Predict the (weighted) mean of the targets of the neighbors of each row of `X`."""
        check_is_fitted(self, "_fit_method")
        means, counts = ball_means(self, X)
        if (counts == 0).any():
            warnings.warn(
                "One or more samples have no neighbors within specified radius; predicting NaN.",
                stacklevel=3,
            )
        return means.ravel() if self._y.ndim == 1 else means
