"""Kernel ridge regression: fastml's part of `sklearn.kernel_ridge`."""

from fastml._runtime.modules import fall_through
from fastml.kernel_ridge._estimator import KernelRidge

__all__ = ["KernelRidge"]

fall_through(__name__)
