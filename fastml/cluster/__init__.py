"""Clustering: fastml's part of `sklearn.cluster`, and more; other names are scikit-learn's."""

from fastml._runtime.modules import fall_through
from fastml.cluster._bisecting import BisectingKMeans
from fastml.cluster._kernel_kmeans import KernelKMeans
from fastml.cluster._kmeans import KMeans, k_means
from fastml.cluster._kmedians import KMedians
from fastml.cluster._mahalanobis import MahalanobisKMeans
from fastml.cluster._minibatch import MiniBatchKMeans
from fastml.cluster._seeding import kmeans_plusplus

__all__ = [
    "BisectingKMeans",
    "KMeans",
    "KMedians",
    "KernelKMeans",
    "MahalanobisKMeans",
    "MiniBatchKMeans",
    "k_means",
    "kmeans_plusplus",
]

fall_through(__name__)
