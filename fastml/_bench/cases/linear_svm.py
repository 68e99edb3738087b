"""Linear support vector machines."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from ..contest import Case, Contestant

Data = tuple[Any, np.ndarray]


def make(shape: str, n: int, d: int, classes: int, dtype: str, **params: Any) -> Data:
    make_shape = {"dense": dense, "rare": rare, "flags": flags, "text": text}[shape]
    return make_shape(n, d, classes, dtype)


def dense(n: int, d: int, classes: int, dtype: str) -> Data:
    """Without classes, the target of a regression."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype(dtype)
    scores = X @ rng.normal(size=(d, max(classes, 1))) / np.sqrt(d)
    scores += 0.5 * rng.normal(size=scores.shape)
    return X, scores.argmax(axis=1) if classes else scores.ravel()


def rare(n: int, d: int, classes: int, dtype: str) -> Data:
    """Two classes, of which one has a fiftieth of the rows."""
    X, score = dense(n, d, 0, dtype)
    return X, (score > np.quantile(score, 0.98)).astype(np.intp)


def flags(n: int, d: int, classes: int, dtype: str) -> Data:
    """Two classes of rows of zeros and ones, of which one has a thirtieth of the rows."""
    rng = np.random.default_rng(0)
    X = (rng.random((n, d)) < 0.1).astype(dtype)
    score = X @ rng.normal(size=d)
    score += 0.5 * score.std() * rng.normal(size=n)
    return X, (score > np.quantile(score, 29 / 30)).astype(np.intp)


def text(n: int, d: int, classes: int, dtype: str) -> Data:
    """Rows of about 80 words, whose frequencies fall as those of a language do."""
    rng = np.random.default_rng(0)
    common = 1 / np.arange(1, d + 1) ** 1.05
    common = np.cumsum(common / common.sum())
    y = rng.integers(classes, size=n)
    length = 5 + rng.poisson(75, size=n)
    of_row = np.repeat(np.arange(n), length)
    word = np.minimum(np.searchsorted(common, rng.random(len(of_row))), d - 1)
    topics = rng.permuted(np.tile(np.arange(d), (classes, 1)), axis=1)[:, : d // 20]
    own = np.flatnonzero(rng.random(len(word)) < 0.12)
    at = (rng.random(len(own)) ** 2 * topics.shape[1]).astype(np.intp)
    word[own] = topics[y[of_row[own]], at]
    X = sparse.csr_matrix((np.ones(len(word), dtype), (of_row, word)), shape=(n, d))
    X.data = 1 + np.log(X.data)
    X = sparse.diags(1 / np.sqrt(X.multiply(X).sum(axis=1).A1)) @ X
    return sparse.csr_matrix(X, dtype=dtype), y


def fit(data: Data, threads: int, *, library: str, name: str, **params: Any) -> Callable[[], Any]:
    estimator = getattr(import_module(f"{library}.svm"), name)
    return lambda: estimator(random_state=0, **params).fit(*data)


def objective(params: dict[str, Any], data: Data, model: Any) -> float:
    """The sum over classes of the primal objectives."""
    X, y = data
    C, total = params.get("C", 1.0), 0.0
    if model.coef_.ndim == 1:
        w = np.r_[model.coef_, model.intercept_]
        return float(w @ w / 2 + C * abs(y - X @ w[:-1] - w[-1]).sum())
    weights = np.c_[model.coef_, model.intercept_]
    codes = np.unique(y, return_inverse=True)[1]
    if params.get("multi_class") == "crammer_singer":
        scores = X @ weights[:, :-1].T + weights[:, -1]
        own = scores[np.arange(len(y)), codes]
        v = scores - own[:, None] + 1
        v[np.arange(len(y)), codes] = 0
        return float((weights**2).sum() / 2 + C * v.max(axis=1).sum())
    for k, w in enumerate(weights):
        b = np.where(codes == (k if len(weights) > 1 else 1), 1, -1)
        v = np.maximum(1 - b * (X @ w[:-1] + w[-1]), 0)
        loss = v.sum() if params.get("loss") == "hinge" else v @ v
        total += (abs(w).sum() if params.get("penalty") == "l1" else w @ w / 2) + C * loss
    return float(total)


def case(
    shape: str, n: int, d: int, classes: int = 2, dtype: str = "float64", **params: Any
) -> Case:
    """Without classes, a regression with the default loss."""
    estimator = "LinearSVC" if classes else "LinearSVR"
    peers = tuple(
        Contestant(name, partial(fit, library=library, name=estimator, **params), name)
        for name, library in (("scikit-learn", "sklearn"), ("fastml", "fastml"))
    )
    about = {"shape": shape, "n": n, "d": d, "classes": classes, "dtype": dtype} | params
    quality = partial(objective, params)
    return Case("linear_svm", about, make, peers, quality, "objective", rtol=1e-3)


CASES = (
    case("dense", 20_000, 50),
    case("dense", 20_000, 50, loss="hinge"),
    case("dense", 20_000, 50, loss="hinge", C=0.1),
    case("rare", 20_000, 30, loss="hinge"),
    case("flags", 20_000, 40, loss="hinge"),
    case("dense", 50_000, 15, classes=0),
    case("dense", 500, 5_000),
    case("text", 8_000, 30_000),
)
