"""Nearest neighbours: what fastml replaces in `sklearn.neighbors`."""

from fastml._runtime.modules import fall_through
from fastml.neighbors._centroid import NearestCentroid
from fastml.neighbors._classification import KNeighborsClassifier, RadiusNeighborsClassifier
from fastml.neighbors._density import KernelDensity
from fastml.neighbors._graph import (
    KNeighborsTransformer,
    RadiusNeighborsTransformer,
    kneighbors_graph,
    radius_neighbors_graph,
)
from fastml.neighbors._lof import LocalOutlierFactor
from fastml.neighbors._regression import KNeighborsRegressor, RadiusNeighborsRegressor
from fastml.neighbors._unsupervised import NearestNeighbors

__all__ = [
    "KNeighborsClassifier",
    "KNeighborsRegressor",
    "KNeighborsTransformer",
    "KernelDensity",
    "LocalOutlierFactor",
    "NearestCentroid",
    "NearestNeighbors",
    "RadiusNeighborsClassifier",
    "RadiusNeighborsRegressor",
    "RadiusNeighborsTransformer",
    "kneighbors_graph",
    "radius_neighbors_graph",
]

fall_through(__name__)
