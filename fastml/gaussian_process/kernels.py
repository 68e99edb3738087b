"""Kernel objects: scikit-learn's, and more of their kind."""

from fastml._runtime.modules import fall_through
from fastml.gaussian_process._algebra import Composed, Exp, Normalized
from fastml.gaussian_process._mercer import MercerReport, check_mercer
from fastml.gaussian_process._strings import BagOfWords, NGram, SetIntersection, Subsequence
from fastml.gaussian_process._user import UserKernel
from fastml.gaussian_process._vectors import (
    AdditiveChiSquared,
    ChiSquared,
    Intersection,
    Laplacian,
    Polynomial,
    QuadraticForm,
    Sigmoid,
)

__all__ = [
    "AdditiveChiSquared",
    "BagOfWords",
    "ChiSquared",
    "Composed",
    "Exp",
    "Intersection",
    "Laplacian",
    "MercerReport",
    "NGram",
    "Normalized",
    "Polynomial",
    "QuadraticForm",
    "SetIntersection",
    "Sigmoid",
    "Subsequence",
    "UserKernel",
    "check_mercer",
]

fall_through(__name__)
