"""Walking packed trees: the same bits as scikit-learn's own, tree by tree and added up."""

import copy
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from fastml._native.forest import Forest
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeRegressor,
)
from sklearn.tree._tree import Tree

import fastml.ensemble
from fastml._runtime import beside
from fastml._runtime.sparse import with_short_indices
from fastml.tree import _packed

# Older ones take NaN for a number when they list the nodes that a row passes.
PATHS_KNOW_NAN = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)
ROWS = (0, 1, 3, 5, 17, 64, 200)  # row by row, and in blocks with and without a rest


def same_bits(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def sum_naive(trees, X):
    """Tree by tree from zero, as a forest does with one job."""
    out = np.zeros((X.shape[0], trees[0].n_outputs, trees[0].max_n_classes))
    for tree in trees:
        out += tree.predict(X).reshape(out.shape)
    return out


def data(n=400, d=6, seed=0, missing=0.0, ties=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    if ties:
        X = X.round()
    y = X[:, 0] + X[:, -1] * X[:, d // 2] + rng.normal(size=n)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def random_tree(rng, n_features, depth, width=1):
    """A tree nobody grew: uneven, with infinite and huge thresholds, -0.0 and NaN in it."""
    nodes = []

    def add(level):
        node = len(nodes)
        nodes.append([-1, -1, -2, -2.0, 0])
        if level < depth and (level < 2 or rng.random() < 0.8):
            extreme = rng.choice([np.inf, -np.inf, 1e300, -1e300, 0.0, -0.0, 1e-50, 3.5e38])
            threshold = extreme if rng.random() < 0.3 else rng.normal()
            nodes[node][2:] = rng.integers(n_features), threshold, rng.integers(2)
            nodes[node][0] = add(level + 1)
            nodes[node][1] = add(level + 1)
        return node

    add(0)
    tree = Tree(n_features, np.full(1, width, dtype=np.intp), 1)
    state = tree.__getstate__()
    array = np.zeros(len(nodes), dtype=state["nodes"].dtype)
    for node, row in zip(array, nodes, strict=True):
        for name, value in zip(
            ("left_child", "right_child", "feature", "threshold", "missing_go_to_left"),
            row,
            strict=True,
        ):
            node[name] = value
    array["n_node_samples"] = rng.integers(-5, 5, len(array))
    values = rng.normal(size=(len(nodes), 1, width))
    values[::3] = -0.0
    state.update(nodes=array, values=values, node_count=len(nodes), max_depth=depth)
    tree.__setstate__(state)
    return tree


GROWN = {
    "deep": (DecisionTreeRegressor(), {}),
    "shallow": (DecisionTreeClassifier(max_depth=3), {}),
    "leaf": (DecisionTreeClassifier(max_depth=1, min_samples_leaf=300), {}),
    "ties": (DecisionTreeClassifier(), {"ties": True}),
    "missing": (DecisionTreeClassifier(), {"missing": 0.2}),
    "extra": (ExtraTreeRegressor(), {}),
    "wide": (DecisionTreeRegressor(), {"d": 300}),
    "narrow": (DecisionTreeRegressor(), {"d": 1}),
    "leaves first": (DecisionTreeRegressor(max_leaf_nodes=20), {}),
    "pruned": (DecisionTreeRegressor(ccp_alpha=0.02), {}),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", GROWN)
def test_one_tree(kind, threads):
    model, shape = GROWN[kind]
    X, y = data(**shape)
    y = (y > 0) + (y > 1) if isinstance(model, DecisionTreeClassifier) else y
    tree = model.set_params(random_state=0).fit(X, y).tree_
    forest = Forest([tree])
    for n in ROWS:
        Q = X[:n]
        assert same_bits(forest.predict(Q, threads)[:, 0], tree.predict(Q))
        assert same_bits(forest.apply(Q, threads)[:, 0], tree.apply(Q))
        if np.isnan(Q).any() and not PATHS_KNOW_NAN:
            continue
        ours = _packed.decision_path(forest, [tree], Q, alone=True)
        theirs = tree.decision_path(Q)
        assert type(ours) is type(theirs)
        for name in ("data", "indices", "indptr"):
            assert same_bits(getattr(ours, name), getattr(theirs, name)), name


FORESTS = {
    "classifier": (RandomForestClassifier(7), {}),
    "missing": (RandomForestClassifier(7), {"missing": 0.1}),
    "regressor": (RandomForestRegressor(10), {}),
    "extra": (ExtraTreesClassifier(70), {"d": 300}),
    "one": (RandomForestClassifier(1), {}),
}


@pytest.mark.parametrize("kind", FORESTS)
def test_forests(kind):
    model, shape = FORESTS[kind]
    X, y = data(**shape)
    classifier = hasattr(model, "predict_proba")
    y = np.digitize(y, [-1, 0, 1]) if classifier else y
    model.set_params(random_state=0).fit(X, y)
    forest = _packed.packed_forest(model)
    for n in ROWS[1:]:
        Q = X[:n]
        expected = model.predict_proba(Q) if classifier else model.predict(Q)[:, None]
        for threads in (1, 2):
            assert same_bits(forest.predict(Q, threads, average=True)[:, 0], expected)
            assert same_bits(forest.apply(Q, threads), model.apply(Q))
            if classifier:
                codes = forest.classes(Q, threads)[:, 0]
                assert same_bits(model.classes_.take(codes), model.predict(Q))
        trees = [tree.tree_ for tree in model.estimators_]
        each = np.stack([tree.predict(Q).reshape(n, 1, -1) for tree in trees], axis=1)
        assert same_bits(forest.each(Q, 2), each)
        if np.isnan(Q).any() and not PATHS_KNOW_NAN:
            continue
        ours = _packed.decision_path(forest, trees, Q, alone=False)
        theirs = model.decision_path(Q)[0]
        assert type(ours) is type(theirs)
        for name in ("data", "indices", "indptr"):
            assert same_bits(getattr(ours, name), getattr(theirs, name)), name


@pytest.mark.parametrize("outputs", [1, 2, 5])
def test_many_outputs(outputs):
    X, _ = data(300, 4)
    rng = np.random.default_rng(0)
    targets = rng.normal(size=(300, outputs)).squeeze()
    regression = RandomForestRegressor(5, random_state=0).fit(X, targets)
    labels = rng.integers(0, [3, 2, 7, 60, 4][:outputs], (300, outputs))
    classes = RandomForestClassifier(5, random_state=0).fit(X, labels.squeeze())
    for model in (regression, classes):
        trees = [tree.tree_ for tree in model.estimators_]
        forest = Forest(trees)
        assert same_bits(forest.predict(X, 2), sum_naive(trees, X))
    assert same_bits(forest.classes(X, 2), classes.predict(X).reshape(300, outputs))


def test_trees_nobody_grew():
    rng = np.random.default_rng(0)
    special = np.float32([0, -0.0, np.nan, np.inf, -np.inf, 1e-45, 3.4e38, -3.4e38])
    for d, depth, width in ((1, 9, 1), (5, 12, 2), (256, 7, 3), (257, 7, 1), (20000, 6, 2)):
        trees = [random_tree(rng, d, depth, width) for _ in range(20)]
        X = rng.normal(size=(150, d)).astype(np.float32)
        pick = rng.random(X.shape) < 0.5
        X[pick] = rng.choice(special, pick.sum())
        forest = Forest(trees)
        leaves = np.stack([tree.apply(X) for tree in trees], axis=1)
        for rows in (X, X[:2], np.asfortranarray(X)):
            assert same_bits(forest.apply(rows, 2), leaves[: len(rows)])
            assert same_bits(forest.predict(rows, 2), sum_naive(trees, rows))


def test_wide_nodes():
    # More nodes than a node of 8 bytes can tell apart at so many features.
    X, y = data(40000, 3)
    tree = ExtraTreeRegressor(random_state=0).fit(X, np.arange(len(y))).tree_
    columns = np.array([70000, 3, 16384])
    forest = Forest([tree, tree], features=[columns] * 2, n_features=70001)
    rows, rest = X[:40], sp.csr_array(X[:40])
    wide = sp.csr_matrix((rest.data, columns[rest.indices], rest.indptr), shape=(40, 70001))
    assert same_bits(forest.apply(wide, 1)[:, 1], tree.apply(rows))
    assert same_bits(forest.apply(wide.toarray(), 1)[:, 1], tree.apply(rows))


@pytest.mark.parametrize("d", [30, 3000, 40000])
def test_sparse_rows(d):
    X = sp.random_array((300, d), density=0.9 if d < 99 else 60 / d, dtype=np.float32, rng=0)
    X = with_short_indices(X.tocsr())
    y = np.asarray(X[:, :20].sum(axis=1)).ravel()
    model = RandomForestRegressor(20, max_features=0.2, random_state=0).fit(X, y)
    forest = _packed.packed_forest(model)
    queries = [X, X[:1], X[:40].tocsc().tocsr(), sp.csr_array((3, d), dtype=np.float32)]
    with_nan = X[:50].copy()
    with_nan.data[::3] = np.nan
    twice = sp.csr_array((np.float32([1, 2, 3]), [1, 1, 0], [0, 2, 3]), shape=(2, d))
    for Q in map(with_short_indices, (*queries, with_nan, twice)):
        trees = [tree.tree_ for tree in model.estimators_]
        assert same_bits(forest.apply(Q, 2), np.stack([t.apply(Q) for t in trees], axis=1))
        assert same_bits(forest.predict(Q, 2), sum_naive(trees, Q))


def test_sparse_rows_that_lead_out():
    X, y = data()
    forest = Forest([DecisionTreeRegressor().fit(X, y).tree_])
    for indices, indptr in (([0, 9], [0, 2]), ([-1, 0], [0, 2]), ([0, 1], [0, 5]), ([0], [1, 1])):
        Q = sp.csr_matrix((1, 6), dtype=np.float32)
        Q.data = np.ones(len(indices), np.float32)
        Q.indices, Q.indptr = np.int32(indices), np.int32(indptr)
        with pytest.raises(ValueError, match="not a valid CSR"):
            forest.apply(Q, 1)


def test_same_bits_for_every_instruction_set_and_number_of_threads(tmp_path):
    X, y = data(3000, 40, missing=0.01)
    model = RandomForestRegressor(20, random_state=0, n_jobs=2).fit(X, y)
    trees, out = [tree.tree_ for tree in model.estimators_], tmp_path / "sums.npy"
    expected = sum_naive(trees, X)
    (tmp_path / "trees.pickle").write_bytes(pickle.dumps((trees, X)))
    script = (
        "import pickle, sys, numpy as np; from fastml._native.forest import Forest\n"
        "trees, X = pickle.load(open(sys.argv[1], 'rb'))\n"
        "np.save(sys.argv[2], [Forest(trees, t).predict(X, t) for t in (1, 2, 3)])"
    )
    for isa in ("baseline", "avx2", "avx512"):
        subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / "trees.pickle"), str(out)],
            env={**os.environ, "FASTML_ISA": isa},
            check=True,
        )
        assert all(same_bits(sums, expected) for sums in np.load(out))


# -- trees that must not be walked


def corrupted(tree, **changes):
    """`tree` with nodes changed: `field=(node, value)`."""
    state = tree.__getstate__()
    nodes = state["nodes"].copy()
    for field, (node, value) in changes.items():
        nodes[field][node] = value
    other = Tree(tree.n_features, tree.n_classes, tree.n_outputs)
    other.__setstate__(dict(state, nodes=nodes))
    return other


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"left_child": (0, 0)}, "node 0 has a child that is not a later node"),
        ({"right_child": (0, 10**9)}, "node 0 has a child that is not a later node"),
        ({"left_child": (0, -5)}, "node 0 has a child that is not a later node"),
        ({"right_child": (0, 1)}, "node 0 has a child that another node has too"),
        ({"left_child": (1, 4), "right_child": (1, 4)}, "node 1 has a child that another"),
        ({"left_child": (2, 4), "right_child": (1, 4)}, "has a child that another node has too"),
        ({"left_child": (0, -1)}, "node 0 has one child"),
        ({"right_child": (1, -1)}, "node 1 has one child"),
        ({"feature": (0, 6)}, "node 0 splits on a feature that the tree has not"),
        ({"feature": (1, -2)}, "node 1 splits on a feature that the tree has not"),
        ({"threshold": (0, np.nan)}, "node 0 has a threshold of NaN"),
    ],
)
def test_corrupted_nodes(change, message):
    X, y = data()
    good = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, y).tree_
    with pytest.raises(ValueError, match=f"tree 1 is not valid: .*{message}"):
        Forest([good, corrupted(good, **change)], 2)


def test_corrupted_shapes():
    X, y = data()
    tree = DecisionTreeRegressor(max_depth=4).fit(X, y).tree_
    state = tree.__getstate__()
    other = Tree(6, tree.n_classes, 1)
    other.__setstate__(state)
    other.__setstate__(dict(state, node_count=10**6))
    with pytest.raises(ValueError, match="1000000 nodes and room for"):
        Forest([other])
    empty = Tree(6, tree.n_classes, 1)
    for bad in ([empty], [tree, empty]):
        with pytest.raises(ValueError, match="not valid"):
            Forest(bad)
    two = DecisionTreeRegressor(max_depth=2).fit(X, np.stack([y, y], axis=1)).tree_
    fewer = DecisionTreeRegressor(max_depth=2).fit(X[:, :3], y).tree_
    for trees, message in (([tree, two], r"and not \(\d+, 1, 1\)"), ([tree, fewer], "3 features")):
        with pytest.raises(ValueError, match=message):
            Forest(trees)
    with pytest.raises(ValueError, match="needs a tree"):
        Forest([])
    for columns in ([0, 1], [0, 1, 2, 3, 4, 9], [0, 1, 2, 3, 4, -1]):
        with pytest.raises(ValueError, match="features must name 6 columns"):
            Forest([tree], features=[columns], n_features=9)
    with pytest.raises(ValueError, match="its values are of shape"):
        Forest([tree], values=[np.zeros((3, 1))])


def test_leaves_made_in_place():
    # Children set to -1 cut a branch off: the nodes below are no longer reached, nor checked.
    X, y = data()
    tree = DecisionTreeRegressor(random_state=0).fit(X, y).tree_
    tree.children_left[1] = tree.children_right[1] = -1
    forest = Forest([tree])
    assert same_bits(forest.predict(X, 1)[:, 0], tree.predict(X))


def test_queries_that_do_not_fit():
    X, y = data()
    forest = Forest([DecisionTreeRegressor().fit(X, y).tree_])
    for Q in (X.astype(np.float64), X[:, :5], X[0], sp.csr_array(X[:, :5]), sp.csc_array(X)):
        with pytest.raises(ValueError, match="X must"):
            forest.predict(Q, 1)
    read_only = X[::2].copy()
    read_only.flags.writeable = False
    strided = X[::2]
    assert same_bits(forest.predict(read_only, 1), forest.predict(strided, 1))


# -- ensembles


@pytest.mark.parametrize("features", [1.0, 0.5])
def test_isolation_forest(features):
    X, _ = data(500, missing=0.05)
    model = IsolationForest(n_estimators=30, max_features=features, random_state=0).fit(X)
    lengths = _packed.packed_isolation(model).predict(X, 2)[:, 0, 0]
    expected = np.zeros(len(X))
    for k, (tree, columns) in enumerate(
        zip(model.estimators_, model.estimators_features_, strict=True)
    ):
        leaves = tree.tree_.apply(X[:, columns])
        path, average = model._decision_path_lengths[k], model._average_path_length_per_tree[k]
        expected += path[leaves] + average[leaves] - 1.0
    assert same_bits(lengths, expected)


@pytest.mark.parametrize("features", [1.0, 0.5])
def test_bagging(features):
    X, y = data(200)
    y = np.digitize(y, [-2, 0, 2])
    tree = DecisionTreeClassifier(max_depth=4)
    model = BaggingClassifier(tree, 12, max_features=features, random_state=0).fit(X, y)
    ours = _packed.packed_bagging(model).predict(X, 2, average=True)[:, 0]
    assert same_bits(ours, model.predict_proba(X))
    model = BaggingRegressor(DecisionTreeRegressor(), max_features=features, random_state=0)
    model.fit(X, y)
    ours = _packed.packed_bagging(model).predict(X, 2, average=True)[:, 0, 0]
    assert same_bits(ours, model.predict(X))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, sp.csc_matrix])
@pytest.mark.parametrize("value", [np.inf, 1e300])
def test_bagging_minds_no_column_that_no_tree_was_given(value, make):
    X, y = data(50)
    X = X.astype(np.float64)
    drawn = {"n_estimators": 2, "max_features": 1, "random_state": 0}
    theirs = BaggingRegressor(**drawn).fit(make(X), y)
    unseen = np.setdiff1d(np.arange(X.shape[1]), np.concatenate(theirs.estimators_features_))
    X[3, unseen] = value
    theirs = BaggingRegressor(**drawn).fit(make(X), y)
    ours = fastml.ensemble.BaggingRegressor(**drawn).fit(make(X), y)
    assert same_bits(ours.predict(make(X)), theirs.predict(make(X)))
    X[3] = value
    with pytest.raises(ValueError, match="infinity or a value too large"):
        ours.predict(make(X))


@pytest.mark.parametrize("cuts", [[0], [-1, 0, 1]])
def test_boosting(cuts):
    X, y = data()
    y = np.digitize(y, cuts)
    stump = DecisionTreeClassifier(max_depth=2)
    model = AdaBoostClassifier(stump, n_estimators=15, random_state=0).fit(X, y)
    sums = _packed.packed_boosting(model).predict(X, 2)[:, 0] / model.estimator_weights_.sum()
    if len(cuts) == 1:
        sums[:, 0] *= -1
        sums = sums.sum(axis=1)
    assert same_bits(sums, model.decision_function(X))


# -- kept beside the model


def test_packed_once_and_anew():
    X, y = data()
    model = RandomForestRegressor(4, random_state=0, warm_start=True).fit(X, y)
    before = dict(vars(model))
    first = _packed.packed_forest(model)
    assert _packed.packed_forest(model) is first
    assert vars(model) == before
    for other in (copy.deepcopy(model), copy.copy(model), pickle.loads(pickle.dumps(model))):
        assert _packed.packed_forest(other) is not first
    model.set_params(n_estimators=6).fit(X, y)
    more = _packed.packed_forest(model)
    assert more.n_trees == 6
    model.estimators_[0].fit(X[:50], y[:50])
    assert _packed.packed_forest(model) is not more
    beside.forget(model)
    count = len(beside._entries)
    assert _packed.packed_forest(model) is _packed.packed_forest(model)
    assert len(beside._entries) == count + 1
    del model
    assert len(beside._entries) == count


def test_weights_of_boosting_pack_anew():
    X, y = data()
    model = AdaBoostClassifier(n_estimators=3, random_state=0).fit(X, y > 0)
    first = _packed.packed_boosting(model)
    assert _packed.packed_boosting(model) is first
    model.estimator_weights_ *= 2
    assert _packed.packed_boosting(model) is not first


def test_threads_pack_at_a_time():
    X, y = data(2000)
    model = RandomForestRegressor(20, random_state=0).fit(X, y)
    expected, found = model.predict(X), []

    def predict():
        found.append(_packed.packed_forest(model).predict(X, 2, average=True)[:, 0, 0])

    threads = [threading.Thread(target=predict) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert all(same_bits(each, expected) for each in found)
