"""What our forests share: how they are fitted, and how they predict."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.ensemble._forest import BaseForest, ForestClassifier, ForestRegressor

from fastml._runtime.callbacks import Task, fit_context, fit_task
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.threads import n_threads
from fastml.tree._classes import OURS, TREES
from fastml.tree._grown import labels_of, refusal_of, shares_of
from fastml.tree._nursery import raising
from fastml.tree._packed import decision_path, forest_of, packed_forest
from fastml.tree._queries import plain_query, require
from fastml.tree._targets import checked_classes


def own_tree(tree: Any) -> Any:
    """Ours in the place of a tree of scikit-learn's; anything else as it is."""
    cls = OURS.get(type(tree))
    return tree if cls is None else cls(**tree.get_params(deep=False))


class Seedbed:
    """`_make_estimator` of an ensemble whose trees grow together."""

    def _make_estimator(self, append=True, random_state=None):
        nursery = vars(self).get("_fastml_nursery")
        if nursery is None or type(self.estimator_) not in TREES:
            return super()._make_estimator(append, random_state)
        tree = nursery.seedling(lambda: super(Seedbed, self)._make_estimator(False), random_state)
        if append:
            self.estimators_.append(tree)
        return tree


def _not_native(forest: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
    tree = forest.estimator
    return refusal_of(SimpleNamespace(criterion=forest.criterion, splitter=tree.splitter))


class Grove(Seedbed, BaseForest):
    """`fit` of all our forests, which follow it among the bases of scikit-learn's."""

    @documented_by(BaseForest.fit)
    @accelerated(unless=_not_native)
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Build a forest of trees from the training set (`X`, `y`)."""
        metadata = {"sample_weight": sample_weight}
        grown = list(getattr(self, "estimators_", ())) if self.warm_start else []
        more = self.n_estimators - len(grown)
        with fit_task(self, more, X=X, y=y, metadata=metadata) as task:
            report = _Report(self, task, grown) if task else None
            with raising(self, n_threads=n_threads(self.n_jobs), patient=True, on_grown=report):
                unweighted = sample_weight is None and getattr(self, "class_weight", None) is None
                self._may_leave_draws = unweighted and bool(self.bootstrap)
                try:
                    super().fit(X, y, sample_weight)
                finally:
                    self._take_draws_back()
                    del self._may_leave_draws
        return self

    def _make_estimator(self, append=True, random_state=None):
        tree = super()._make_estimator(append, random_state)
        nursery = vars(tree).get("_fastml_nursery")
        if nursery is not None and nursery.draws is None and self._may_leave_draws:
            nursery.draws = getattr(self, "_n_samples_bootstrap", None)
            if nursery.draws is not None:
                self._leave_draws()
        return tree

    def _leave_draws(self) -> None:
        """Have trees draw their bootstraps as they grow, on all threads.

        Scikit-learn's loop looks at `bootstrap` each time before it draws, in Python: it is told
        that there is nothing to be drawn.
        """
        self._bootstrap_given, self.bootstrap = self.bootstrap, False

    def _take_draws_back(self) -> None:
        if "_bootstrap_given" in vars(self):
            self.bootstrap = vars(self).pop("_bootstrap_given")

    def _validate_estimator(self, *args):
        super()._validate_estimator(*args)
        self.estimator_ = own_tree(self.estimator_)

    def _validate_X_predict(self, X):
        plain = plain_query(self, X) if "estimators_" in vars(self) else None
        return super()._validate_X_predict(X) if plain is None else plain

    def _compute_oob_predictions(self, X, y):
        nursery = vars(self).get("_fastml_nursery")
        if nursery is not None:
            self._take_draws_back()
            nursery.grow()
            self.estimators_ = [tree for tree in self.estimators_ if hasattr(tree, "tree_")]
        return super()._compute_oob_predictions(X, y)

    @documented_by(BaseForest.apply)
    @accelerated
    def apply(self, X):
        """Return the leaf of each tree that a row of `X` ends up in."""
        X = self._validate_X_predict(X)
        return packed_forest(self).apply(X, n_threads(self.n_jobs))

    @documented_by(BaseForest.decision_path)
    @accelerated
    def decision_path(self, X):
        """Return which nodes of the trees the rows of `X` pass through."""
        X = self._validate_X_predict(X)
        forest, trees = packed_forest(self), [tree.tree_ for tree in self.estimators_]
        ends = np.concatenate([[0], forest.node_counts]).cumsum()
        return decision_path(forest, trees, X, alone=False), ends


class OutOfBag:
    """Predictions of single trees for the rows that they did not see; nothing is kept of them."""

    def _get_oob_predictions(self, tree, X):
        forest = forest_of([tree.tree_], n_threads(self.n_jobs))
        values = forest.predict(X, n_threads(self.n_jobs))
        return values.transpose(0, 2, 1)


class Votes(OutOfBag):
    """How forests of classifiers predict; it goes before scikit-learn's class."""

    def _validate_y_class_weight(self, y, *sample_weight):
        if self.class_weight is not None or y.shape[1] > 1:
            return super()._validate_y_class_weight(y, *sample_weight)
        [(classes, codes)] = checked_classes(y)
        self.classes_, self.n_classes_ = [classes], [len(classes)]
        return codes.reshape(-1, 1), None

    @documented_by(ForestClassifier.predict)
    @accelerated
    def predict(self, X):
        """Predict the class with the highest mean probability over the trees."""
        require(self, "estimators_")
        X = self._validate_X_predict(X)
        return labels_of(self, packed_forest(self).classes(X, n_threads(self.n_jobs)))

    @documented_by(ForestClassifier.predict_proba)
    @accelerated
    def predict_proba(self, X):
        """Predict the mean of the probabilities that the trees give."""
        require(self, "estimators_")
        X = self._validate_X_predict(X)
        means = packed_forest(self).predict(X, n_threads(self.n_jobs), average=True)
        return shares_of(self, means)


class Means(OutOfBag):
    """How forests of regressors predict; it goes before scikit-learn's class."""

    @documented_by(ForestRegressor.predict)
    @accelerated
    def predict(self, X):
        """Predict the mean of what the trees predict."""
        require(self, "estimators_")
        X = self._validate_X_predict(X)
        means = packed_forest(self).predict(X, n_threads(self.n_jobs), average=True)
        return means[:, 0, 0] if self.n_outputs_ == 1 else means[:, :, 0]


class _Report:
    """Tells callbacks of each tree, and whether one of them has had enough."""

    def __init__(self, forest: Any, task: Task, trees: list[Any]) -> None:
        self._forest, self._task, self._trees = forest, task, trees

    def __call__(self, tree: Any) -> bool:
        self._trees.append(tree)
        step = self._task.subtask("tree").begin()
        return step.end(self._fitted)

    def _fitted(self) -> dict[str, Any]:
        """The forest of the trees so far."""
        forest = self._forest
        attributes: dict[str, Any] = {"estimators_": list(self._trees)}
        # One list for each output until the end of the fit, where a single one is taken out.
        if isinstance(getattr(forest, "classes_", None), list) and forest.n_outputs_ == 1:
            attributes["classes_"] = forest.classes_[0]
            attributes["n_classes_"] = forest.n_classes_[0]
        return attributes
