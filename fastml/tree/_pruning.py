"""Pruning on a validation set."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from scipy.special import xlogy
from sklearn.base import is_classifier
from sklearn.ensemble._forest import BaseForest
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, check_is_fitted

from fastml.tree._levels import LevelTree

_LEAF, _UNDEFINED = -1, -2  # as scikit-learn marks them


def reduced_error_prune(tree, X_val, y_val, sample_weight=None):
    """Prune a fitted tree, or each tree of a forest, by its error on a validation set.

    From the bottom up, a subtree becomes a leaf if the loss of the validation rows that reach it
    does not rise by that. So a subtree that no row reaches goes too. The loss of a classifier is
    the number of rows misclassified. That of a regressor is the squared error, or what goes with
    its criterion: the absolute error for "absolute_error", the deviance for "poisson".

    Parameters
    ----------
    tree : estimator
        A fitted decision tree or forest, of fastml or of scikit-learn. It stays as it is.

    X_val : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows that it was not fitted on.

    y_val : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Their targets. A class that the tree does not know is always misclassified.

    sample_weight : array-like of shape (n_samples,), default=None
        Their weights; those of a row with several outputs count once for each.

    Returns
    -------
    estimator
        The pruned copy.

    Examples
    --------
    >>> from fastml.tree import DecisionTreeClassifier, reduced_error_prune
    >>> X, y = [[0], [1], [2], [3]], [0, 1, 0, 1]
    >>> tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    >>> pruned = reduced_error_prune(tree, [[0], [1], [2], [3]], [0, 0, 1, 1])
    >>> print(tree.get_n_leaves(), pruned.get_n_leaves())
    4 2
    """
    if not isinstance(tree, BaseDecisionTree | BaseForest):
        raise TypeError(f"tree must be a decision tree or a forest, not {type(tree).__name__}.")
    check_is_fitted(tree)
    X = (
        tree._validate_X_predict(X_val, True)
        if isinstance(tree, BaseDecisionTree)
        else tree._validate_X_predict(X_val)
    )
    y = check_array(y_val, ensure_2d=False, dtype=None if is_classifier(tree) else np.float64)
    y = y.reshape(-1, 1) if y.ndim == 1 else y
    check_consistent_length(X, y)
    if y.shape[1] != tree.n_outputs_:
        raise ValueError(f"y_val has {y.shape[1]} outputs, the tree has {tree.n_outputs_}.")
    w = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if is_classifier(tree):
        classes = [tree.classes_] if tree.n_outputs_ == 1 else tree.classes_
        y = np.stack([_codes(*each) for each in zip(y.T, classes, strict=True)], axis=1)
    pruned = copy.copy(tree)
    if isinstance(tree, BaseDecisionTree):
        pruned.tree_ = _prune(tree, X, y, w)
        return pruned
    pruned.estimators_ = [copy.copy(each) for each in tree.estimators_]
    for each in pruned.estimators_:
        each.tree_ = _prune(each, X, y, w)
    return pruned


def _codes(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The place of each label among the classes; -1 for one that is not there."""
    known = np.isin(y, classes)
    codes = np.full(len(y), -1, dtype=np.intp)
    codes[known] = np.searchsorted(classes, y[known])
    return codes


def _prune(estimator: Any, X: Any, y: np.ndarray, w: np.ndarray) -> Tree | LevelTree:
    tree = estimator.tree_
    left, right = tree.children_left, tree.children_right
    loss = _node_losses(estimator, X, y, w)
    keeps_children = left != _LEAF
    levels = _levels(left, right)
    for level in reversed(levels):
        inner = level[left[level] != _LEAF]
        below = loss[left[inner]] + loss[right[inner]]
        keeps_children[inner] = loss[inner] > below
        loss[inner] = np.minimum(loss[inner], below)
    if isinstance(tree, LevelTree):
        return tree.with_nodes_of(_with_children_of(tree.stock, keeps_children))
    return _with_children_of(tree, keeps_children)


def _levels(left: np.ndarray, right: np.ndarray) -> list[np.ndarray]:
    """The nodes at each depth, of the tree that these children span."""
    levels = [np.zeros(1, dtype=np.intp)]
    while True:
        inner = levels[-1][left[levels[-1]] != _LEAF]
        if not inner.size:
            return levels
        levels.append(np.concatenate([left[inner], right[inner]]))


def _node_losses(estimator: Any, X: Any, y: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The loss of the rows that pass each node, were it a leaf."""
    tree = estimator.tree_
    parent = np.zeros(tree.node_count, dtype=np.intp)
    for children in (tree.children_left, tree.children_right):
        inner = np.flatnonzero(children != _LEAF)
        parent[children[inner]] = inner
    values = tree.value
    classification = is_classifier(estimator)
    predicted = values.argmax(axis=2) if classification else values[:, :, 0]
    criterion = "" if classification else estimator.criterion
    loss = np.zeros(tree.node_count)
    node = tree.apply(X)
    rows = np.arange(len(node))
    while rows.size:
        p, t = predicted[node], y[rows]
        if classification:
            each = p != t
        elif criterion == "absolute_error":
            each = np.abs(t - p)
        elif criterion == "poisson":
            each = xlogy(t, t) - xlogy(t, p) - t + p
        else:
            each = np.square(t - p)
        loss += np.bincount(node, w[rows] * each.sum(axis=1), tree.node_count)
        rows, node = rows[node != 0], node[node != 0]
        node = parent[node]
    return loss


def _with_children_of(tree: Tree, keeps_children: np.ndarray) -> Tree:
    """A copy of the tree in which the other nodes are leaves."""
    state = tree.__getstate__()
    nodes = state["nodes"].copy()
    names = ("left_child", "right_child", "feature", "threshold", "missing_go_to_left")
    for name, value in zip(names, (_LEAF, _LEAF, _UNDEFINED, _UNDEFINED, 0), strict=True):
        nodes[name][~keeps_children] = value
    levels = _levels(nodes["left_child"], nodes["right_child"])
    kept = np.sort(np.concatenate(levels))
    place = np.full(len(nodes), _LEAF, dtype=np.intp)
    place[kept] = np.arange(len(kept))
    nodes = nodes[kept]
    for name in ("left_child", "right_child"):
        inner = nodes[name] != _LEAF
        nodes[name][inner] = place[nodes[name][inner]]
    pruned = Tree(tree.n_features, np.asarray(tree.n_classes, dtype=np.intp), tree.n_outputs)
    pruned.__setstate__(
        {
            "max_depth": len(levels) - 1,
            "node_count": len(nodes),
            "nodes": nodes,
            "values": np.ascontiguousarray(state["values"][kept]),
        }
    )
    return pruned
