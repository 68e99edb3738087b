"""k-medians: fastml, pyclustering and the loop that one writes with scikit-learn and NumPy.

Everybody starts from the same rows and makes the same number of iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from ..contest import Case, Contestant
from .kmeans import Data, overlapping_blobs


def deviation(data: Data, centers: np.ndarray) -> float:
    """Mean Manhattan distance to the nearest centre, of a sample of the rows."""
    sample = slice(None, None, max(1, len(data.X) // 10_000))
    return float(cdist(data.X[sample], np.asarray(centers), "cityblock").min(axis=1).mean())


def fit(data: Data, threads: int) -> Callable[[], Any]:
    from fastml.cluster import KMedians

    model = KMedians(len(data.centers), init=data.centers, max_iter=data.max_iter, tol=0)
    return lambda: model.fit(data.X).cluster_centers_


def fit_by_hand(data: Data, threads: int) -> Callable[[], Any]:
    """Scikit-learn's chunked argmin of Manhattan distances, and NumPy's medians."""
    from sklearn.metrics import pairwise_distances_argmin

    def call() -> Any:
        centers = data.centers
        for _ in range(data.max_iter):
            labels = pairwise_distances_argmin(data.X, centers, metric="manhattan")
            centers = np.array(
                [np.median(data.X[labels == j], axis=0) for j in range(len(centers))]
            )
        return centers

    return call


def fit_pyclustering(data: Data, threads: int) -> Callable[[], Any]:
    import warnings

    vars(np)["warnings"] = warnings  # it was written for an older NumPy
    from pyclustering.cluster.kmedians import kmedians
    from pyclustering.utils.metric import distance_metric, type_metric

    def call() -> Any:
        model = kmedians(
            data.X.tolist(),
            data.centers.tolist(),
            tolerance=0,
            itermax=data.max_iter,
            metric=distance_metric(type_metric.MANHATTAN),
        )
        return np.array(model.process().get_medians())

    return call


def case(n: int, d: int, k: int, dtype: str = "float32", max_iter: int = 10) -> Case:
    """Iterations from given centres."""
    peers = (
        Contestant("scikit-learn and NumPy", fit_by_hand, "scikit-learn"),
        Contestant("fastml", fit, "fastml"),
        Contestant("pyclustering", fit_pyclustering, "pyclustering"),
    )
    params = {"n": n, "d": d, "k": k, "dtype": dtype, "max_iter": max_iter}
    return Case("kmedians", params, overlapping_blobs, peers, deviation, "mean distance", rtol=1e-2)


CASES = (case(20_000, 20, 20),)
