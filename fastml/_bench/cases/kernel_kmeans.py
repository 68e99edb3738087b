"""Kernel k-means with an rbf kernel: fastml, tslearn and the loop that one writes in NumPy.

Everybody starts from the same labels where that can be said, and makes the same number of
iterations without a tolerance.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..contest import Case, Contestant
from .kmeans import overlapping_blobs


class Data(NamedTuple):
    X: np.ndarray
    labels: np.ndarray  # the start
    k: int
    max_iter: int


def blobs(n: int, d: int, k: int, dtype: str, max_iter: int) -> Data:
    X = overlapping_blobs(n, d, k, dtype).X
    nearest = ((X[:, None] - X[None, :k]) ** 2).sum(axis=2).argmin(axis=1)
    return Data(X, nearest, k, max_iter)


def gram(X: np.ndarray) -> np.ndarray:
    from sklearn.metrics.pairwise import rbf_kernel

    return rbf_kernel(X, gamma=1 / X.shape[1])


def inertia(data: Data, labels: np.ndarray) -> float:
    """Mean squared distance in feature space to the means of the labels."""
    H = np.eye(data.k)[labels]
    weights = np.maximum(H.sum(axis=0), 1)
    within = sum(
        (H[i : i + 1000] * (gram_rows(data.X, i) @ H)).sum(axis=0)
        for i in range(0, len(data.X), 1000)
    )
    return 1 - float((within / weights).sum()) / len(data.X)


def gram_rows(X: np.ndarray, i: int) -> np.ndarray:
    from sklearn.metrics.pairwise import rbf_kernel

    X = X.astype(np.float64)
    return rbf_kernel(X[i : i + 1000], X, gamma=1 / X.shape[1])


def fit(data: Data, threads: int, *, max_gram_mb: float | None) -> Callable[[], Any]:
    from fastml.cluster import KernelKMeans

    model = KernelKMeans(
        data.k,
        gamma=1 / data.X.shape[1],
        init=data.labels,
        max_iter=data.max_iter,
        tol=0,
        max_gram_mb=max_gram_mb,
    )
    return lambda: model.fit(data.X).labels_


def fit_by_hand(data: Data, threads: int) -> Callable[[], Any]:
    """A Gram matrix of scikit-learn's, and its product with the one-hot labels in every step."""

    def call() -> Any:
        K, labels = gram(data.X), data.labels
        for _ in range(data.max_iter):
            H = np.eye(data.k, dtype=K.dtype)[labels]
            H /= H.sum(axis=0)
            S = K @ H
            labels = ((H * S).sum(axis=0) - 2 * S).argmin(axis=1)
        return labels

    return call


def fit_tslearn(data: Data, threads: int) -> Callable[[], Any]:
    from tslearn.clustering import KernelKMeans

    model = KernelKMeans(
        data.k,
        kernel="rbf",
        kernel_params={"gamma": 1 / data.X.shape[1]},
        max_iter=data.max_iter,
        tol=0,
        random_state=0,
    )
    return lambda: model.fit(data.X[:, :, None]).labels_


def case(n: int, d: int, k: int, dtype: str = "float32", max_iter: int = 10) -> Case:
    """Iterations with a Gram matrix and without."""
    peers = (
        Contestant("scikit-learn and NumPy", fit_by_hand, "scikit-learn"),
        Contestant("fastml", partial(fit, max_gram_mb=None), "fastml"),
        Contestant("fastml, streamed", partial(fit, max_gram_mb=0), "fastml"),
        Contestant("tslearn", fit_tslearn, "tslearn"),
    )
    params = {"n": n, "d": d, "k": k, "dtype": dtype, "max_iter": max_iter}
    # tslearn starts from labels of its own, and ends in another minimum.
    return Case("kernel-kmeans", params, blobs, peers, inertia, "inertia / n", rtol=0.1)


CASES = (case(5_000, 20, 10),)
