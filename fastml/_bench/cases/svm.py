"""Kernel machines: fitting them, and predicting.

Fits are compared by their dual objective, as -log of it: everybody stops at the same `tol`, and
what counts is how far they came. Predictions are compared by their error on rows held out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ..contest import Case, Contestant

HELD_OUT = 5_000


class Data(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    Q: np.ndarray
    answers: np.ndarray
    model: str
    params: dict[str, Any]


def groups(
    n: int,
    d: int,
    k: int,
    noise: float,
    model: str,
    dtype: str,
    batch: int = HELD_OUT,
    **params: Any,
) -> Data:
    """Classes of two groups each, mixed by the noise; for regression a smooth function and it."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(2 * k, d))
    group = rng.integers(2 * k, size=n + HELD_OUT)
    X = centers[group] + noise * rng.normal(size=(len(group), d))
    y: np.ndarray = group % k
    if model.endswith("SVR"):
        y = np.sin(X[:, 0]) + X[:, 1] / 2 + 0.2 * noise * rng.normal(size=len(X))
    X = X.astype(dtype)
    return Data(X[:n], y[:n], X[n : n + batch], y[n : n + batch], model, params)


def _estimator(data: Data, threads: int, library: str) -> Any:
    if library == "sklearnex":  # oneDAL has threads of its own and reads no variable
        import_module("daal4py").daalinit(threads)
    return getattr(import_module(f"{library}.svm"), data.model)(**data.params)


def fit(data: Data, threads: int, *, library: str) -> Callable[[], Any]:
    estimator = _estimator(data, threads, library)
    if data.model == "OneClassSVM":
        return partial(estimator.fit, data.X)
    return partial(estimator.fit, data.X, data.y)


def predict(data: Data, threads: int, *, library: str) -> Callable[[], Any]:
    return partial(fit(data, threads, library=library)().predict, data.Q)


def _square(model: Any, rows: np.ndarray, coef: np.ndarray) -> float:
    """|w|², a thousand rows of the Gram matrix at a time."""
    from sklearn.metrics.pairwise import pairwise_kernels

    vectors = np.asarray(model.support_vectors_, dtype=np.float64)[rows]
    gamma = getattr(model, "_gamma", None) or model._onedal_estimator.gamma
    params = {"gamma": float(gamma), "coef0": model.coef0, "degree": model.degree}
    total = 0.0
    for i in range(0, len(rows), 1000):
        part = slice(i, i + 1000)
        K = pairwise_kernels(
            vectors[part], vectors, metric=model.kernel, filter_params=True, **params
        )
        total += float(coef[part] @ K @ coef)
    return total


def dual(data: Data, model: Any) -> float:
    """-log of the dual objective, which is to be large; that of OneClassSVM is to be small."""
    coef = np.asarray(model.dual_coef_, dtype=np.float64)
    rows = np.arange(coef.shape[1])
    if data.model == "OneClassSVM":
        return float(np.log(_square(model, rows, coef[0]) / 2))
    if data.model.endswith("SVR"):
        linear = coef[0] @ data.y[model.support_]
        linear -= getattr(model, "epsilon", 0.0) * abs(coef[0]).sum()
        return -float(np.log(linear - _square(model, rows, coef[0]) / 2))
    starts = np.concatenate([[0], np.cumsum(model.n_support_)])
    objective = 0.0
    for i, j in combinations(range(len(model.classes_)), 2):
        first, second = rows[starts[i] : starts[i + 1]], rows[starts[j] : starts[j + 1]]
        alpha = np.concatenate([coef[j - 1, first], coef[i, second]])
        here = np.concatenate([first, second])
        objective += abs(alpha).sum() - _square(model, here, alpha) / 2
    return -float(np.log(objective))


def error(data: Data, found: np.ndarray) -> float:
    """On the rows held out."""
    if data.model.endswith("SVC"):
        return float(np.mean(found != data.answers))
    return float(np.sqrt(np.mean((found - data.answers) ** 2)))


def held_out(data: Data, model: Any) -> float:
    return error(data, model.predict(data.Q))


def case(
    work: str,
    n: int,
    d: int,
    k: int = 2,
    noise: float = 1.0,
    model: str = "SVC",
    dtype: str = "float64",
    **params: Any,
) -> Case:
    """`work` ("fit" or "predict") of a model on n rows of d features in k classes."""
    run = {"fit": fit, "predict": predict}[work]
    peers = [
        Contestant("scikit-learn", partial(run, library="sklearn"), "scikit-learn"),
        Contestant("fastml", partial(run, library="fastml"), "fastml"),
    ]
    if model != "OneClassSVM":  # it has none
        theirs = partial(run, library="sklearnex")
        peers.append(Contestant("sklearnex", theirs, "scikit-learn-intelex"))
    shape = {"n": n, "d": d, "k": k, "noise": noise, "model": model, "dtype": dtype}
    name, contestants = f"svm-{work}", tuple(peers)
    if work == "predict":
        return Case(name, shape | params, groups, contestants, error, "error", atol=2e-3)
    if model.startswith("Nu"):  # its objective has other units
        return Case(name, shape | params, groups, contestants, held_out, "error", atol=5e-3)
    return Case(name, shape | params, groups, contestants, dual, "-log dual", rtol=0, atol=1e-4)


CASES = (
    case("fit", 5_000, 20),
    case("fit", 5_000, 20, k=5, C=10.0),
    case("fit", 20_000, 10, kernel="linear"),
    case("predict", 5_000, 20, k=5),
    case("predict", 5_000, 20, batch=1),
)
