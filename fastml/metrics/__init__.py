"""Metrics: what fastml replaces in `sklearn.metrics`; all other names are scikit-learn's."""

from sklearn.metrics import root_mean_squared_error as rmse

from fastml._runtime.modules import fall_through
from fastml.metrics._ranking import map_at_k, ndcg_at_k, precision_at_k, recall_at_k
from fastml.metrics.pairwise import (
    euclidean_distances,
    nan_euclidean_distances,
    pairwise_distances,
    pairwise_distances_argmin,
    pairwise_distances_argmin_min,
    pairwise_distances_chunked,
    pairwise_kernels,
)

__all__ = [
    "euclidean_distances",
    "map_at_k",
    "nan_euclidean_distances",
    "ndcg_at_k",
    "pairwise_distances",
    "pairwise_distances_argmin",
    "pairwise_distances_argmin_min",
    "pairwise_distances_chunked",
    "pairwise_kernels",
    "precision_at_k",
    "recall_at_k",
    "rmse",
]

fall_through(__name__)
