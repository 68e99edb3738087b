"""Kernels and distances of all pairs of rows: those of `sklearn.metrics.pairwise`, and more."""

from fastml._runtime.modules import fall_through
from fastml.metrics._apply import gram_apply
from fastml.metrics._argmin import (
    pairwise_distances_argmin,
    pairwise_distances_argmin_min,
)
from fastml.metrics._dispatch import (
    pairwise_distances,
    pairwise_distances_chunked,
    pairwise_kernels,
)
from fastml.metrics._distances import (
    cosine_distances,
    euclidean_distances,
    haversine_distances,
    manhattan_distances,
    nan_euclidean_distances,
)
from fastml.metrics._kernels import (
    additive_chi2_kernel,
    chi2_kernel,
    cosine_similarity,
    intersection_kernel,
    laplacian_kernel,
    linear_kernel,
    polynomial_kernel,
    rbf_kernel,
    sigmoid_kernel,
)

__all__ = [
    "additive_chi2_kernel",
    "chi2_kernel",
    "cosine_distances",
    "cosine_similarity",
    "euclidean_distances",
    "gram_apply",
    "haversine_distances",
    "intersection_kernel",
    "laplacian_kernel",
    "linear_kernel",
    "manhattan_distances",
    "nan_euclidean_distances",
    "pairwise_distances",
    "pairwise_distances_argmin",
    "pairwise_distances_argmin_min",
    "pairwise_distances_chunked",
    "pairwise_kernels",
    "polynomial_kernel",
    "rbf_kernel",
    "sigmoid_kernel",
]

fall_through(__name__)
