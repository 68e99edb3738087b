"""Bagging, and the isolation forest, which is built on it."""

from __future__ import annotations

from typing import Any

from sklearn import ensemble as stock
from sklearn.ensemble._bagging import BaseBagging

from fastml._runtime.dispatch import Unsupported, accelerated, concede
from fastml._runtime.docs import documented_by
from fastml._runtime.threads import n_threads
from fastml._runtime.versioned import Versioned
from fastml.ensemble._grove import Seedbed
from fastml.tree._classes import (
    TREES,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeRegressor,
)
from fastml.tree._grown import refusal_of
from fastml.tree._nursery import raising

StockBaggingClassifier = stock.BaggingClassifier
StockBaggingRegressor = stock.BaggingRegressor
StockIsolationForest = stock.IsolationForest


def tree_refusal(tree: Any, X: Any) -> Unsupported | None:
    """Why an ensemble of such estimators is scikit-learn's to fit."""
    if type(tree) not in TREES:
        return Unsupported(
            "estimator",
            f"only trees are compiled, and {type(tree).__name__} is none of fastml's",
            "use a tree of fastml.tree",
        )
    return refusal_of(tree, X)


class Orchard(Seedbed, BaseBagging):
    """`_fit` of all that is bagging; it follows the others among the bases of scikit-learn's."""

    def _fit(self, X, y, *args, **kwargs):
        refusal = tree_refusal(self._get_estimator(), X)
        if refusal is not None:
            concede(self, "fit", refusal)
            return super()._fit(X, y, *args, **kwargs)
        with raising(self, n_threads=n_threads(self.n_jobs), patient=True):
            super()._fit(X, y, *args, **kwargs)
        return self

    def _ripen(self) -> None:
        nursery = vars(self).get("_fastml_nursery")
        if nursery is not None:
            nursery.grow()


@documented_by(StockBaggingClassifier)
class BaggingClassifier(Versioned, StockBaggingClassifier, Orchard):
    """A bagging classifier; trees of fastml's, its default, grow together, compiled.

    The same trees as scikit-learn's for the same `random_state`.

    Examples
    --------
    >>> from fastml.ensemble import BaggingClassifier
    >>> X, y = [[0], [1], [2], [3]] * 10, [0, 0, 1, 1] * 10
    >>> BaggingClassifier(random_state=0).fit(X, y).predict([[0.2], [2.8]])
    array([0, 1])
    """

    @documented_by(StockBaggingClassifier.fit)
    @accelerated
    def fit(self, X, y, sample_weight=None, **fit_params):
        """Build a bagging ensemble of estimators from the training set (`X`, `y`)."""
        return super().fit(X, y, sample_weight, **fit_params)

    def _get_estimator(self):
        return DecisionTreeClassifier() if self.estimator is None else self.estimator

    def _set_oob_score(self, X, y):
        self._ripen()
        super()._set_oob_score(X, y)


@documented_by(StockBaggingRegressor)
class BaggingRegressor(Versioned, StockBaggingRegressor, Orchard):
    """A bagging regressor; trees of fastml's, its default, grow together, compiled.

    The same trees as scikit-learn's for the same `random_state`.

    Examples
    --------
    >>> from fastml.ensemble import BaggingRegressor
    >>> X, y = [[0], [1], [2], [3]] * 10, [0, 0, 1, 1] * 10
    >>> BaggingRegressor(random_state=0).fit(X, y).predict([[0.2], [2.8]])
    array([0., 1.])
    """

    @documented_by(StockBaggingRegressor.fit)
    @accelerated
    def fit(self, X, y, sample_weight=None, **fit_params):
        """Build a bagging ensemble of estimators from the training set (`X`, `y`)."""
        return super().fit(X, y, sample_weight, **fit_params)

    def _get_estimator(self):
        return DecisionTreeRegressor() if self.estimator is None else self.estimator

    def _set_oob_score(self, X, y):
        self._ripen()
        super()._set_oob_score(X, y)


@documented_by(StockIsolationForest)
class IsolationForest(Versioned, StockIsolationForest, Orchard):
    """Isolation forest, compiled. The same trees and scores as scikit-learn's.

    Examples
    --------
    >>> from fastml.ensemble import IsolationForest
    >>> IsolationForest(random_state=0).fit([[-1.1], [0.3], [0.5], [100]]).predict([[0.1], [90]])
    array([ 1, -1])
    """

    @documented_by(StockIsolationForest.fit)
    @accelerated
    def fit(self, X, y=None, sample_weight=None):
        """Grow the trees on samples of the rows of `X`."""
        return super().fit(X, y, sample_weight)

    def _get_estimator(self):
        return ExtraTreeRegressor(max_features=1, splitter="random", random_state=self.random_state)
