"""Empirical risk in a kernel's space with any loss, which scikit-learn lacks."""

from fastml.kernel_erm._estimator import KernelERM

__all__ = ["KernelERM"]
