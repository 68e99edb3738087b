"""Forests over categorical features: growing them, and predicting.

fastml's split a feature into two sets of its levels. scikit-learn's have no such splits, so its
rows are encoded first: a column for each level, or the levels' numbers as if they had an order.
Encoding is part of the work. Quality is the root of the mean square error on rows held out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..contest import Case, Contestant
from .trees import HELD_OUT


class Data(NamedTuple):
    X: np.ndarray  # numbers of levels
    y: np.ndarray
    Q: np.ndarray
    answers: np.ndarray
    trees: int


def levels_with_effects(n: int, d: int, levels: int, trees: int, work: str) -> Data:
    """Rows of levels, two of which act together; whatever their number, a level may do anything."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, levels, (n + HELD_OUT, d))
    effects = rng.normal(size=(d, levels))
    acts = [effects[j, X[:, j]] for j in range(d)]
    y = acts[0] + acts[1] * acts[2] + rng.normal(size=len(X)) / 2
    return Data(X[:n], y[:n], X[n:], y[n:], trees)


def _model(data: Data, threads: int, encoding: str | None) -> Any:
    parameters = {"n_estimators": data.trees, "n_jobs": threads, "random_state": 0}
    if encoding is None:
        from fastml.ensemble import CategoricalForestRegressor

        which = np.arange(data.X.shape[1])
        return CategoricalForestRegressor(categorical_features=which, **parameters)
    from sklearn import preprocessing
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.pipeline import make_pipeline

    encoder = getattr(preprocessing, encoding)()
    return make_pipeline(encoder, RandomForestRegressor(**parameters))


def _fit(data: Data, threads: int, *, encoding: str | None = None) -> Callable[[], Any]:
    return partial(_model(data, threads, encoding).fit, data.X, data.y)


def _predict(data: Data, threads: int, *, encoding: str | None = None) -> Callable[[], Any]:
    return partial(_model(data, threads, encoding).fit(data.X, data.y).predict, data.X)


def error(data: Data, result: Any) -> float:
    """Of a fitted model on the rows held out; of predictions, on those that it was fitted to."""
    if isinstance(result, np.ndarray):
        return float(np.sqrt(np.mean((result - data.y) ** 2)))
    return float(np.sqrt(np.mean((result.predict(data.Q) - data.answers) ** 2)))


def case(n: int, d: int, levels: int = 30, trees: int = 20, work: str = "fit") -> Case:
    """`n` rows of `d` features with so many levels; `work` is fit or predict."""
    prepare = {"fit": _fit, "predict": _predict}[work]
    ordinal, one_hot = (partial(prepare, encoding=f"{e}Encoder") for e in ("Ordinal", "OneHot"))
    peers = (
        Contestant("scikit-learn, levels in order", ordinal, "scikit-learn"),
        Contestant("scikit-learn, one-hot", one_hot, "scikit-learn"),
        Contestant("fastml", prepare, "fastml"),
    )
    params = {"n": n, "d": d, "levels": levels, "trees": trees, "work": work}
    return Case(
        "categorical", params, levels_with_effects, peers, error, "error", rtol=0.1, atol=0.1
    )


CASES = (case(5_000, 8), case(5_000, 8, work="predict"))
