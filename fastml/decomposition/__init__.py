"""Decompositions: fastml's part of `sklearn.decomposition`; other names are scikit-learn's."""

from fastml._runtime.modules import fall_through
from fastml.decomposition._truncated_svd import TruncatedSVD

__all__ = [
    "TruncatedSVD",
]

fall_through(__name__)
