"""Growing trees: one, forests, bagged and boosted ones.

fastml's are scikit-learn's own trees, so the quality is the same to the last digit: the error on
rows held out, of classes, or the root of the mean square. scikit-learn-intelex grows forests of
its own, by default after rounding each feature to 256 bins; "exact bins" has as many as rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from ..contest import Case, Contestant

HELD_OUT = 2_000
DENSITY = 0.05  # of sparse rows


class Data(NamedTuple):
    X: Any
    y: np.ndarray
    Q: Any
    answers: np.ndarray
    model: str
    trees: int


def _features(kind: str, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    if kind == "binary":
        return rng.integers(0, 2, (n, d)).astype(np.float32)
    X = rng.normal(size=(n, d)).astype(np.float32)
    if kind == "sparse":
        return np.where(rng.random(size=(n, d)) < DENSITY, X, np.float32(0))
    if kind == "integers":
        return np.round(4 * X)
    if kind == "mixed":
        X[:, ::2] = np.round(4 * X[:, ::2])
    return X


def noisy_product(n: int, d: int, model: str, kind: str, trees: int) -> Data:
    """Rows, and a target that two of the features tell by their product; classes are the signs."""
    rng = np.random.default_rng(0)
    X = _features(kind, n + HELD_OUT, d, rng)
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=len(X)).astype(np.float32)
    if model.endswith("Classifier"):
        y = (y > np.median(y)).astype(np.int64)
    of_rows = csr_matrix if kind == "sparse" else np.asarray
    return Data(of_rows(X[:n]), y[:n], of_rows(X[n:]), y[n:], model, trees)


def error(data: Data, model: Any) -> float:
    """On the rows held out."""
    found = model.predict(data.Q)
    if data.model.endswith("Classifier"):
        return float(np.mean(found != data.answers))
    return float(np.sqrt(np.mean((found - data.answers) ** 2)))


def _fit(
    data: Data, threads: int, *, library: str, exact_bins: bool = False, **parameters: Any
) -> Callable[[], Any]:
    if library == "sklearnex":  # oneDAL has threads of its own and reads no variable
        import_module("daal4py").daalinit(threads)
    parameters["random_state"] = 0
    alone = data.model.startswith(("DecisionTree", "ExtraTreeC", "ExtraTreeR"))
    if not alone:
        parameters["n_estimators"] = data.trees
    if not alone and not data.model.startswith("AdaBoost"):
        parameters["n_jobs"] = threads
    if exact_bins:
        parameters["max_bins"] = data.X.shape[0]
    module = import_module(f"{library}.{'tree' if alone else 'ensemble'}")
    estimator = getattr(module, data.model)(**parameters)
    return partial(estimator.fit, data.X, data.y)


def case(
    n: int,
    d: int,
    model: str = "RandomForestClassifier",
    kind: str = "continuous",
    trees: int = 100,
    **parameters: Any,
) -> Case:
    """`model` of so many trees on n rows of d features, which are of a `kind`."""
    fit = partial(_fit, **parameters)
    peers = [
        Contestant("scikit-learn", partial(fit, library="sklearn"), "scikit-learn"),
        Contestant("fastml", partial(fit, library="fastml"), "fastml"),
    ]
    if model.startswith(("RandomForest", "ExtraTrees")) and kind != "sparse":
        theirs = partial(fit, library="sklearnex")
        exact = partial(theirs, exact_bins=True)
        peers.append(Contestant("sklearnex", theirs, "scikit-learn-intelex"))
        peers.append(Contestant("sklearnex, exact bins", exact, "scikit-learn-intelex"))
    params = {"n": n, "d": d, "model": model, "kind": kind, "trees": trees}
    return Case("trees", params, noisy_product, tuple(peers), error, "error", rtol=0.1, atol=0.1)


CASES = (
    case(20_000, 16),
    case(20_000, 16, "RandomForestRegressor", "integers", trees=20),
    case(100_000, 10, "DecisionTreeRegressor"),
)
