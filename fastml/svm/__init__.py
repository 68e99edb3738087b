"""Support vector machines: fastml's part of `sklearn.svm`; other names are scikit-learn's."""

from fastml._runtime.modules import fall_through
from fastml.svm._classes import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from fastml.svm._compatibility import CompatibilityClassifier
from fastml.svm._linear import LinearSVC, LinearSVR

__all__ = [
    "SVC",
    "SVR",
    "CompatibilityClassifier",
    "LinearSVC",
    "LinearSVR",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
]

fall_through(__name__)
