"""k-d trees: building one, and the k nearest of its own points or of others.

Quality is the mean distance to the neighbours that were named, recomputed here in float64: a
tree that misses one names a point further away.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ..contest import Case, Contestant


class Data(NamedTuple):
    X: np.ndarray
    Q: np.ndarray
    k: int
    kernel: str = ""


def points(
    n: int,
    d: int,
    k: int,
    dtype: str,
    queries: str = "others",
    kind: str = "uniform",
    kernel: str = "",
) -> Data:
    """n points, and 100,000 queries of the same kind or the points themselves."""
    rng = np.random.default_rng(0)
    X: np.ndarray
    Q: np.ndarray
    sizes = (n, 100_000)
    if kind == "clusters":
        centers = rng.normal(size=(50, d))
        X, Q = (centers[rng.integers(50, size=m)] + 0.05 * rng.normal(size=(m, d)) for m in sizes)
    elif kind == "grid":  # each point about ten times
        side = max(2, round((n / 10) ** (1 / d)))
        X, Q = (rng.integers(side, size=(m, d)) for m in sizes)
    else:
        X, Q = (rng.random((m, d)) for m in sizes)
    X = X.astype(dtype)
    return Data(X, X if queries == "own" else Q.astype(dtype), k, kernel)


def mean_distance(data: Data, indices: np.ndarray) -> float:
    """Of a sample of the queries to the neighbours named."""
    sample = slice(None, None, max(1, len(data.Q) // 10_000))
    indices = np.asarray(indices).reshape(len(data.Q), -1)[sample].astype(np.intp)
    Q = data.Q[sample].astype(np.float64)
    return float(np.sqrt(((Q[:, None] - data.X[indices]) ** 2).sum(axis=2)).mean())


def no_quality(data: Data, result: Any) -> float:
    return 0.0


# -- contestants: build gives the call that builds, query the call that finds indices


def _fastml(data: Data, threads: int) -> Callable[[], Any]:
    return partial(import_module("fastml._native.kdtree").KDTree, data.X, n_threads=threads)


def _scipy(data: Data, threads: int) -> Callable[[], Any]:
    return partial(import_module("scipy.spatial").cKDTree, data.X)


def _pykdtree(data: Data, threads: int) -> Callable[[], Any]:
    return partial(import_module("pykdtree.kdtree").KDTree, data.X)


def _estimator(data: Data, threads: int, *, library: str) -> Callable[[], Any]:
    if library == "sklearnex":  # oneDAL has threads of its own and reads no variable
        import_module("daal4py").daalinit(threads)
    model = import_module(f"{library}.neighbors").NearestNeighbors(
        n_neighbors=data.k, algorithm="kd_tree", n_jobs=threads
    )
    return partial(model.fit, data.X)


def _fastml_query(data: Data, threads: int) -> Callable[[], Any]:
    tree = _fastml(data, threads)()
    Q = None if data.Q is data.X else data.Q

    def call() -> np.ndarray:
        shape = len(data.Q), data.k
        distances, indices = np.empty(shape, data.X.dtype), np.empty(shape, np.int64)
        tree.query(Q, data.k, distances, indices, threads)
        return indices

    return call


def _scipy_query(data: Data, threads: int) -> Callable[[], Any]:
    tree = _scipy(data, threads)()
    return lambda: tree.query(data.Q, data.k, workers=threads)[1]


def _pykdtree_query(data: Data, threads: int) -> Callable[[], Any]:
    tree = _pykdtree(data, threads)()
    return lambda: tree.query(data.Q, data.k)[1]


def _estimator_query(data: Data, threads: int, *, library: str) -> Callable[[], Any]:
    model = _estimator(data, threads, library=library)()
    return lambda: model.kneighbors(data.Q)[1]


# -- cases


def build_case(n: int, d: int, dtype: str = "float32") -> Case:
    """Building alone."""
    peers = (
        Contestant("scikit-learn", partial(_estimator, library="sklearn"), "scikit-learn"),
        Contestant("fastml", _fastml, "fastml"),
        Contestant("scipy", _scipy, "scipy"),
        Contestant("pykdtree", _pykdtree, "pykdtree"),
    )
    params = {"n": n, "d": d, "k": 1, "dtype": dtype}
    return Case("kdtree-build", params, points, peers, no_quality, "")


def query_case(
    n: int,
    d: int,
    k: int,
    dtype: str = "float32",
    queries: str = "others",
    kind: str = "uniform",
) -> Case:
    """The k nearest of 100,000 other points, or of all points of the tree itself."""
    peers = (
        Contestant("scikit-learn", partial(_estimator_query, library="sklearn"), "scikit-learn"),
        Contestant("fastml", _fastml_query, "fastml"),
        Contestant(
            "sklearnex", partial(_estimator_query, library="sklearnex"), "scikit-learn-intelex"
        ),
        Contestant("scipy", _scipy_query, "scipy"),
        Contestant("pykdtree", _pykdtree_query, "pykdtree"),
    )
    params = {"n": n, "d": d, "k": k, "dtype": dtype, "queries": queries, "kind": kind}
    return Case("kdtree-query", params, points, peers, mean_distance, "mean distance", rtol=1e-5)


def log_likelihood(data: Data, threads: int, *, library: str) -> Callable[[], Any]:
    """Of some queries under a density whose kernels reach as far as a few hundred neighbours."""
    density = import_module(f"{library}.neighbors").KernelDensity
    bandwidth = (300 / len(data.X)) ** (1 / data.X.shape[1]) / 2
    model = density(kernel=data.kernel, bandwidth=bandwidth).fit(data.X)
    return partial(model.score_samples, data.Q[:2000])


def difference(data: Data, scores: np.ndarray) -> float:
    """From the scores of a sample of the queries, recomputed pair by pair."""
    sample = slice(None, 2000, 100)
    bandwidth = (300 / len(data.X)) ** (1 / data.X.shape[1]) / 2
    u = np.sqrt(((data.Q[sample, None] - data.X) ** 2).sum(axis=2)) / bandwidth
    kernels = np.exp(-(u**2) / 2) if data.kernel == "gaussian" else (u < 1)
    with np.errstate(divide="ignore"):
        exact = np.log(kernels.sum(axis=1))
    gaps = scores[sample] - exact  # the same for all: the norm of the kernel
    finite = np.isfinite(exact)
    return float(np.ptp(gaps[finite])) if finite.any() else 0.0


def density_case(n: int, d: int, kernel: str) -> Case:
    """KernelDensity.score_samples for 2000 rows."""
    peers = tuple(
        Contestant(name, partial(log_likelihood, library=library), name)
        for name, library in (("scikit-learn", "sklearn"), ("fastml", "fastml"))
    )
    params = {"n": n, "d": d, "k": 1, "dtype": "float64", "kernel": kernel}
    return Case("density", params, points, peers, difference, "error", atol=1e-8)


CASES = (
    query_case(100_000, 2, 1),
    query_case(100_000, 3, 10, "float64"),
    query_case(100_000, 3, 10, "float32", "own"),
    build_case(100_000, 3),
    density_case(20_000, 3, "gaussian"),
)
