"""AdaBoost."""

from __future__ import annotations

from typing import Any

from sklearn import ensemble as stock

from fastml._runtime.dispatch import accelerated, concede
from fastml._runtime.docs import documented_by
from fastml._runtime.threads import n_threads
from fastml._runtime.versioned import Versioned
from fastml.ensemble._bagging import tree_refusal
from fastml.ensemble._grove import Seedbed, own_tree
from fastml.tree._nursery import raising

StockAdaBoostClassifier = stock.AdaBoostClassifier
StockAdaBoostRegressor = stock.AdaBoostRegressor


class BoostedTrees(Seedbed):
    """`fit` of both."""

    def _validate_estimator(self, *args):
        super()._validate_estimator(*args)
        if self.estimator is None:
            self.estimator_ = own_tree(self.estimator_)

    def _fit_boosted(self, X: Any, y: Any, sample_weight: Any) -> Any:
        refusal = None if self.estimator is None else tree_refusal(self.estimator, X)
        if refusal is not None:
            concede(self, "fit", refusal)
            return super().fit(X, y, sample_weight)
        with raising(self, n_threads=n_threads()):
            super().fit(X, y, sample_weight)
        return self


@documented_by(StockAdaBoostClassifier)
class AdaBoostClassifier(Versioned, BoostedTrees, StockAdaBoostClassifier):
    """An AdaBoost classifier; trees of fastml's, its default, are compiled.

    The same trees as scikit-learn's for the same `random_state`.

    Examples
    --------
    >>> from fastml.ensemble import AdaBoostClassifier
    >>> X, y = [[0], [1], [2], [3]] * 10, [0, 0, 1, 1] * 10
    >>> AdaBoostClassifier(random_state=0).fit(X, y).predict([[0.2], [2.8]])
    array([0, 1])
    """

    @documented_by(StockAdaBoostClassifier.fit)
    @accelerated
    def fit(self, X, y, sample_weight=None):
        """Build a boosted classifier from the training set (`X`, `y`)."""
        return self._fit_boosted(X, y, sample_weight)


@documented_by(StockAdaBoostRegressor)
class AdaBoostRegressor(Versioned, BoostedTrees, StockAdaBoostRegressor):
    """An AdaBoost regressor; trees of fastml's, its default, are compiled.

    The same trees as scikit-learn's for the same `random_state`.

    Examples
    --------
    >>> from fastml.ensemble import AdaBoostRegressor
    >>> X, y = [[0], [1], [2], [3]] * 10, [0, 0, 1, 1] * 10
    >>> AdaBoostRegressor(random_state=0).fit(X, y).predict([[0.2], [2.8]])
    array([0., 1.])
    """

    @documented_by(StockAdaBoostRegressor.fit)
    @accelerated
    def fit(self, X, y, sample_weight=None):
        """Build a boosted regressor from the training set (`X`, `y`)."""
        return self._fit_boosted(X, y, sample_weight)
