"""The packed trees of fitted models: made when first needed, kept beside the models.

They follow the model's trees, by identity: growing more, pruning, or putting others in their place
packs anew. See `fastml._runtime.beside`, whose `forget` tells of what was written into a packed
tree's arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fastml._native.forest import Forest
from fastml._runtime.beside import beside
from fastml._runtime.threads import n_threads
from fastml.tree._levels import LevelTree, LevelTrees


def forest_of(trees: Sequence[Any], n_threads: int) -> Any:
    """The trees, packed if they are scikit-learn's."""
    if isinstance(trees[0], LevelTree):
        return LevelTrees(trees)
    return Forest(trees, n_threads)


def packed(
    model: Any,
    trees: Sequence[Any],
    make: Callable[[Sequence[Any]], Forest] | None = None,
    stamp: Any = None,
) -> Forest:
    """The forest of `trees`, which are those of `model` now.

    Parameters
    ----------
    model : object
        Who keeps the forest alive.

    trees : sequence of sklearn.tree._tree.Tree
        Such as `[model.tree_]` or `[tree.tree_ for tree in model.estimators_]`.

    make : callable, default=None
        Called with `trees` when there is no forest of them yet. By default they are packed as
        they are.

    stamp : object, default=None
        What else the forest depends on; another one, by `==`, packs anew.
    """

    def pack() -> Forest:
        return forest_of(trees, n_threads()) if make is None else make(trees)

    return beside(model, trees, pack, stamp)


def packed_tree(tree: Any) -> Forest:
    """Of a decision tree."""
    return packed(tree, [tree.tree_])


def packed_forest(model: Any) -> Forest:
    """Of the trees of a forest, all over all features."""
    return packed(model, [tree.tree_ for tree in model.estimators_])


def packed_isolation(model: Any) -> Forest:
    """Of an IsolationForest: its sums are the lengths of paths, each tree's on its features."""

    def make(trees: Sequence[Any]) -> Forest:
        lengths = [
            (path + average - 1.0)[:, np.newaxis]
            for path, average in zip(
                model._decision_path_lengths, model._average_path_length_per_tree, strict=True
            )
        ]
        return Forest(
            trees,
            n_threads(),
            values=lengths,
            features=model.estimators_features_,
            n_features=model.n_features_in_,
        )

    return packed(model, [tree.tree_ for tree in model.estimators_], make)


def packed_bagging(model: Any) -> Forest:
    """Of bagged trees: the sums are those of probabilities, or of predictions."""

    def make(trees: Sequence[Any]) -> Forest:
        features, d = model.estimators_features_, model.n_features_in_
        return Forest(trees, n_threads(), features=features, n_features=d)

    return packed(model, [tree.tree_ for tree in model.estimators_], make)


def packed_boosting(model: Any) -> Forest:
    """Of an AdaBoostClassifier over trees: the sums are those of the weighted votes."""
    classes, weights = model.classes_, model.estimator_weights_

    def make(trees: Sequence[Any]) -> Forest:
        values = []
        for tree, weight in zip(model.estimators_, weights, strict=False):
            voted = tree.classes_.take(tree.tree_.value[:, 0].argmax(axis=1))
            against = -1 / (len(classes) - 1) * weight
            values.append(np.where(voted[:, np.newaxis] == classes, weight, against))
        return Forest(trees, n_threads(), values=values)

    stamp = tuple(weights[: len(model.estimators_)])
    return packed(model, [tree.tree_ for tree in model.estimators_], make, stamp)


def decision_path(forest: Forest, trees: Sequence[Any], X: Any, *, alone: bool) -> Any:
    """The indicator matrix of the nodes that rows of `X` pass, as scikit-learn types it.

    `alone` tells a tree from a forest of one, whose matrix may have shorter indices.
    """
    stock = trees[0].decision_path(np.empty((0, trees[0].n_features), dtype=np.float32))
    wide = alone and stock.indices.dtype == np.int64
    indices, indptr = forest.decision_path(X, n_threads(), wide)
    ones = np.ones(len(indices), dtype=stock.data.dtype)
    shape = (X.shape[0], int(forest.node_counts.sum()))
    matrix = type(stock)((ones, indices, indptr), shape=shape)
    matrix.indices, matrix.indptr = indices, indptr  # some constructors shorten them
    return matrix
