"""Decompositions: fastml's part of `sklearn.decomposition`; other names are scikit-learn's."""

from fastml._runtime.modules import fall_through

__all__: list[str] = []

fall_through(__name__)
