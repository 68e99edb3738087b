"""Truncated SVD, of counts of words and of dense rows; and one power iteration."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from ..contest import Case, Contestant


def counts(n: int, d: int, k: int, words: int, dtype: str) -> tuple[Any, int]:
    """Documents of so many words each, which follow Zipf's law and 30 topics."""
    rng = np.random.default_rng(0)
    weights = 1 / (np.arange(d) + 10.0)
    word = rng.choice(d, n * words, p=weights / weights.sum())
    topic = np.repeat(rng.integers(0, 30, n), words)
    moved = rng.random(n * words) < 0.3
    word[moved] = (word[moved] // 30 * 30 + topic[moved]) % d
    document = np.repeat(np.arange(n), words)
    X = sparse.coo_matrix((np.ones(n * words), (document, word)), shape=(n, d)).tocsr()
    return X.astype(dtype), k


def dense(n: int, d: int, k: int, dtype: str) -> tuple[Any, int]:
    rng = np.random.default_rng(0)
    return (rng.normal(size=(n, d)) * 0.97 ** np.arange(d)).astype(dtype), k


def fit(data: Any, threads: int, *, library: str) -> Callable[[], Any]:
    X, k = data
    estimator = import_module(f"{library}.decomposition").TruncatedSVD
    return lambda: estimator(k, random_state=0).fit(X).components_


def by_scipy(data: Any, threads: int) -> Callable[[], Any]:
    X, k = data
    return lambda: svds(X, k, tol=1e-2, v0=np.ones(min(X.shape)))[2]


def by_krylov(data: Any, threads: int) -> Callable[[], Any]:
    X, k = data
    estimator = import_module("fastml.decomposition").TruncatedSVD
    return lambda: estimator(k, algorithm="power", tol=2e-3, random_state=0).fit(X).components_


def missing(data: Any, Vt: np.ndarray) -> float:
    """The part of the squares that the components do not hold."""
    X, _ = data
    squares = X.multiply(X).sum() if sparse.issparse(X) else np.vdot(X, X)
    return float(1 - np.sum((X @ Vt.T) ** 2) / squares)


def case(n: int, d: int, k: int, words: int = 0, dtype: str = "float64") -> Case:
    peers = (
        Contestant("scikit-learn", partial(fit, library="sklearn"), "scikit-learn"),
        Contestant("scipy svds", by_scipy, "scipy"),
        Contestant("fastml", partial(fit, library="fastml"), "fastml"),
        Contestant("fastml power", by_krylov, "fastml"),
    )
    shape = {"n": n, "d": d, "k": k} | ({"words": words} if words else {}) | {"dtype": dtype}
    return Case(
        "truncated_svd", shape, counts if words else dense, peers, missing, "missing", rtol=1e-2
    )


def iterate(data: Any, threads: int, *, native: bool) -> Callable[[], Any]:
    X, _ = data
    rows = import_module("fastml.linalg._rows").Rows(X)
    v = np.ones((X.shape[1], 1), X.dtype)
    return partial(rows.gram, v) if native else lambda: X.T @ (X @ v)


def difference(data: Any, z: np.ndarray) -> float:
    X, _ = data
    exact = X.T @ X.sum(axis=1, keepdims=True)
    return float(abs(z - exact).max() / abs(exact).max())


def iteration(n: int, d: int, dtype: str = "float64") -> Case:
    peers = (
        Contestant("numpy", partial(iterate, native=False), "numpy"),
        Contestant("fastml", partial(iterate, native=True), "fastml"),
    )
    shape = {"n": n, "d": d, "k": 1, "dtype": dtype}
    return Case("power_iteration", shape, dense, peers, difference, "difference", atol=1e-4)


CASES = (
    case(20_000, 50_000, 100, 200),
    case(100_000, 10_000, 50, 100, "float32"),
    iteration(100_000, 500),
)
