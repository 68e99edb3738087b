"""Clustering: what fastml replaces in `sklearn.cluster`; all other names are scikit-learn's."""

from fastml._runtime.modules import fall_through
from fastml.cluster._kmeans import KMeans, k_means
from fastml.cluster._minibatch import MiniBatchKMeans
from fastml.cluster._seeding import kmeans_plusplus

__all__ = ["KMeans", "MiniBatchKMeans", "k_means", "kmeans_plusplus"]

fall_through(__name__)
