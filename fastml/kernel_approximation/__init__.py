"""Explicit feature maps of kernels: fastml's part of `sklearn.kernel_approximation`, and more."""

from fastml._runtime.modules import fall_through
from fastml.kernel_approximation._additive import AdditiveChi2Sampler
from fastml.kernel_approximation._count_sketch import PolynomialCountSketch
from fastml.kernel_approximation._fourier import RandomFourierFeatures
from fastml.kernel_approximation._nystroem import Nystroem
from fastml.kernel_approximation._samplers import RBFSampler, SkewedChi2Sampler

__all__ = [
    "AdditiveChi2Sampler",
    "Nystroem",
    "PolynomialCountSketch",
    "RBFSampler",
    "RandomFourierFeatures",
    "SkewedChi2Sampler",
]

fall_through(__name__)
