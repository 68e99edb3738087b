"""What all our trees share: how they are fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.tree._criterion import Criterion
from sklearn.tree._splitter import Splitter
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, validate_data

from fastml._native import trees as native
from fastml._runtime.dispatch import Unsupported, concede
from fastml._runtime.threads import n_threads
from fastml.tree._nursery import Nursery
from fastml.tree._targets import constraints_of, limits_of, max_features_of

_RAND_R_MAX = 2**31 - 1  # the bound of the one number that a splitter draws


class GrownTree:
    """`_fit` of all our trees, alone or in an ensemble's nursery."""

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
            nursery = Nursery(nursery.n_threads, owner=nursery.owner)
        if check_input:
            X, y, missing = nursery.checked(self, X, y)
        refusal = refusal_of(self, X)
        if refusal is None:
            refusal = self._plant(nursery, X, y, sample_weight)
        if refusal is not None:
            self._concede(nursery, refusal)
            super()._fit(X, y, sample_weight, False, missing)
        return self

    def _concede(self, nursery: Nursery, refusal: Unsupported) -> None:
        if self.criterion == "misclassification":
            raise ValueError(f"criterion='misclassification' is not possible: {refusal.reason}")
        concede(self, "fit", refusal)
        if nursery.owner is not None:
            concede(nursery.owner, "fit", refusal)

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any, np.ndarray | None]:
        """X and y as trees take them, and which features miss values."""
        for_X = {"dtype": np.float32, "accept_sparse": "csc", "ensure_all_finite": False}
        for_y = {"ensure_2d": False, "dtype": None}
        X, y = validate_data(self, X, y, validate_separately=(for_X, for_y))
        missing = self._compute_missing_values_in_feature_mask(X)
        if issparse(X):
            X.sort_indices()
            if X.indices.dtype != np.intc or X.indptr.dtype != np.intc:
                raise ValueError("No support for np.int64 index based sparse matrices")
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
            weight = n if weights is None else np.sum(weights)
        limits = limits_of(self, n, d, weight)
        constraints = constraints_of(self, d, targets)
        columns = nursery.columns(X, ranks=self.splitter == "best")
        seed = check_random_state(self.random_state).randint(0, _RAND_R_MAX)
        nursery.plant(self, seed, weights, limits, (columns, targets, self.criterion, constraints))
        return None


def _are_counts(weights: Any, n: int) -> bool:
    return isinstance(weights, np.ndarray) and weights.dtype.kind == "i" and weights.shape == (n,)


def refusal_of(tree: Any, X: Any) -> Unsupported | None:
    """Why trees like this one cannot be grown natively on X."""
    for name, kind in (("criterion", Criterion), ("splitter", Splitter)):
        if isinstance(getattr(tree, name), kind):
            return Unsupported(name, f"{name} objects are not compiled", f"give the {name} by name")
    if not isinstance(tree.criterion, str):
        return None  # which is an error
    sparse = issparse(X)
    reason = native.refusal(tree.criterion, sparse=sparse)
    if reason is None:
        return None
    if sparse:
        return Unsupported("X", reason, "pass a dense array")
    return Unsupported("criterion", reason, "use another criterion")
