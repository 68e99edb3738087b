"""Nearest neighbours by brute force and otherwise: scikit-learn, fastml, sklearnex and faiss.

Everybody finds the k nearest of the same rows for the same queries. Quality is the share of true
neighbours that is missing, recomputed here in float64 for a sample of the queries; rows that are as
far as the k-th neighbour, up to rounding, all count as true.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from ..contest import Case, Contestant
from .kmeans import best_blas_of_faiss


class Data(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    queries: np.ndarray
    k: int


def normal(n: int, d: int, k: int, dtype: str, n_queries: int = 10_000) -> Data:
    """Independent normal coordinates: no structure that could be made use of."""
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(n, d)), rng.normal(size=(n_queries, d))
    return Data(X.astype(dtype), rng.integers(5, size=n), queries.astype(dtype), k)


# -- quality


def missed(data: Data, rows: np.ndarray) -> float:
    """The share of the neighbours found that are none, in a sample of the queries."""
    sample = slice(None, None, max(1, len(data.queries) // 50))
    exact = cdist(data.queries[sample].astype(np.float64), data.X.astype(np.float64))
    found = np.take_along_axis(exact, np.asarray(rows)[sample].astype(np.intp), axis=1)
    kth = np.partition(exact, data.k - 1, axis=1)[:, data.k - 1 : data.k]
    return float(np.mean(found > kth * (1 + 1e-6)))


def disagreement(data: Data, labels: np.ndarray) -> float:
    """The share of predictions that are not the vote of the true neighbours, in a sample."""
    sample = slice(None, None, max(1, len(data.queries) // 50))
    exact = cdist(data.queries[sample].astype(np.float64), data.X.astype(np.float64))
    nearest = np.argpartition(exact, data.k - 1, axis=1)[:, : data.k]
    votes = np.stack([np.bincount(data.y[row], minlength=5) for row in nearest])
    return float(np.mean(votes.argmax(axis=1) != np.asarray(labels)[sample]))


# -- contestants


def kneighbors(data: Data, threads: int, *, library: str) -> Callable[[], Any]:
    model = _module(library, threads).NearestNeighbors(n_neighbors=data.k, algorithm="brute")
    model.fit(data.X)
    return lambda: model.kneighbors(data.queries)[1]


def predict(data: Data, threads: int, *, library: str) -> Callable[[], Any]:
    model = _module(library, threads).KNeighborsClassifier(n_neighbors=data.k)
    return partial(model.fit(data.X, data.y).predict, data.queries)


def fit(data: Data, threads: int, *, library: str) -> Callable[[], Any]:
    model = _module(library, threads).KNeighborsClassifier(n_neighbors=data.k)
    return lambda: model.fit(data.X, data.y).predict(data.queries)


def _module(library: str, threads: int) -> Any:
    if library == "sklearnex":  # oneDAL has threads of its own and reads no variable
        import_module("daal4py").daalinit(threads)
    return import_module(f"{library}.neighbors")


def faiss_search(data: Data, threads: int) -> Callable[[], Any]:
    import faiss

    faiss.omp_set_num_threads(threads)
    index = faiss.IndexFlatL2(data.X.shape[1])
    index.add(data.X.astype(np.float32, copy=False))
    return lambda: index.search(data.queries.astype(np.float32, copy=False), data.k)[1]


# -- cases


def search_case(n: int, d: int, k: int, dtype: str = "float32", n_queries: int = 10_000) -> Case:
    """The k nearest rows, by brute force."""
    name = "faiss" if dtype == "float32" else "faiss in float32"  # it has nothing else
    faiss = Contestant(name, faiss_search, "faiss-cpu", best_blas_of_faiss)
    return _case("neighbors-search", kneighbors, missed, n, d, k, dtype, n_queries, faiss)


def predict_case(n: int, d: int, k: int, dtype: str = "float64", n_queries: int = 10_000) -> Case:
    """KNeighborsClassifier.predict with default parameters."""
    return _case("neighbors-predict", predict, disagreement, n, d, k, dtype, n_queries)


def fit_case(n: int, d: int, k: int, dtype: str = "float64", n_queries: int = 100) -> Case:
    """fit, then predict: small data, where overhead decides."""
    return _case("neighbors-fit", fit, disagreement, n, d, k, dtype, n_queries)


def _case(
    name: str,
    prepare: Callable[..., Any],
    quality: Callable[..., float],
    n: int,
    d: int,
    k: int,
    dtype: str,
    n_queries: int,
    *others: Contestant,
) -> Case:
    libraries = {
        "scikit-learn": ("sklearn", "scikit-learn"),
        "fastml": ("fastml", "fastml"),
        "sklearnex": ("sklearnex", "scikit-learn-intelex"),
    }
    peers = tuple(
        Contestant(peer, partial(prepare, library=library), distribution)
        for peer, (library, distribution) in libraries.items()
    )
    params = {"n": n, "d": d, "k": k, "dtype": dtype, "n_queries": n_queries}
    return Case(name, params, normal, (*peers, *others), quality, "share wrong", atol=0.002)


CASES = (
    search_case(100_000, 16, 10, "float32"),
    search_case(100_000, 16, 10, "float64"),
    search_case(100_000, 128, 10, "float32"),
    search_case(1_000_000, 16, 10, "float32", 1),
    predict_case(100_000, 32, 5),
    predict_case(1_000, 10, 5, n_queries=1),
    fit_case(150, 4, 5),
)
