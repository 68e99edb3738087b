"""Pruning on a validation set, against a plain twin."""

import numpy as np
import pytest
import sklearn.ensemble
import sklearn.metrics
import sklearn.tree

from fastml import ensemble, tree
from fastml.tree import reduced_error_prune

rng = np.random.default_rng(0)
N = 400
X = rng.integers(0, 9, (N, 5)).astype(np.float64)
X[rng.random((N, 5)) < 0.05] = np.nan
SCORE = np.nansum(X[:, :2], axis=1) - 6
LABELS = np.array(["no", "so", "yes"])[np.digitize(SCORE + rng.normal(size=N) * 3, [0, 4])]
NUMBERS = SCORE + rng.integers(-6, 7, N)  # sums without rounding
X_VAL, Y_VAL, Z_VAL = X[:150], rng.permutation(LABELS[:150]), NUMBERS[:150] + 1.0
Y_VAL[:100] = LABELS[:100]


def path(nodes, row):
    """The nodes that a row passes."""
    node = 0
    while nodes.children_left[node] != -1:
        yield node
        value = np.float32(row[nodes.feature[node]])
        is_left = value <= nodes.threshold[node]
        if np.isnan(value):
            is_left = nodes.missing_go_to_left[node]
        node = nodes.children_left[node] if is_left else nodes.children_right[node]
    yield node


def prune_naive(model, X, y, w):
    """The children that are left, node by node, and the leaf that each row ends in."""
    nodes, classification = model.tree_, hasattr(model, "classes_")
    left, right = nodes.children_left.tolist(), nodes.children_right.tolist()
    paths = [set(path(nodes, row)) for row in X]

    def loss(node):
        total = 0.0
        for i in (i for i in range(len(X)) if node in paths[i]):
            value = nodes.value[node, 0]
            if classification:
                total += w[i] * (model.classes_[np.argmax(value)] != y[i])
            else:
                total += w[i] * (value[0] - y[i]) ** 2
        return total

    def best(node):
        if left[node] == -1:
            return loss(node)
        below, alone = best(left[node]) + best(right[node]), loss(node)
        if alone <= below:
            left[node] = right[node] = -1
        return min(alone, below)

    best(0)
    return left, right


def kept(left, right, node=0):
    """The original numbers of the nodes that are left, in preorder."""
    yield node
    for child in (left[node], right[node]):
        if child != -1:
            yield from kept(left, right, child)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("library", [tree, sklearn.tree])
@pytest.mark.parametrize("name", ["DecisionTreeClassifier", "DecisionTreeRegressor"])
def test_matches_naive(name, library, weighted):
    classification = name.endswith("Classifier")
    y, y_val = (LABELS, Y_VAL) if classification else (np.round(NUMBERS), Z_VAL)
    model = getattr(library, name)(random_state=0, min_samples_leaf=2).fit(X[150:], y[150:])
    w = rng.integers(0, 3, 150).astype(float) if weighted else np.ones(150)
    before = model.tree_.__getstate__()["nodes"].copy()
    pruned = reduced_error_prune(model, X_VAL, y_val, w if weighted else None)
    np.testing.assert_array_equal(model.tree_.__getstate__()["nodes"], before)
    numbers = np.array(list(kept(*prune_naive(model, X_VAL, y_val, w))))
    assert 1 < len(numbers) < model.tree_.node_count
    for field in ("impurity", "n_node_samples", "weighted_n_node_samples", "value"):
        expected = getattr(model.tree_, field)[numbers]
        np.testing.assert_array_equal(getattr(pruned.tree_, field), expected)
    assert type(pruned) is type(model)
    inner = pruned.tree_.children_left != -1
    np.testing.assert_array_equal(pruned.tree_.feature[inner], model.tree_.feature[numbers][inner])
    assert (pruned.tree_.children_left[inner] == np.flatnonzero(inner) + 1).all()


def test_loss_does_not_rise():
    model = tree.DecisionTreeClassifier(random_state=0).fit(X[150:], LABELS[150:])
    pruned = reduced_error_prune(model, X_VAL, Y_VAL)
    assert pruned.score(X_VAL, Y_VAL) >= model.score(X_VAL, Y_VAL)
    assert reduced_error_prune(pruned, X_VAL, Y_VAL).get_n_leaves() == pruned.get_n_leaves()


@pytest.mark.parametrize("name", ["RandomForestClassifier", "ExtraTreesRegressor"])
@pytest.mark.parametrize("library", [ensemble, sklearn.ensemble])
def test_forest_is_pruned_tree_by_tree(name, library):
    classification = name.endswith("Classifier")
    y, y_val = (LABELS, Y_VAL) if classification else (NUMBERS, Z_VAL)
    model = getattr(library, name)(5, random_state=0).fit(X[150:], y[150:])
    whole = [each.tree_.node_count for each in model.estimators_]
    pruned = reduced_error_prune(model, X_VAL, y_val)
    assert [each.tree_.node_count for each in model.estimators_] == whole
    codes = np.searchsorted(model.classes_, y_val) if classification else y_val
    for mine, each in zip(pruned.estimators_, model.estimators_, strict=True):
        alone = reduced_error_prune(each, X_VAL, codes)
        np.testing.assert_array_equal(mine.tree_.threshold, alone.tree_.threshold)
    assert pruned.predict(X_VAL).shape == (150,)


@pytest.mark.parametrize("criterion", ["absolute_error", "poisson"])
def test_losses_of_criteria(criterion):
    y, whole = np.abs(NUMBERS), np.nan_to_num(X)
    model = tree.DecisionTreeRegressor(criterion=criterion, max_depth=5).fit(whole[150:], y[150:])
    pruned = reduced_error_prune(model, whole[:150], y[:150])
    assert pruned.get_n_leaves() < model.get_n_leaves()
    loss = {
        "absolute_error": sklearn.metrics.mean_absolute_error,
        "poisson": sklearn.metrics.mean_poisson_deviance,
    }[criterion]
    assert loss(y[:150], pruned.predict(whole[:150])) <= loss(y[:150], model.predict(whole[:150]))


def test_outputs_and_unknown_classes():
    both = np.c_[LABELS == "yes", LABELS == "no"].astype(int)
    model = tree.DecisionTreeClassifier(random_state=0).fit(X[150:], both[150:])
    pruned = reduced_error_prune(model, X_VAL, both[:150])
    assert pruned.get_n_leaves() < model.get_n_leaves()
    model = tree.DecisionTreeClassifier(random_state=0).fit(X[150:], LABELS[150:])
    assert reduced_error_prune(model, X_VAL, np.full(150, "never")).get_n_leaves() == 1
    with pytest.raises(ValueError, match="outputs"):
        reduced_error_prune(model, X_VAL, both[:150])
    with pytest.raises(TypeError, match="tree must be"):
        reduced_error_prune(sklearn.ensemble.BaggingClassifier(), X_VAL, Y_VAL)


@pytest.mark.parametrize("name", ["TreeClassifier", "TreeRegressor", "ForestClassifier"])
def test_sets_of_levels_are_left(name):
    """A pruned tree sends rows where the whole one does, as far as it goes."""
    rows = np.c_[rng.integers(0, 30, N), rng.integers(0, 5, N), rng.normal(size=N)]
    y = (rows[:, 0] % 3 == 0) ^ (rows[:, 1] == 2) ^ (rng.random(N) < 0.2)
    make = getattr(tree if name.startswith("Tree") else ensemble, "Categorical" + name)
    model = make(categorical_features=[0, 1], random_state=0)
    if name.startswith("Forest"):
        model.set_params(n_estimators=3)
    model.fit(rows[:200], y[:200].astype(int))
    pruned = reduced_error_prune(model, rows[200:], y[200:].astype(int))
    assert pruned.score(rows[200:], y[200:]) > model.score(rows[200:], y[200:])
    one = name.startswith("Tree")
    trees = [(model, pruned)] if one else zip(model.estimators_, pruned.estimators_, strict=True)
    Z = model._encoder.transform(model, rows)
    for whole, less in trees:
        assert less.tree_.node_count < whole.tree_.node_count
        nodes, paths = less.tree_.apply(Z), whole.tree_.decision_path(Z)
        passed = [whole.tree_.value[paths[i].indices] for i in range(N)]
        for node, values in zip(nodes, passed, strict=True):
            assert (values == less.tree_.value[node]).all(axis=(1, 2)).any()
