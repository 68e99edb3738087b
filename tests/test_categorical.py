"""Trees that split categorical features by sets of levels."""

import itertools
import pickle

import numpy as np
import pandas as pd
import polars
import pytest
import sklearn.tree
from scipy.sparse import csr_matrix
from sklearn.base import clone

import fastml
from fastml import ensemble, tree
from fastml.ensemble import CategoricalForestClassifier, CategoricalForestRegressor
from fastml.tree import CategoricalTreeClassifier, CategoricalTreeRegressor
from fastml.tree._levels import LevelTree, LevelTrees

rng = np.random.default_rng(0)
N = 400
LEVELS = rng.integers(0, 7, N)
EFFECT = rng.permutation(7)[LEVELS] % 3
NUMBER = rng.normal(size=N)
SCORE = EFFECT + NUMBER + rng.normal(size=N)
WEIGHTS = rng.random(N)
FRAME = pd.DataFrame(
    {
        "number": NUMBER,
        "colour": pd.Categorical(np.array(list("abcdefg"))[LEVELS]),
        "flag": pd.Categorical(rng.integers(0, 2, N)),
    }
)


def impurity(y, w, criterion):
    if criterion == "squared_error":
        return w.sum() * (np.average(y**2, weights=w) - np.average(y, weights=w) ** 2)
    shares = np.array([w[y == c].sum() for c in np.unique(y)]) / w.sum()
    if criterion == "gini":
        return w.sum() * (1 - (shares**2).sum())
    return -w.sum() * (shares * np.log2(shares)).sum()


def best_of_all_sets(levels, y, w, criterion, min_leaf):
    """The least impurity of two sides, over every set of levels."""
    present = np.unique(levels)
    found = []
    for size in range(1, len(present)):
        for some in itertools.combinations(present, size):
            left = np.isin(levels, some)
            if min(left.sum(), (~left).sum()) >= min_leaf:
                found.append(sum(impurity(y[s], w[s], criterion) for s in (left, ~left)))
    return min(found)


@pytest.mark.parametrize("min_leaf", [1, 60])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
def test_the_root_is_the_best_of_all_splits(criterion, weighted, min_leaf):
    regression = criterion == "squared_error"
    y = SCORE if regression else (SCORE > 1.5).astype(int)
    w = np.ones(N) if not weighted else WEIGHTS if regression else np.arange(N) % 4
    cls = CategoricalTreeRegressor if regression else CategoricalTreeClassifier
    X = LEVELS[:, np.newaxis].astype(object)
    model = cls(
        criterion=criterion, max_depth=1, min_samples_leaf=min_leaf, categorical_features=[0]
    ).fit(X, y, w if weighted else None)
    used = w > 0
    assert np.isnan(model.tree_.threshold[0])
    left = np.isin(LEVELS, model.tree_.level_sets[0])
    found = sum(impurity(y[s & used], w[s & used], criterion) for s in (left, ~left))
    best = best_of_all_sets(LEVELS[used], y[used], w[used], criterion, min_leaf)
    np.testing.assert_allclose(found, best)
    weights = model.tree_.weighted_n_node_samples * model.tree_.impurity
    np.testing.assert_allclose(weights[1:].sum(), found)


def test_more_classes_than_two():
    y = (LEVELS * 5 % 7) % 3
    model = CategoricalTreeClassifier(categorical_features=[0]).fit(LEVELS[:, np.newaxis], y)
    assert model.score(LEVELS[:, np.newaxis], y) == 1
    assert model.tree_.node_count == 5


@pytest.mark.parametrize("cls", [CategoricalTreeRegressor, CategoricalForestRegressor])
def test_frames(cls):
    params = {"random_state": 0} | ({"n_estimators": 5} if "Forest" in cls.__name__ else {})
    model = cls(max_depth=5, **params).fit(FRAME, SCORE)
    assert model.is_categorical_.tolist() == [False, True, True]
    assert list(model.feature_names_in_) == ["number", "colour", "flag"]
    assert model.categories_[1].tolist() == list("abcdefg")
    for given in (["colour", "flag"], [1, 2], [False, True, True]):
        other = cls(max_depth=5, categorical_features=given, **params).fit(FRAME, SCORE)
        np.testing.assert_array_equal(other.predict(FRAME), model.predict(FRAME))
    as_numbers = cls(max_depth=5, categorical_features=None, **params)
    as_numbers.fit(np.c_[NUMBER, LEVELS, FRAME["flag"]], SCORE)
    assert model.score(FRAME, SCORE) > 0.5
    with pytest.raises(ValueError, match="feature names"):
        model.predict(FRAME[["colour", "number", "flag"]])
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(FRAME), model.predict(FRAME))
    with pytest.raises(TypeError, match="Categorical"):
        fastml.to_sklearn(model)
    clone(model).fit(FRAME, SCORE)


def test_polars_frames():
    frame = polars.DataFrame(
        {"colour": list("abcab"), "x": [1.0, 2, 3, 4, 5]}, schema_overrides={"x": polars.Float32}
    ).with_columns(polars.col("colour").cast(polars.Categorical))
    model = CategoricalTreeRegressor().fit(frame, [0.0, 3, 0, 0, 3])
    assert model.is_categorical_.tolist() == [True, False]
    np.testing.assert_array_equal(model.predict(frame), [0, 3, 0, 0, 3])


def test_missing_and_unknown_levels():
    X = np.array([["a"], ["b"], [None], ["b"], ["a"], [None], ["a"]], dtype=object)
    y = np.array([0.0, 1, 5, 1, 0, 5, 0])
    model = CategoricalTreeRegressor(categorical_features=[0]).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)
    np.testing.assert_array_equal(model.predict([["new"]]), [5])  # as missing
    model = CategoricalTreeRegressor(max_depth=1, categorical_features=[0]).fit(X[:2], y[:2])
    model = CategoricalTreeRegressor(categorical_features=[0]).fit(X[[0, 0, 1]], y[[0, 0, 1]])
    np.testing.assert_array_equal(model.predict([["new"], [None]]), [0, 0])  # as most rows


def test_levels_that_a_node_has_not_follow_its_larger_child():
    X = np.array([[0, 0], [0, 1], [0, 1], [1, 2], [1, 2]])
    y = np.array([0.0, 1, 1, 50, 50])
    model = CategoricalTreeRegressor(categorical_features=[0, 1], random_state=0)
    sets = model.fit(X, y).tree_.level_sets
    inner = np.flatnonzero(model.tree_.children_left >= 0)
    assert len(inner) == 2
    node = inner[1]
    left = model.tree_.n_node_samples[model.tree_.children_left[node]]
    if model.tree_.feature[node] == 1:
        assert (2 in sets[node]) == (left == 2)


def test_what_a_tree_tells():
    model = CategoricalTreeClassifier(max_depth=4, random_state=0).fit(FRAME, SCORE > 1.5)
    Z = model._encoder.transform(model, FRAME)
    leaves = model.apply(FRAME)
    np.testing.assert_array_equal(leaves, model.tree_.apply(Z))
    counts = np.bincount(leaves, minlength=model.tree_.node_count)
    is_leaf = model.tree_.children_left < 0
    np.testing.assert_array_equal(counts[is_leaf], model.tree_.n_node_samples[is_leaf])
    path = model.decision_path(FRAME)
    np.testing.assert_array_equal(np.asarray(path.sum(axis=0))[0], model.tree_.n_node_samples)
    np.testing.assert_allclose(model.feature_importances_.sum(), 1)
    assert "colour" in sklearn.tree.export_text(model, feature_names=list(FRAME))
    assert model.get_n_leaves() == is_leaf.sum()
    assert model.predict_proba(FRAME).shape == (N, 2)


def test_forests():
    y = np.digitize(SCORE, [0.5, 2])
    forests = [
        CategoricalForestClassifier(20, oob_score=True, n_jobs=jobs, random_state=0).fit(FRAME, y)
        for jobs in (1, 2)
    ]
    np.testing.assert_array_equal(*(forest.predict_proba(FRAME) for forest in forests))
    forest = forests[0]
    assert forest.oob_score_ > 0.5
    assert forest.apply(FRAME).shape == (N, 20)
    path, ends = forest.decision_path(FRAME)
    assert path.shape == (N, ends[-1])
    regressor = CategoricalForestRegressor(10, oob_score=True, random_state=0).fit(FRAME, SCORE)
    assert regressor.oob_score_ > 0.2
    best_first = CategoricalForestRegressor(3, max_leaf_nodes=5, random_state=0).fit(FRAME, SCORE)
    assert [each.tree_.n_leaves for each in best_first.estimators_] == [5, 5, 5]


def test_pruned_trees_keep_the_sets_of_their_nodes():
    path = CategoricalTreeRegressor(random_state=0).cost_complexity_pruning_path(FRAME, SCORE)
    grown = CategoricalTreeRegressor(random_state=0).fit(FRAME, SCORE)
    assert path.impurities[0] <= path.impurities[-1] == pytest.approx(SCORE.var())
    alpha = path.ccp_alphas[len(path.ccp_alphas) // 2]
    model = CategoricalTreeRegressor(ccp_alpha=alpha, random_state=0).fit(FRAME, SCORE)
    assert 1 < model.get_n_leaves() < grown.get_n_leaves()
    counts = np.bincount(model.apply(FRAME), minlength=model.tree_.node_count)
    is_leaf = model.tree_.children_left < 0
    np.testing.assert_array_equal(counts[is_leaf], model.tree_.n_node_samples[is_leaf])
    assert all(s is None for s, leaf in zip(model.tree_.level_sets, is_leaf, strict=True) if leaf)
    forest = CategoricalForestRegressor(5, ccp_alpha=alpha, random_state=0).fit(FRAME, SCORE)
    assert max(each.get_n_leaves() for each in forest.estimators_) < grown.get_n_leaves()
    numbers = CategoricalTreeRegressor(random_state=0, categorical_features=None)
    theirs = sklearn.tree.DecisionTreeRegressor(random_state=0)
    X = np.c_[NUMBER, LEVELS]
    np.testing.assert_array_equal(
        numbers.cost_complexity_pruning_path(X, SCORE).ccp_alphas,
        theirs.cost_complexity_pruning_path(X, SCORE).ccp_alphas,
    )


def test_forests_grow_on():
    y = (SCORE > 1.5).astype(int)
    params = {"random_state": 0, "class_weight": {0: 1, 1: 3}}
    forest = CategoricalForestClassifier(4, warm_start=True, **params).fit(FRAME, y)
    before = forest.predict_proba(FRAME)
    forest.set_params(n_estimators=9).fit(FRAME, y)
    at_once = CategoricalForestClassifier(9, **params).fit(FRAME, y)
    np.testing.assert_array_equal(forest.predict_proba(FRAME), at_once.predict_proba(FRAME))
    assert not np.array_equal(before, forest.predict_proba(FRAME))
    forest.set_params(n_estimators=10)
    with pytest.raises(ValueError, match="first fit"):
        forest.fit(FRAME.assign(colour=pd.Categorical(["new"] * N)), y)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 300, 1000])
def test_walks_are_those_of_each_row(n):
    rows = rng.integers(0, N, n)
    X = np.c_[NUMBER, LEVELS, rng.integers(0, 200, N)].astype(np.float32)
    model = CategoricalTreeRegressor(categorical_features=[1, 2], random_state=0).fit(X, SCORE)
    tree, sets = model.tree_, model.tree_.level_sets
    Z = model._encoder.transform(model, X)[rows]
    Z[n // 2 :, 2] = np.nan
    Z[: n // 3, 1] = -1

    def leaf(x):
        at = 0
        while tree.children_left[at] >= 0:
            value, missing_left = x[tree.feature[at]], tree.missing_go_to_left[at]
            if sets[at] is not None:
                left = value in sets[at] if value >= 0 else missing_left
            else:
                left = value <= tree.threshold[at] or (np.isnan(value) and missing_left)
            at = (tree.children_left if left else tree.children_right)[at]
        return at

    expected = np.array([leaf(x) for x in Z], dtype=np.int64)
    packed = LevelTrees([tree, tree])
    for threads in (1, 2):
        np.testing.assert_array_equal(packed.apply(Z, threads), np.c_[expected, expected])
        np.testing.assert_array_equal(
            packed.predict(Z, threads, average=True)[:, 0], tree.value[expected, 0]
        )


def test_trees_from_elsewhere_are_checked():
    model = CategoricalTreeRegressor(max_depth=3, random_state=0).fit(FRAME, SCORE)
    tree = model.tree_
    with pytest.raises(ValueError, match="sets"):
        LevelTrees([LevelTree(tree.stock, tree._words[1:].copy(), tree._n_levels)])
    state = tree.stock.__getstate__()
    state["nodes"]["left_child"][0] = 0
    circle = type(tree.stock)(tree.n_features, np.ones(1, dtype=np.intp), 1)
    circle.__setstate__(state)
    with pytest.raises(ValueError, match="make no tree"):
        LevelTrees([LevelTree(circle, tree._words, tree._n_levels)])


@pytest.mark.parametrize("cls", [CategoricalTreeRegressor, CategoricalForestClassifier])
def test_a_fit_that_fails_leaves_the_levels(cls):
    X = np.c_[rng.integers(0, 5, N), rng.integers(0, 9, N)]
    y = X[:, 0] % 2
    model = cls(categorical_features=[0, 1], random_state=0).fit(X, y)
    expected = model.predict(X)
    with pytest.raises(ValueError, match=r"(inconsistent|does not match)"):
        model.fit(X * 10, y[:-1])
    np.testing.assert_array_equal(model.predict(X), expected)
    assert model.categories_[0].tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(TypeError, match="Sparse data"):
        model.fit(csr_matrix(X), y)


def test_without_categories_it_is_scikit_learns():
    X = np.c_[NUMBER, LEVELS, rng.normal(size=N)]
    ours = CategoricalTreeRegressor(random_state=0).fit(X, SCORE).tree_
    theirs = sklearn.tree.DecisionTreeRegressor(random_state=0).fit(X, SCORE).tree_
    np.testing.assert_array_equal(ours.threshold, theirs.threshold)


def test_refusals():
    y = (SCORE > 1.5).astype(int)
    many = np.arange(N)[:, np.newaxis]
    with pytest.raises(ValueError, match="400 levels"):
        CategoricalTreeRegressor(categorical_features=[0]).fit(many, SCORE)
    X = many % 256
    assert CategoricalTreeRegressor(categorical_features=[0]).fit(X, X[:, 0]).score(X, X[:, 0]) == 1
    with pytest.raises(ValueError, match="whole"):
        CategoricalTreeClassifier().fit(FRAME, y, WEIGHTS)
    with pytest.raises(ValueError, match="one output"):
        CategoricalTreeRegressor().fit(FRAME, np.c_[SCORE, SCORE])
    with pytest.raises(ValueError, match="negative"):
        CategoricalTreeRegressor().fit(FRAME, SCORE, WEIGHTS - 0.5)
    with pytest.raises(ValueError, match="integer indices"):
        CategoricalTreeRegressor(categorical_features=[3]).fit(FRAME, SCORE)
    with pytest.raises(ValueError, match="names"):
        CategoricalTreeRegressor(categorical_features=["size"]).fit(FRAME, SCORE)
    assert not hasattr(sklearn.tree, "CategoricalTreeRegressor")
    assert tree.CategoricalTreeRegressor and ensemble.CategoricalForestRegressor
