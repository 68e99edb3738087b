"""Forests of trees."""

from __future__ import annotations

from sklearn import ensemble as stock

from fastml._runtime.callbacks import CallbackSupportMixin
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.versioned import Versioned
from fastml.ensemble._grove import Grove, Means, Votes
from fastml.tree._classes import with_criteria

StockRandomForestClassifier = stock.RandomForestClassifier
StockRandomForestRegressor = stock.RandomForestRegressor
StockExtraTreesClassifier = stock.ExtraTreesClassifier
StockExtraTreesRegressor = stock.ExtraTreesRegressor
StockRandomTreesEmbedding = stock.RandomTreesEmbedding


@documented_by(StockRandomForestClassifier)
class RandomForestClassifier(
    Versioned, CallbackSupportMixin, Votes, StockRandomForestClassifier, Grove
):
    """A random forest classifier, compiled.

    The same trees as scikit-learn's for the same `random_state`. Predictions are added in the
    order of the trees: the same bits for any `n_jobs`. Without `n_jobs`, all threads are used.

    Examples
    --------
    >>> from fastml.ensemble import RandomForestClassifier
    >>> X, y = [[0], [1], [2], [3]] * 10, [0, 0, 1, 1] * 10
    >>> forest = RandomForestClassifier(n_estimators=20, random_state=0).fit(X, y)
    >>> forest.predict([[0.2], [2.8]])
    array([0, 1])
    """

    _parameter_constraints = with_criteria(
        StockRandomForestClassifier._parameter_constraints, "misclassification"
    )


@documented_by(StockRandomForestRegressor)
class RandomForestRegressor(
    Versioned, CallbackSupportMixin, Means, StockRandomForestRegressor, Grove
):
    """A random forest regressor, compiled.

    The same trees as scikit-learn's for the same `random_state`. Predictions are added in the
    order of the trees: the same bits for any `n_jobs`. Without `n_jobs`, all threads are used.

    Examples
    --------
    >>> from fastml.ensemble import RandomForestRegressor
    >>> X, y = [[0], [1], [2], [3]] * 10, [0, 0, 1, 1] * 10
    >>> forest = RandomForestRegressor(n_estimators=20, random_state=0).fit(X, y)
    >>> forest.predict([[0.2], [2.8]])
    array([0., 1.])
    """

    _parameter_constraints = with_criteria(StockRandomForestRegressor._parameter_constraints)


@documented_by(StockExtraTreesClassifier)
class ExtraTreesClassifier(
    Versioned, CallbackSupportMixin, Votes, StockExtraTreesClassifier, Grove
):
    """An extra-trees classifier, compiled. The same trees as scikit-learn's.

    Examples
    --------
    >>> from fastml.ensemble import ExtraTreesClassifier
    >>> X, y = [[0], [1], [2], [3]] * 10, [0, 0, 1, 1] * 10
    >>> forest = ExtraTreesClassifier(n_estimators=20, random_state=0).fit(X, y)
    >>> forest.predict([[0.2], [2.8]])
    array([0, 1])
    """

    _parameter_constraints = with_criteria(
        StockExtraTreesClassifier._parameter_constraints, "misclassification"
    )


@documented_by(StockExtraTreesRegressor)
class ExtraTreesRegressor(Versioned, CallbackSupportMixin, Means, StockExtraTreesRegressor, Grove):
    """An extra-trees regressor, compiled. The same trees as scikit-learn's.

    Examples
    --------
    >>> from fastml.ensemble import ExtraTreesRegressor
    >>> X, y = [[0], [1], [2], [3]] * 10, [0, 0, 1, 1] * 10
    >>> forest = ExtraTreesRegressor(n_estimators=20, random_state=0).fit(X, y)
    >>> forest.predict([[0], [3]])
    array([0., 1.])
    """

    _parameter_constraints = with_criteria(StockExtraTreesRegressor._parameter_constraints)


@documented_by(StockRandomTreesEmbedding)
class RandomTreesEmbedding(Versioned, CallbackSupportMixin, StockRandomTreesEmbedding, Grove):
    """An ensemble of totally random trees as a transformer, compiled.

    Examples
    --------
    >>> from fastml.ensemble import RandomTreesEmbedding
    >>> trees = RandomTreesEmbedding(n_estimators=5, max_depth=1, random_state=0)
    >>> trees.fit_transform([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1]]).shape
    (5, 10)
    """

    @documented_by(StockRandomTreesEmbedding.fit)
    @accelerated
    def fit(self, X, y=None, sample_weight=None):
        """Fit the trees to `X`."""
        return super().fit(X, y, sample_weight)

    @documented_by(StockRandomTreesEmbedding.fit_transform)
    @accelerated
    def fit_transform(self, X, y=None, sample_weight=None):
        """Fit the trees to `X` and encode its rows by the leaves that they reach."""
        return super().fit_transform(X, y, sample_weight)

    @documented_by(StockRandomTreesEmbedding.transform)
    @accelerated
    def transform(self, X):
        """Encode the rows of `X` by the leaves that they reach."""
        return super().transform(X)
