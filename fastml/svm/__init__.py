"""Support vector machines: fastml's part of `sklearn.svm`; other names are scikit-learn's."""

from fastml._runtime.modules import fall_through
from fastml.svm._linear import LinearSVC, LinearSVR

__all__ = ["LinearSVC", "LinearSVR"]

fall_through(__name__)
