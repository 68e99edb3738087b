"""What our forests share: how they are fitted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from sklearn.base import is_classifier
from sklearn.ensemble._forest import BaseForest

from fastml._runtime.callbacks import Task, fit_context, fit_task
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.threads import n_threads
from fastml.tree._classes import OURS, TREES
from fastml.tree._grown import refusal_of
from fastml.tree._nursery import raising


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
    return refusal_of(SimpleNamespace(criterion=forest.criterion, splitter=tree.splitter), X)


class Grove(Seedbed, BaseForest):
    """`fit` of all our forests, which follow it among the bases of scikit-learn's."""

    @documented_by(BaseForest.fit)
    @accelerated(unless=_not_native)
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Build a forest of trees from the training set (`X`, `y`)."""
        metadata = {"sample_weight": sample_weight}
        grown = len(self.estimators_) if self.warm_start and hasattr(self, "estimators_") else 0
        with fit_task(self, self.n_estimators - grown, X=X, y=y, metadata=metadata) as task:
            report = _Report(self, task) if task else None
            with raising(self, n_threads=n_threads(self.n_jobs), patient=True, on_grown=report):
                super().fit(X, y, sample_weight)
        return self

    def _validate_estimator(self, *args):
        super()._validate_estimator(*args)
        self.estimator_ = own_tree(self.estimator_)

    def _compute_oob_predictions(self, X, y):
        nursery = vars(self).get("_fastml_nursery")
        if nursery is not None:
            nursery.grow()
            self.estimators_ = [tree for tree in self.estimators_ if hasattr(tree, "tree_")]
        return super()._compute_oob_predictions(X, y)


class _Report:
    """Tells callbacks of each tree, and whether one of them has had enough."""

    def __init__(self, forest: Any, task: Task) -> None:
        self._forest, self._task, self._trees = forest, task, []

    def __call__(self, tree: Any) -> bool:
        self._trees.append(tree)
        step = self._task.subtask("tree").begin()
        return step.end(self._fitted)

    def _fitted(self) -> dict[str, Any]:
        """The forest of the trees so far."""
        forest = self._forest
        attributes: dict[str, Any] = {"estimators_": [*forest.estimators_, *self._trees]}
        if is_classifier(forest) and forest.n_outputs_ == 1:
            attributes["classes_"] = forest.classes_[0]
            attributes["n_classes_"] = forest.n_classes_[0]
        return attributes
