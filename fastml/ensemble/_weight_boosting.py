"""AdaBoost."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import ensemble as stock

from fastml._native.trees import invert_cdf
from fastml._runtime.dispatch import Unsupported, accelerated, concede
from fastml._runtime.docs import documented_by
from fastml._runtime.threads import n_threads
from fastml._runtime.versioned import Versioned
from fastml.ensemble._bagging import tree_refusal
from fastml.ensemble._grove import Seedbed, own_tree
from fastml.tree._classes import TREES
from fastml.tree._nursery import raising
from fastml.tree._packed import packed_boosting, packed_forest
from fastml.tree._queries import plain_query, require

StockAdaBoostClassifier = stock.AdaBoostClassifier
StockAdaBoostRegressor = stock.AdaBoostRegressor


class BoostedTrees(Seedbed):
    """`fit` of both, and their checks."""

    def _check_X(self, X):
        return super()._check_X(X) if plain_query(self, X) is None else X

    def _validate_estimator(self, *args):
        super()._validate_estimator(*args)
        if self.estimator is None:
            self.estimator_ = own_tree(self.estimator_)

    def _fit_boosted(self, X: Any, y: Any, sample_weight: Any) -> Any:
        refusal = None if self.estimator is None else tree_refusal(self.estimator)
        if refusal is not None:
            concede(self, "fit", refusal)
            return super().fit(X, y, sample_weight)
        with raising(self, n_threads=n_threads()):
            super().fit(X, y, sample_weight)
        return self


class _Draws(np.random.RandomState):
    """Random numbers that remember the rows which were chosen by them."""

    def choice(self, a, size=None, replace=True, p=None):
        """Choose of all rows, `a`, as NumPy does, which takes longer to search the sums of `p`."""
        if not (replace and isinstance(size, int) and size > 0 and _is_plain(p)):
            self.drawn = np.asarray(super().choice(a, size, replace, p), dtype=np.int64)
            return self.drawn
        cdf = p.cumsum()
        cdf /= cdf[-1]
        self.drawn = np.empty(size, dtype=np.int64)
        invert_cdf(cdf, self.random_sample(size), self.drawn)
        return self.drawn


def _is_plain(p: Any) -> bool:
    """Whether NumPy would take it for probabilities, surely."""
    if not isinstance(p, np.ndarray) or p.dtype != np.float64 or p.ndim != 1:
        return False
    return bool(p.size and p.min() >= 0 and abs(p.sum() - 1) < 1e-9)


def _not_native(self: Any, X: Any) -> Unsupported | None:
    """Why predictions are scikit-learn's; those of a model that is not fitted, too."""
    for tree in getattr(self, "estimators_", [None]):
        if type(tree) not in TREES:
            what = type(tree).__name__
            return Unsupported("estimator", f"{what} is no tree of fastml's", "use one of them")
    return None


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

    @documented_by(StockAdaBoostClassifier.decision_function)
    @accelerated(unless=_not_native)
    def decision_function(self, X):
        """The weighted votes of the estimators for each class, or for the second of two."""
        require(self, "estimators_")
        if self.n_classes_ == 1:
            return super().decision_function(X)  # zeros
        X = self.estimators_[0]._validate_X_predict(self._check_X(X), True)
        votes = packed_boosting(self).predict(X, n_threads())[:, 0]
        votes /= self.estimator_weights_.sum()
        if self.n_classes_ > 2:
            return votes
        votes[:, 0] *= -1
        return votes.sum(axis=1)


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

    def _boost(self, iboost, X, y, sample_weight, random_state):
        nursery = vars(self).get("_fastml_nursery")
        if nursery is not None:
            random_state = _Draws(random_state._bit_generator)
            nursery.will_draw(X, y, lambda: random_state.drawn)
        return super()._boost(iboost, X, y, sample_weight, random_state)

    @documented_by(StockAdaBoostRegressor.predict)
    @accelerated(unless=_not_native)
    def predict(self, X):
        """Predict the weighted median of what the estimators predict."""
        return super().predict(X)

    def _get_median_predict(self, X, limit):
        if _not_native(self, X) is not None:
            return super()._get_median_predict(X, limit)
        X = self.estimators_[0]._validate_X_predict(X, True)
        each = packed_forest(self).each(X, n_threads())[:, :limit, 0, 0]
        order = each.argsort(axis=1)
        weights = self.estimator_weights_[order].cumsum(axis=1)
        middle = (weights >= 0.5 * weights[:, -1:]).argmax(axis=1)
        rows = np.arange(len(each))
        return each[rows, order[rows, middle]]
