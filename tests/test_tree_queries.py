"""A few rows to predict for: looked at once, and otherwise checked as scikit-learn checks them."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.ensemble
import sklearn.tree

import fastml.ensemble
import fastml.tree
from fastml.tree._queries import plain_query

D = 4
RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, D))
Y = (X[:, 0] + X[:, 1] > 0).astype(int)
MODELS = [
    ("tree", "DecisionTreeClassifier", {}),
    ("tree", "DecisionTreeRegressor", {}),
    ("tree", "ExtraTreeRegressor", {}),
    ("ensemble", "RandomForestClassifier", {"n_estimators": 5}),
    ("ensemble", "ExtraTreesRegressor", {"n_estimators": 5}),
    ("ensemble", "BaggingClassifier", {"n_estimators": 5}),
    ("ensemble", "BaggingRegressor", {"n_estimators": 5, "max_features": 2}),
    ("ensemble", "AdaBoostClassifier", {"n_estimators": 5}),
    ("ensemble", "AdaBoostRegressor", {"n_estimators": 5}),
    ("ensemble", "IsolationForest", {"n_estimators": 5}),
]
METHODS = ("predict", "predict_proba", "apply", "decision_function", "score_samples")
largest = float(np.finfo(np.float32).max)


def with_entry(value):
    row = X[:1].copy()
    row[0, 2] = value
    return row


QUERIES = {
    "row": X[:1],
    "rows": X[:7],
    "single": X[:7].astype("f"),
    "columns first": np.asfortranarray(X[:7]),
    "strided": np.repeat(X[:14], 2, axis=1)[::2, ::2],
    "swapped": X[:7].astype(">f8"),
    "integers": np.arange(2 * D).reshape(2, D),
    "list": X[:2].tolist(),
    "largest": with_entry(largest),
    "rounds to infinity": with_entry(largest * (1 + 1e-7)),
    "too large": with_entry(1e39),
    "infinite": with_entry(-np.inf),
    "missing": with_entry(np.nan),
    "tiny": with_entry(1e-42),
    "no rows": X[:0],
    "narrow": X[:1, :3],
    "wide": np.c_[X, X][:1],
    "flat": X[0],
    "three axes": X[None],
    "masked": np.ma.masked_array(X[:2], X[:2] > 0),
    "frame": pd.DataFrame(X[:3], columns=list("abcd")),
    "words": np.array([["a"] * D]),
}


def fitted(library, module, name, params, data):
    model = getattr(getattr(library, module), name)(random_state=0, **params)
    return model.fit(data, Y)


def outcome(model, method, query):
    """The result or the error, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = getattr(model, method)(query)
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
    return result, sorted({str(warning.message) for warning in caught})


@pytest.mark.parametrize("names", [None, list("abcd")], ids=["array", "frame"])
@pytest.mark.parametrize(("module", "name", "params"), MODELS, ids=[name for _, name, _ in MODELS])
def test_queries(module, name, params, names):
    data = X if names is None else pd.DataFrame(X, columns=names)
    ours, theirs = (fitted(library, module, name, params, data) for library in (fastml, sklearn))
    for method in METHODS:
        if not hasattr(theirs, method):
            continue
        for kind, query in QUERIES.items():
            result, warned = outcome(ours, method, query)
            expected, expected_warnings = outcome(theirs, method, query)
            assert warned == expected_warnings, (method, kind)
            if isinstance(expected, str):
                assert result == expected, (method, kind)
                continue
            assert result.dtype == expected.dtype, (method, kind)
            # Sums of other orders than scikit-learn's, in the last digits.
            np.testing.assert_allclose(result, expected, rtol=1e-13, err_msg=f"{method} {kind}")


@pytest.mark.parametrize(("module", "name", "params"), MODELS, ids=[name for _, name, _ in MODELS])
def test_queries_before_fit(module, name, params):
    ours, theirs = (getattr(getattr(m, module), name)(**params) for m in (fastml, sklearn))
    result, _ = outcome(ours, "predict", X[:1])
    assert result.startswith("NotFittedError")
    assert result == outcome(theirs, "predict", X[:1])[0]


def test_what_is_looked_at_once():
    tree = fastml.tree.DecisionTreeRegressor().fit(X, Y)
    plain = {kind for kind, query in QUERIES.items() if plain_query(tree, query) is not None}
    assert plain == {"row", "rows", "single", "columns first", "strided", "largest", "tiny"}
    assert plain_query(tree, np.zeros((2000, D))) is None
