"""Trees by an impurity of the user's, compiled."""

import math
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import fastml
from fastml.ensemble import ExtraTreesRegressor, RandomForestClassifier
from fastml.jit import NotCompilable, criterion
from fastml.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 4))
SCORE = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=600) / 4
CLASSES = np.digitize(SCORE, [-0.5, 1])
WEIGHTS = rng.random(600)


@criterion
def entropy(weights):
    total, found = weights.sum(), 0.0
    for w in weights:
        if w > 0:
            found -= w / total * (math.log(w / total) / math.log(2.0))
    return found


@criterion
def variance(moments):
    w, wy, wyy = moments
    return wyy / w - (wy / w) ** 2


@criterion
def cautious(moments):
    """Of few rows nothing is known."""
    w, wy, wyy = moments
    return 0.0 if w < 50 else wyy / w - (wy / w) ** 2


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize(
    ("tree", "ours", "theirs", "y"),
    [
        (DecisionTreeClassifier, entropy, "entropy", CLASSES),
        (DecisionTreeRegressor, variance, "squared_error", SCORE),
        (ExtraTreeRegressor, variance, "squared_error", SCORE),
    ],
)
def test_grows_what_a_criterion_of_that_impurity_does(tree, ours, theirs, y, weights):
    models = [
        tree(criterion=each, max_depth=3, random_state=0).fit(X, y, sample_weight=weights)
        for each in (ours, theirs)
    ]
    mine, other = (model.tree_ for model in models)
    np.testing.assert_array_equal(mine.feature, other.feature)
    np.testing.assert_array_equal(mine.threshold, other.threshold)
    np.testing.assert_allclose(mine.impurity, other.impurity, atol=1e-12)
    np.testing.assert_allclose(mine.value, other.value, atol=1e-12)


def test_a_criterion_that_there_is_not():
    tree = DecisionTreeRegressor(criterion=cautious, random_state=0).fit(X, SCORE)
    assert (tree.tree_.n_node_samples[tree.tree_.children_left >= 0] >= 50).all()
    assert 3 < tree.get_n_leaves() < 60


def test_forests_on_any_number_of_threads():
    found = [
        RandomForestClassifier(8, criterion=entropy, n_jobs=jobs, random_state=0)
        .fit(X, CLASSES)
        .predict_proba(X)
        for jobs in (1, 2)
    ]
    np.testing.assert_array_equal(*found)
    forest = ExtraTreesRegressor(5, criterion=variance, random_state=0).fit(X, SCORE)
    assert forest.score(X, SCORE) > 0.95


def test_is_an_object_as_estimators_want_it():
    tree = clone(DecisionTreeClassifier(criterion=entropy)).fit(X, CLASSES)
    assert tree.criterion is entropy
    copy = pickle.loads(pickle.dumps(tree))
    assert copy.criterion == entropy
    assert repr(entropy) == "<criterion entropy>"
    assert entropy(np.array([1.0, 1.0])) == 1
    with pytest.raises(TypeError, match="criterion"):
        fastml.to_sklearn(tree)


def test_what_cannot_be():
    two = np.c_[SCORE, SCORE]
    with pytest.raises(ValueError, match="one output"):
        DecisionTreeRegressor(criterion=variance).fit(X, two)
    with pytest.raises(NotCompilable, match="one vector"):
        DecisionTreeRegressor(criterion=criterion(lambda a, b: a[0])).fit(X, SCORE)
    with pytest.raises(NotCompilable, match="not a real number"):
        DecisionTreeRegressor(criterion=criterion(lambda m: "no")).fit(X, SCORE)
    with pytest.raises(ValueError, match="not a number"):
        DecisionTreeRegressor(criterion=criterion(lambda m: m[7])).fit(X, SCORE)
