"""Random projections: fastml's part of `sklearn.random_projection`, and more."""

from fastml._runtime.modules import fall_through
from fastml.random_projection._augmentation import CosineAugmentation
from fastml.random_projection._projections import GaussianRandomProjection, SparseRandomProjection

__all__ = ["CosineAugmentation", "GaussianRandomProjection", "SparseRandomProjection"]

fall_through(__name__)
