"""What all our trees share: how they are fitted, and how they predict."""

from __future__ import annotations

import threading
from numbers import Integral
from typing import Any

import numpy as np
import sklearn
from scipy.sparse import issparse
from sklearn.tree import BaseDecisionTree
from sklearn.tree._criterion import Criterion as StockCriterion
from sklearn.tree._splitter import Splitter
from sklearn.utils import check_random_state
from sklearn.utils.fixes import parse_version
from sklearn.utils.validation import _check_sample_weight, validate_data

from fastml._native import trees as native
from fastml._native.forest import Forest
from fastml._runtime.beside import is_beside
from fastml._runtime.dispatch import Unsupported, accelerated, concede
from fastml._runtime.docs import documented_by
from fastml._runtime.threads import n_threads
from fastml.jit import Criterion
from fastml.tree._nursery import Nursery
from fastml.tree._packed import decision_path, forest_of, packed_tree
from fastml.tree._queries import plain_query, require
from fastml.tree._targets import (
    check_level_targets,
    constraints_of,
    limits_of,
    max_features_of,
)

# Packing a tree takes as long as walking so many rows for each hundred nodes.
_ROWS_PER_HUNDRED_NODES = 10
_TINY = 1 << 12  # values
# Before 1.9 it had an improvement of its own.
_FRIEDMAN_IS_SQUARED_ERROR = parse_version(sklearn.__version__) >= parse_version("1.9")
_RAND_R_MAX = 2**31 - 1  # the bound of the one number that a splitter draws
_local = threading.local()  # a generator, seeded anew for each tree


class GrownTree:
    """What all our trees do, alone or in an ensemble's nursery."""

    _is_classifier: bool

    def _fit(
        self,
        X,
        y,
        sample_weight=None,
        check_input=True,
        missing_values_in_feature_mask=None,
    ):
        missing = missing_values_in_feature_mask
        nursery = vars(self).get("_fastml_nursery")
        if nursery is None:
            nursery = Nursery(n_threads())
        elif not nursery.shares(X):
            nursery = nursery.beside(self)
        if check_input:
            X, y, missing = nursery.checked(self, X, y)
        refusal = refusal_of(self)
        if refusal is None:
            refusal = self._plant(nursery, X, y, sample_weight)
        if refusal is not None:
            self._concede(nursery, refusal)
            super()._fit(X, y, sample_weight, False, missing)
        return self

    def _concede(self, nursery: Nursery, refusal: Unsupported) -> None:
        if self._levels_in(nursery) is not None:
            raise ValueError(f"categorical features are not possible: {refusal.reason}")
        if self.criterion == "misclassification" or isinstance(self.criterion, Criterion):
            raise ValueError(f"criterion={self.criterion!r} is not possible: {refusal.reason}")
        concede(self, "fit", refusal)
        if nursery.owner is not None:
            concede(nursery.owner, "fit", refusal)

    def _levels_in(self, nursery: Nursery) -> np.ndarray | None:
        """How many levels categorical features have: what the ensemble, or the tree alone, says."""
        return getattr(self if nursery.owner is None else nursery.owner, "_n_levels", None)

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any, np.ndarray | None]:
        """X and y as trees take them, and which features miss values."""
        for_X = {"dtype": np.float32, "accept_sparse": "csc", "ensure_all_finite": False}
        for_y = {"ensure_2d": False, "dtype": None}
        X, y = validate_data(self, X, y, validate_separately=(for_X, for_y))
        # Of little data the tags of the estimator, which that asks for, would be most of the work.
        tiny = isinstance(X, np.ndarray) and X.size < _TINY and np.isfinite(X).all()
        missing = None if tiny else self._compute_missing_values_in_feature_mask(X)
        if issparse(X):
            X.sort_indices()
        if isinstance(self.criterion, str) and self.criterion == "poisson":
            if np.any(y < 0):
                raise ValueError(
                    "Some value(s) of y are negative which is not allowed for Poisson regression."
                )
            if np.sum(y) <= 0:
                raise ValueError(
                    "Sum of y is not positive which is necessary for Poisson regression."
                )
        return X, y, missing

    def _plant(self, nursery: Nursery, X: Any, y: Any, sample_weight: Any) -> Unsupported | None:
        """Hand all that the tree needs to the nursery, or say why it cannot grow there."""
        n, d = X.shape
        self.n_features_in_ = d
        targets = nursery.targets(y, self._is_classifier)
        targets.describe(self)
        self.max_features_ = max_features_of(self, d)
        if len(targets.values) != n:
            raise ValueError(
                f"Number of labels={len(targets.values)} does not match number of samples={n}"
            )
        weights = sample_weight
        if weights is not None and not _are_counts(weights, n):
            weights = _check_sample_weight(weights, X, dtype=np.float64)
        if getattr(self, "class_weight", None) is not None:
            by_class = targets.class_weights(self.class_weight)
            weights = by_class if weights is None else weights * by_class
        if weights is not None and weights.min() < 0:
            return Unsupported(
                "sample_weight", "negative weights are not compiled", "leave such rows out"
            )
        weight = 0.0
        if self.min_weight_fraction_leaf > 0:
            weight = (nursery.draws or n) if weights is None else np.sum(weights)
        limits = limits_of(self, n, d, weight)
        constraints = constraints_of(self, d, targets)
        criterion = self.criterion
        if isinstance(criterion, Criterion):
            if targets.values.shape[1] > 1:
                return Unsupported("y", "a criterion of the user's takes one output", "fit one")
            criterion = criterion.address()
        levels = self._levels_in(nursery)
        if levels is not None:
            check_level_targets(targets, weights)
        columns = nursery.columns(X, ranks=self.splitter == "best", levels=levels)
        seed = _first_number(self.random_state)
        nursery.plant(self, seed, weights, limits, (columns, targets, criterion, constraints))
        return None

    def _validate_X_predict(self, X, check_input):
        nursery = vars(self).get("_fastml_nursery")
        if check_input and nursery is not None:
            return nursery.queries(X, lambda: super(GrownTree, self)._validate_X_predict(X, True))
        plain = plain_query(self, X) if check_input else None
        return super()._validate_X_predict(X, check_input) if plain is None else plain

    def _packed(self, X: Any) -> Forest | None:
        """The packed tree, if that is the quicker way to send X through it."""
        if not isinstance(X, np.ndarray) and not issparse(X):
            return None  # which is an error
        if "_fastml_nursery" in vars(self):
            return forest_of([self.tree_], n_threads())  # needed once
        few = X.shape[0] * 100 < _ROWS_PER_HUNDRED_NODES * self.tree_.node_count
        return None if few and not is_beside(self) else packed_tree(self)

    def _values(self, X: Any) -> np.ndarray:
        """What the leaves hold that rows reach, shape (n, n_outputs, max_n_classes)."""
        forest = self._packed(X)
        if forest is None:
            return self.tree_.value.take(self.tree_.apply(X), axis=0)
        return forest.predict(X, n_threads())

    @documented_by(BaseDecisionTree.predict)
    @accelerated
    def predict(self, X, check_input=True):
        """Predict the class or the value of each row of `X`."""
        require(self, "tree_")
        X = self._validate_X_predict(X, check_input)
        if not self._is_classifier:
            values = self._values(X)
            return values[:, 0, 0] if self.n_outputs_ == 1 else values[:, :, 0]
        forest = self._packed(X)
        codes = self._values(X).argmax(axis=2) if forest is None else forest.classes(X, n_threads())
        return labels_of(self, codes)

    @documented_by(BaseDecisionTree.apply)
    @accelerated
    def apply(self, X, check_input=True):
        """Return the leaf that each row of `X` ends up in."""
        require(self, "tree_")
        X = self._validate_X_predict(X, check_input)
        forest = self._packed(X)
        return self.tree_.apply(X) if forest is None else forest.apply(X, n_threads())[:, 0]

    @documented_by(BaseDecisionTree.decision_path)
    @accelerated
    def decision_path(self, X, check_input=True):
        """Return which nodes of the tree the rows of `X` pass through."""
        X = self._validate_X_predict(X, check_input)
        forest = self._packed(X)
        if forest is None:
            return self.tree_.decision_path(X)
        return decision_path(forest, [self.tree_], X, alone=True)


def _first_number(random_state: Any) -> int:
    """The number that scikit-learn's splitter draws from `random_state`.

    A generator takes 50 times as long to make as to seed, and every tree of a forest asks.
    """
    if isinstance(random_state, Integral):
        if not hasattr(_local, "generator"):
            _local.generator = np.random.RandomState(0)
        generator = _local.generator
        generator.seed(random_state)
    else:
        generator = check_random_state(random_state)
    return generator.randint(0, _RAND_R_MAX)


def labels_of(model: Any, codes: np.ndarray) -> np.ndarray:
    """The labels of class codes (n, n_outputs), shaped as scikit-learn's predictions."""
    if model.n_outputs_ == 1:
        return model.classes_.take(codes[:, 0], axis=0)
    labels = np.empty(codes.shape, dtype=model.classes_[0].dtype)
    for k, classes in enumerate(model.classes_):
        labels[:, k] = classes.take(codes[:, k], axis=0)
    return labels


def shares_of(model: Any, values: np.ndarray) -> Any:
    """The shares of classes (n, n_outputs, max_n_classes), as `predict_proba` has them."""
    if model.n_outputs_ == 1:
        return values[:, 0, : model.n_classes_]
    return [np.ascontiguousarray(values[:, k, :m]) for k, m in enumerate(model.n_classes_)]


def _are_counts(weights: Any, n: int) -> bool:
    """Whether weights are integers that need no check, such as a bootstrap's."""
    if not isinstance(weights, np.ndarray) or weights.dtype.kind != "i" or weights.shape != (n,):
        return False
    return bool(weights.any())


def refusal_of(tree: Any) -> Unsupported | None:
    """Why trees like this one cannot be grown natively."""
    for name, kind in (("criterion", StockCriterion), ("splitter", Splitter)):
        if isinstance(getattr(tree, name), kind):
            return Unsupported(name, f"{name} objects are not compiled", f"give the {name} by name")
    if not isinstance(tree.criterion, str):
        return None  # which is an error
    if tree.criterion == "friedman_mse" and not _FRIEDMAN_IS_SQUARED_ERROR:
        return Unsupported(
            "criterion", "Friedman's improvement is not compiled", "use squared_error"
        )
    reason = native.refusal(tree.criterion)
    return reason and Unsupported("criterion", reason, "use another criterion")
