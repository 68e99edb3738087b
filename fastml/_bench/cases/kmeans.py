"""k-means: scikit-learn, fastml, sklearnex and faiss from the same start.

Everybody gets the same data, the same initial centres and the same number of iterations, without
a tolerance, so that a time is the time of the same work. Quality is recomputed here in float64
and never taken from the library that is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from ..contest import Case, Contestant
from ..environment import cpu_flags


class Data(NamedTuple):
    X: np.ndarray
    centers: np.ndarray  # the start of a fit, the model of a predict
    max_iter: int


def overlapping_blobs(
    n: int, d: int, k: int, dtype: str, max_iter: int = 10, seed: int = 0, spread: float = 0.7
) -> Data:
    """k Gaussians that overlap, and k rows of X to start from: ten steps do not converge.

    With a large `spread` they are one cloud without clusters.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(k, d))[rng.integers(k, size=n)] + spread * rng.normal(size=(n, d))
    X = X.astype(dtype)
    return Data(X, X[rng.choice(n, k, replace=False)], max_iter)


def settled_blobs(
    n: int,
    d: int,
    k: int,
    dtype: str,
    max_iter: int = 10,
    settled: int = 20,
    spread: float = 0.7,
) -> Data:
    """The same, from where `settled` iterations have led: few rows change their cluster now."""
    X, centers, _ = overlapping_blobs(n, d, k, dtype, spread=spread)
    for _ in range(settled):
        nearest = np.empty(n, dtype=np.intp)
        norms = np.einsum("ij,ij->i", centers, centers) / 2
        for i in range(0, n, 10_000):
            nearest[i : i + 10_000] = (norms - X[i : i + 10_000] @ centers.T).argmin(axis=1)
        members = csr_array((np.ones(n), nearest, np.arange(n + 1)), shape=(n, k)).T
        counts = np.maximum(members.sum(axis=1), 1)
        centers = (members @ X.astype(np.float64) / counts[:, None]).astype(dtype)
    return Data(X, centers, max_iter)


# -- quality: all of them are better when smaller


def inertia(data: Data, centers: np.ndarray) -> float:
    """Mean squared distance to the nearest centre."""
    centers = np.asarray(centers, dtype=np.float64)
    norms = np.einsum("ij,ij->i", centers, centers)
    step = max(1, 10_000_000 // len(centers))
    total = 0.0
    for i in range(0, len(data.X), step):
        X = data.X[i : i + step].astype(np.float64)
        total += np.einsum("ij,ij->", X, X) + (norms - 2 * X @ centers.T).min(axis=1).sum()
    return total / len(data.X)


def inertia_of_labels(data: Data, labels: np.ndarray) -> float:
    """Mean squared distance to the centre that was chosen."""
    difference = data.X.astype(np.float64) - data.centers[labels]
    return np.einsum("ij,ij->", difference, difference) / len(labels)


def error_of_distances(data: Data, distances: np.ndarray) -> float:
    """Largest error in a sample of the distances, relative to the largest of them."""
    sample = slice(None, None, max(1, len(data.X) // 1000))
    exact = cdist(data.X[sample], data.centers)
    return np.abs(distances[sample] - exact).max() / exact.max()


# -- contestants that speak scikit-learn's language; `library` is what one imports


def fit(data: Data, threads: int, *, library: str) -> Callable[[], Any]:
    estimator = _kmeans(library, data, threads)
    return lambda: estimator.fit(data.X).cluster_centers_


def predict(data: Data, threads: int, *, library: str) -> Callable[[], Any]:
    return partial(_fitted(library, data, threads).predict, data.X)


def transform(data: Data, threads: int, *, library: str) -> Callable[[], Any]:
    return partial(_fitted(library, data, threads).transform, data.X)


def seed(data: Data, threads: int, *, library: str) -> Callable[[], Any]:
    kmeans_plusplus = import_module(f"{library}.cluster").kmeans_plusplus
    return lambda: kmeans_plusplus(data.X, len(data.centers), random_state=0)[0]


def fit_minibatch(data: Data, threads: int, *, library: str) -> Callable[[], Any]:
    estimator = import_module(f"{library}.cluster").MiniBatchKMeans(
        n_clusters=len(data.centers),
        init=data.centers,
        n_init=1,
        max_iter=data.max_iter,
        max_no_improvement=None,
        random_state=0,
    )
    return lambda: estimator.fit(data.X).cluster_centers_


def _kmeans(library: str, data: Data, threads: int) -> Any:
    if library == "sklearnex":  # oneDAL has threads of its own and reads no variable
        import_module("daal4py").daalinit(threads)
    return import_module(f"{library}.cluster").KMeans(
        n_clusters=len(data.centers),
        init=data.centers,
        n_init=1,
        max_iter=data.max_iter,
        tol=0,
        algorithm="lloyd",
    )


def _fitted(library: str, data: Data, threads: int) -> Any:
    """An estimator whose centres are those of the data: fitted to each of them twice."""
    return _kmeans(library, data, threads).fit(np.repeat(data.centers, 2, axis=0))


# -- faiss


def faiss_fit(data: Data, threads: int) -> Callable[[], Any]:
    """faiss leaves no labels: the assignment which those of the others cost is asked of it."""
    import faiss

    faiss.omp_set_num_threads(threads)

    def call() -> Any:
        X = data.X.astype(np.float32, copy=False)
        model = faiss.Kmeans(
            X.shape[1],
            len(data.centers),
            niter=data.max_iter,
            min_points_per_centroid=1,
            max_points_per_centroid=len(X),  # all rows; by default it takes a sample
        )
        model.train(X, init_centroids=data.centers.astype(np.float32, copy=False))
        model.assign(X)
        return model.centroids

    return call


def faiss_predict(data: Data, threads: int) -> Callable[[], Any]:
    import faiss

    faiss.omp_set_num_threads(threads)
    index = faiss.IndexFlatL2(data.X.shape[1])
    index.add(data.centers.astype(np.float32, copy=False))
    return lambda: index.search(data.X.astype(np.float32, copy=False), 1)[1].ravel()


def best_blas_of_faiss() -> Mapping[str, str]:
    """The faiss wheel carries an OpenBLAS too old to know recent processors, for which it takes
    kernels of 2007: name the best that it has and the processor can run."""
    flags = cpu_flags()
    if {"avx512f", "avx512dq", "avx512bw", "avx512vl"} <= flags:
        return {"OPENBLAS_CORETYPE": "SkylakeX"}
    return {"OPENBLAS_CORETYPE": "Haswell"} if {"avx2", "fma"} <= flags else {}


# -- cases


def fit_case(
    n: int, d: int, k: int, dtype: str = "float32", max_iter: int = 10, spread: float = 0.7
) -> Case:
    """Lloyd's iterations from given centres."""
    params = {"n": n, "d": d, "k": k, "dtype": dtype, "max_iter": max_iter, "spread": spread}
    peers = (*_sklearn_like(fit, "sklearnex"), _faiss(faiss_fit, dtype))
    return Case("kmeans-fit", params, overlapping_blobs, peers, inertia, "inertia / n")


def late_case(
    n: int, d: int, k: int, dtype: str = "float32", max_iter: int = 10, spread: float = 0.7
) -> Case:
    """Lloyd's iterations from centres that hardly move any more."""
    case = fit_case(n, d, k, dtype, max_iter, spread)
    return replace(case, name="kmeans-late", data=settled_blobs)


def predict_case(n: int, d: int, k: int, dtype: str = "float32") -> Case:
    """The nearest of k given centres."""
    params = {"n": n, "d": d, "k": k, "dtype": dtype}
    peers = (*_sklearn_like(predict, "sklearnex"), _faiss(faiss_predict, dtype))
    return Case(
        "kmeans-predict", params, overlapping_blobs, peers, inertia_of_labels, "inertia / n"
    )


def transform_case(n: int, d: int, k: int, dtype: str = "float32") -> Case:
    """The distances to k given centres."""
    params = {"n": n, "d": d, "k": k, "dtype": dtype}
    peers = _sklearn_like(transform)
    atol = 1e-5 if dtype == "float32" else 1e-12
    return Case(
        "kmeans-transform",
        params,
        overlapping_blobs,
        peers,
        error_of_distances,
        "relative error",
        atol=atol,
    )


def seed_case(n: int, d: int, k: int, dtype: str = "float32") -> Case:
    """k-means++ alone, from the same random state."""
    params = {"n": n, "d": d, "k": k, "dtype": dtype}
    peers = _sklearn_like(seed)
    return Case(
        "kmeans-plusplus", params, overlapping_blobs, peers, inertia, "potential / n", rtol=2e-2
    )


def minibatch_case(n: int, d: int, k: int, dtype: str = "float32", max_iter: int = 10) -> Case:
    """MiniBatchKMeans, ten passes from given centres."""
    params = {"n": n, "d": d, "k": k, "dtype": dtype, "max_iter": max_iter}
    peers = _sklearn_like(fit_minibatch)
    return Case(
        "kmeans-minibatch", params, overlapping_blobs, peers, inertia, "inertia / n", rtol=1e-2
    )


def _sklearn_like(prepare: Callable[..., Any], *others: str) -> tuple[Contestant, ...]:
    libraries = {
        "scikit-learn": ("sklearn", "scikit-learn"),
        "fastml": ("fastml", "fastml"),
        "sklearnex": ("sklearnex", "scikit-learn-intelex"),
    }
    return tuple(
        Contestant(name, partial(prepare, library=library), distribution)
        for name, (library, distribution) in libraries.items()
        if name in ("scikit-learn", "fastml", *others)
    )


def _faiss(prepare: Callable[..., Any], dtype: str) -> Contestant:
    name = "faiss" if dtype == "float32" else "faiss in float32"  # it has nothing else
    return Contestant(name, prepare, "faiss-cpu", best_blas_of_faiss)


CASES = (
    fit_case(100_000, 50, 100, "float32"),
    fit_case(100_000, 50, 100, "float64"),
    fit_case(500_000, 3, 50, "float32"),
    fit_case(300, 4, 8, "float64"),
    seed_case(100_000, 20, 100, "float32"),
    predict_case(200_000, 32, 64, "float32"),
    transform_case(200_000, 32, 64, "float32"),
    minibatch_case(100_000, 20, 50, "float32"),
)
