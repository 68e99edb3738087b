"""Predicting with trees: a forest or one tree, many rows or a single one.

fastml's trees are scikit-learn's, and so are its answers, to the last bit. scikit-learn-intelex
grows and walks its own. Quality is the error on the rows: of classes, or the root of the mean
square.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ..contest import Case, Contestant

GROWN_ON = 10_000


class Data(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    Q: np.ndarray
    answers: np.ndarray
    kind: str
    trees: int
    depth: int | None


def rows(n: int, d: int, trees: int, kind: str, depth: int | None, grown_on: int) -> Data:
    """A noisy product; classes are the signs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(grown_on + n, d)).astype(np.float32)
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=len(X)).astype(np.float32)
    if kind == "classes":
        y = (y > 0).astype(np.float32)
    return Data(X[:grown_on], y[:grown_on], X[grown_on:], y[grown_on:], kind, trees, depth)


def error(data: Data, result: np.ndarray) -> float:
    if data.kind == "classes":
        return float(np.mean(result != data.answers))
    return float(np.sqrt(np.mean((result - data.answers) ** 2)))


def _grown(data: Data, threads: int, library: str) -> Any:
    parameters = {"max_depth": data.depth, "random_state": 0}
    name = "Classifier" if data.kind == "classes" else "Regressor"
    if data.trees == 1:
        model = getattr(import_module(f"{library}.tree"), f"DecisionTree{name}")(**parameters)
    else:
        model = getattr(import_module(f"{library}.ensemble"), f"RandomForest{name}")(
            data.trees, max_features="sqrt", n_jobs=threads, **parameters
        )
    return model.fit(data.X, data.y)


def _predict(data: Data, threads: int, *, library: str) -> Callable[[], Any]:
    if library == "sklearnex":  # oneDAL has threads of its own and reads no variable
        import_module("daal4py").daalinit(threads)
    return partial(_grown(data, threads, library).predict, data.Q)


def case(
    n: int,
    d: int,
    trees: int = 100,
    kind: str = "classes",
    depth: int | None = None,
    grown_on: int = GROWN_ON,
) -> Case:
    """`n` rows through `trees` of at most `depth`, grown on `grown_on` others."""
    peers = [
        Contestant("scikit-learn", partial(_predict, library="sklearn"), "scikit-learn"),
        Contestant("fastml", partial(_predict, library="fastml"), "fastml"),
    ]
    if trees > 1:
        peers.append(
            Contestant("sklearnex", partial(_predict, library="sklearnex"), "scikit-learn-intelex")
        )
    params = {"n": n, "d": d, "trees": trees, "kind": kind, "depth": depth, "grown_on": grown_on}
    return Case("forest", params, rows, tuple(peers), error, "error", rtol=0.1, atol=0.1)


CASES = (
    case(20_000, 20),
    case(100_000, 10, trees=1, kind="numbers"),
    case(1, 20),
    case(1, 20, trees=1, kind="numbers"),
)
