"""The trees are scikit-learn 1.9's, bit for bit.

A case is a seed: it draws a kind of data, a tree or forest and its parameters. Each test runs a
few hundred small ones; `python tests/test_trees.py` runs as many as you like, of up to a
million rows::

    python tests/test_trees.py --cases 100000 --rows 5000
    python tests/test_trees.py --cases 50 --rows 1000000 --at-least 100000

It prints every case that differs, with the seed that makes it again.
"""

import argparse
import sys
import warnings

import numpy as np
import pytest
import sklearn
import sklearn.ensemble
import sklearn.tree
from scipy import sparse

import fastml
import fastml.ensemble
import fastml.tree
from fastml._native import trees as native
from fastml._runtime import config

pytestmark = [
    pytest.mark.skipif(
        sklearn.__version__.split(".")[:2] != ["1", "9"], reason="scikit-learn 1.9's trees"
    ),
    pytest.mark.filterwarnings("ignore"),
]

ARRAYS = (
    "children_left",
    "children_right",
    "feature",
    "threshold",
    "impurity",
    "n_node_samples",
    "weighted_n_node_samples",
    "value",
    "missing_go_to_left",
)


def _near(rng, n):
    """Values a little more, or a little less, than 1e-7 from one another."""
    return 1 + rng.integers(0, 40, n) * rng.choice([3e-8, 6e-8, 1.2e-7])


COLUMNS = {
    "continuous": lambda rng, n: rng.normal(size=n),
    "integers": lambda rng, n: rng.integers(0, 50, n),
    "levels": lambda rng, n: rng.integers(0, 4, n),
    "binary": lambda rng, n: rng.random(n) < 0.3,
    "mostly zero": lambda rng, n: rng.normal(size=n) * (rng.random(n) < 0.1),
    "constant": lambda rng, n: np.full(n, 2.5),
    "near": _near,
    "signed zeros": lambda rng, n: rng.choice([-0.0, 0.0, 1.0], n),
    "wide": lambda rng, n: rng.normal(size=n) * 10.0 ** rng.integers(-30, 30, n),
    "sorted": lambda rng, n: np.arange(n) * rng.choice([-1, 1]),
    "organ pipe": lambda rng, n: np.minimum(np.arange(n), np.arange(n)[::-1]),
}


def _columns(rng, n, d):
    kinds = list(COLUMNS)
    if rng.random() < 0.5:  # all columns alike
        kinds = [kinds[rng.integers(len(kinds))]]
    X = np.stack([COLUMNS[kinds[rng.integers(len(kinds))]](rng, n) for _ in range(d)], axis=1)
    return X.astype(np.float32)


def draw_rows(rng, n, missing):
    d = int(rng.integers(1, 9))
    X = _columns(rng, n, d)
    if missing:
        X[rng.random((n, d)) < rng.choice([0.05, 0.5])] = np.nan
        X[:, rng.integers(d)] = np.nan if rng.random() < 0.1 else 0
    return np.asfortranarray(X) if rng.random() < 0.3 else X


def draw_sparse_rows(rng, n):
    """CSC or CSR, with few zeros or many, some of them among the entries."""
    d = int(rng.integers(1, 30))
    X = _columns(rng, n, d)
    X[rng.random((n, d)) >= rng.choice([0.01, 0.1, 0.5, 1])] = 0
    X = (sparse.csc_matrix if rng.random() < 0.7 else sparse.csr_matrix)(X)
    X.data[rng.random(X.nnz) < rng.choice([0, 0.2])] = 0
    return X


def draw_targets(rng, X, classification, criterion, outputs):
    n = X.shape[0]
    if sparse.issparse(X):
        X = X.toarray()
    score = np.nan_to_num(X.astype(np.float64)).clip(-9, 9) @ rng.normal(size=X.shape[1])
    columns = []
    for _ in range(outputs):
        noisy = score + rng.normal(size=n) * rng.choice([0.1, 1, 10])
        if classification:
            n_classes = int(rng.choice([1, 2, 2, 3, 7, 8, 9]))
            cuts = np.quantile(noisy, np.linspace(0, 1, n_classes + 1)[1:-1])
            columns.append(np.digitize(noisy, cuts))
        elif rng.random() < 0.4:
            columns.append(np.round(noisy))
        else:
            columns.append(noisy)
    y = np.stack(columns, axis=1) if outputs > 1 else columns[0]
    if criterion == "poisson":
        y = np.abs(y) + (0 if np.any(y) else 1)
    return y


def draw_weights(rng, n):
    kind = rng.integers(5)
    if kind == 0:
        return rng.random(n)
    if kind == 1:
        return rng.integers(0, rng.choice([4, 60]), n)
    if kind == 2:
        return rng.random(n) * (rng.random(n) < 0.6) + np.eye(n)[0] if n < 5000 else rng.random(n)
    return None


def draw_limits(rng, n):
    """The parameters that both trees and forests have."""
    params = {
        "max_depth": rng.choice([1, 3, 8]).item(),
        "min_samples_split": rng.choice([2, 5, 20]).item(),
        "min_samples_leaf": [1, 3, 0.02][rng.integers(3)],
        "min_weight_fraction_leaf": rng.choice([0.01, 0.1]).item(),
        "max_features": ["sqrt", "log2", None, 0.6, 1][rng.integers(5)],
        "max_leaf_nodes": int(rng.integers(2, 30)),
        "min_impurity_decrease": rng.choice([1e-7, 1e-3]).item(),
        "ccp_alpha": rng.choice([1e-4, 1e-2]).item(),
    }
    return {name: value for name, value in params.items() if rng.random() < 0.25}


def draw_case(seed, family, rows, at_least=1):
    """Return the name of a class, its parameters and what to fit it to."""
    rng = np.random.default_rng([seed, *family.encode()])
    n = max(at_least, int(np.exp(rng.uniform(0, np.log(rows)))))
    classification = bool(rng.integers(2))
    role = "Classifier" if classification else "Regressor"
    names = {
        "best": "DecisionTree",
        "random": "ExtraTree",
        "forest": ["RandomForest", "ExtraTrees"][rng.integers(2)],
    }
    of_sparse = family == "sparse"
    if of_sparse:
        family = list(names)[rng.integers(3)]
    name, is_forest = names[family] + role, family == "forest"
    criteria = ["gini", "entropy"] if classification else ["squared_error", "poisson"]
    if rng.random() < 0.15 and not classification and n <= 3000:
        criteria = ["absolute_error"]
    params = draw_limits(rng, n) | {
        "criterion": criteria[rng.integers(len(criteria))],
        "random_state": int(rng.integers(1000)),
    }
    X = draw_sparse_rows(rng, n) if of_sparse else draw_rows(rng, n, bool(rng.random() < 0.3))
    outputs = 1 if rng.random() < 0.8 else 2
    y = draw_targets(rng, X, classification, params["criterion"], outputs)
    binary = not classification or np.max(y) < 2
    if outputs == 1 and binary and rng.random() < 0.2 and params["criterion"] != "absolute_error":
        params["monotonic_cst"] = rng.integers(-1, 2, X.shape[1]).tolist()
    if classification and rng.random() < 0.2:
        params["class_weight"] = "balanced"
        if is_forest and rng.random() < 0.5:
            params["class_weight"] = "balanced_subsample"
    if is_forest:
        params |= {"n_estimators": 5, "bootstrap": bool(rng.integers(2)), "n_jobs": 2}
        if params["bootstrap"] and rng.random() < 0.3:
            params["max_samples"] = 0.5
    return name, params, X, y, draw_weights(rng, n)


def fit(library, name, params, X, y, weights):
    """Return the fitted trees, or the error."""
    module = library.ensemble if "Forest" in name or "Trees" in name else library.tree
    try:
        with warnings.catch_warnings(), fastml.config_context(strict=True):
            warnings.simplefilter("ignore")
            model = getattr(module, name)(**params).fit(X, y, sample_weight=weights)
    except ValueError as error:
        return str(error)
    return [tree.tree_ for tree in getattr(model, "estimators_", [model])]


def difference(case):
    """Say what of a case is not scikit-learn's; None if all is."""
    ours, theirs = fit(fastml, *case), fit(sklearn, *case)
    if isinstance(ours, str) or isinstance(theirs, str):
        return None if ours == theirs else f"{ours!r}, scikit-learn: {theirs!r}"
    for i, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        if mine.node_count != other.node_count or mine.max_depth != other.max_depth:
            return f"tree {i}: {mine.node_count} nodes, scikit-learn: {other.node_count}"
        for name in ARRAYS:
            a, b = getattr(mine, name), getattr(other, name)
            if not np.array_equal(a, b, equal_nan=True):
                node = int(np.flatnonzero((a != b).reshape(len(a), -1).any(axis=1))[0])
                return f"tree {i}, node {node}: {name} {a[node]}, scikit-learn: {b[node]}"
    return None


FAMILIES = {"best": 160, "random": 160, "forest": 80, "sparse": 160}


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("family", FAMILIES)
def test_same_trees(family, part):
    count = FAMILIES[family]
    for seed in range(part * count, (part + 1) * count):
        case = draw_case(seed, family, rows=1500)
        found = difference(case)
        assert found is None, f"seed {seed}: {case[:2]} X {case[2].shape}: {found}"


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("name", ["DecisionTreeRegressor", "ExtraTreeRegressor"])
def test_medians_where_half_of_the_weight_is_a_matter_of_rounding(name, outputs):
    """Sums of such weights depend on the order of the rows, and medians on them."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(np.exp(rng.uniform(1, 6)))
        X = rng.integers(0, 6, (n, 3)) if seed % 2 else rng.normal(size=(n, 3))
        y = rng.normal(size=(n, outputs)).round(1)
        params = {
            "criterion": "absolute_error",
            "max_depth": (None, 1)[seed % 2],
            "random_state": 0,
        }
        case = (name, params, X, y, rng.choice([0.1, 0.2, 0.3], n))
        found = difference(case)
        assert found is None, f"seed {seed}: {found}"


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", ["DecisionTreeClassifier", "DecisionTreeRegressor"])
def test_a_larger_tree(name, threads):
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=(30_000, 3)), rng.integers(0, 9, (30_000, 2))]
    score = X.sum(axis=1) + rng.normal(size=len(X))
    y = np.digitize(score, [0, 3]) if name.endswith("Classifier") else score
    with config.config_context(threads=threads):
        assert difference((name, {"random_state": 0}, X, y, None)) is None


def test_columns_take_as_few_bytes_as_they_can():
    n = 70_000
    rng = np.random.default_rng(0)
    X = np.empty((n, 4), dtype=np.float32)
    X[:, 0] = rng.integers(0, 2, n)
    X[:, 1] = np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 5000, n))
    X[:, 2] = np.arange(n)
    X[:, 3] = np.nan
    columns = native.Columns(X, ranks=True, n_threads=2)
    codes = n * (1 + 2 + 4 + 1)
    values = 4 * (2 + 5000 + n)
    assert columns.nbytes == codes + values
    assert columns.missing.tolist() == [False, True, False, True]
    assert native.Columns(X, ranks=False, n_threads=1).nbytes == X.nbytes


def main():
    parser = argparse.ArgumentParser(description="Compare trees with scikit-learn's, at length.")
    parser.add_argument("--cases", type=int, default=1000, help="of each family")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--rows", type=int, default=5000, help="at most")
    parser.add_argument("--at-least", type=int, default=1, help="so many rows")
    parser.add_argument("--families", nargs="*", default=list(FAMILIES))
    options = parser.parse_args()
    np.seterr(all="ignore")
    differing = 0
    for seed in range(options.first, options.first + options.cases):
        for family in options.families:
            case = draw_case(seed, family, options.rows, options.at_least)
            if (found := difference(case)) is not None:
                differing += 1
                print(f"{family} {seed}: {case[:2]}, X {case[2].shape}: {found}", flush=True)
    total = options.cases * len(options.families)
    print(f"{differing} of {total} cases differ")
    return min(differing, 1)


if __name__ == "__main__":
    sys.exit(main())
