"""Bagging, and the isolation forest, which is built on it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn import ensemble as stock
from sklearn.ensemble._bagging import BaseBagging
from sklearn.ensemble._iforest import _average_path_length
from sklearn.utils import check_array
from sklearn.utils.metadata_routing import _routing_enabled
from sklearn.utils.validation import validate_data

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
from fastml.tree._packed import packed_bagging, packed_isolation
from fastml.tree._queries import plain_query, require

StockBaggingClassifier = stock.BaggingClassifier
StockBaggingRegressor = stock.BaggingRegressor
StockIsolationForest = stock.IsolationForest


def tree_refusal(tree: Any) -> Unsupported | None:
    """Why an ensemble of such estimators is scikit-learn's to fit."""
    if type(tree) not in TREES:
        return Unsupported(
            "estimator",
            f"only trees are compiled, and {type(tree).__name__} is none of fastml's",
            "use a tree of fastml.tree",
        )
    return refusal_of(tree)


class Orchard(Seedbed, BaseBagging):
    """`_fit` of all that is bagging; it follows the others among the bases of scikit-learn's."""

    def _fit(self, X, y, *args, **kwargs):
        refusal = tree_refusal(self._get_estimator())
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

    def _means(self, X: Any) -> np.ndarray:
        """What the trees predict in the mean, (n, n_outputs, n_classes)."""
        require(self, "estimators_")
        plain = plain_query(self, X)
        X = self._checked_query(X) if plain is None else plain
        return packed_bagging(self).predict(X, n_threads(self.n_jobs), average=True)

    def _checked_query(self, X: Any) -> Any:
        """X as scikit-learn checks it: once for the ensemble, and once for each tree."""
        X = validate_data(
            self,
            X,
            accept_sparse=["csr", "csc"],
            dtype=None,
            ensure_all_finite=False,
            reset=False,
        )
        try:
            return _as_trees_take_it(X, self.estimators_[0])
        except ValueError:  # which a column that no tree was given is no reason for
            seen = np.concatenate(self.estimators_features_)
            unseen = np.setdiff1d(np.arange(X.shape[1]), seen)
            if not len(unseen):
                raise
            return _as_trees_take_it(_blanked(X, unseen), self.estimators_[0])


def _as_trees_take_it(X: Any, tree: Any) -> Any:
    return check_array(
        X,
        dtype=np.float32,
        accept_sparse="csr",
        ensure_all_finite="allow-nan" if tree._support_missing_values(X) else True,
        estimator=tree,
        input_name="X",
    )


def _blanked(X: Any, columns: np.ndarray) -> Any:
    """A copy of X with zeros in some columns."""
    X = X.tocsc(copy=True) if issparse(X) else X.copy()
    if issparse(X):
        for j in columns:
            X.data[X.indptr[j] : X.indptr[j + 1]] = 0
    else:
        X[:, columns] = 0
    return X


def _not_native(self: Any, X: Any, **params: Any) -> Unsupported | None:
    """Why predictions are scikit-learn's; of bagging that is not fitted, too."""
    trees = getattr(self, "estimators_", [None])
    strange = [tree for tree in trees if type(tree) not in TREES]
    if strange:
        what = type(strange[0]).__name__
        return Unsupported("estimator", f"{what} is no tree of fastml's", "use one of fastml.tree")
    if params or _routing_enabled() or len(trees) != self.n_estimators:
        return Unsupported("params", "parameters go to each tree", "predict without")
    classes = getattr(self, "n_classes_", None)
    if classes is not None and any(tree.n_classes_ != classes for tree in trees):
        return Unsupported("estimator", "trees know different classes", "fit on all of them")
    return None


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
        return super().fit(X, y, sample_weight=sample_weight, **fit_params)

    @documented_by(StockBaggingClassifier.predict_proba)
    @accelerated(unless=_not_native)
    def predict_proba(self, X, **params):
        """Predict the mean of the probabilities that the estimators give."""
        return self._means(X)[:, 0]

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
        return super().fit(X, y, sample_weight=sample_weight, **fit_params)

    @documented_by(StockBaggingRegressor.predict)
    @accelerated(unless=_not_native)
    def predict(self, X, **params):
        """Predict the mean of what the estimators predict."""
        means = self._means(X)
        return means[:, 0, 0] if means.shape[1] == 1 else means[:, :, 0]

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

    @documented_by(StockIsolationForest.predict)
    @accelerated
    def predict(self, X):
        """Tell inliers (1) of the rows of `X` from outliers (-1)."""
        return super().predict(X)

    @documented_by(StockIsolationForest.score_samples)
    @accelerated
    def score_samples(self, X):
        """Score the rows of `X`: the lower, the more abnormal."""
        plain = plain_query(self, X)
        return super().score_samples(X) if plain is None else self._score_samples(plain)

    def _compute_score_samples(self, X, subsample_features):
        depths = packed_isolation(self).predict(X, n_threads(self.n_jobs))[:, 0, 0]
        most = len(self.estimators_) * _average_path_length([self._max_samples])
        return 2 ** -np.divide(depths, most, out=np.ones_like(depths), where=most != 0)

    def _get_estimator(self):
        return ExtraTreeRegressor(max_features=1, splitter="random", random_state=self.random_state)
