"""Kernel logistic regression, which scikit-learn lacks."""

from fastml.kernel_logistic._estimator import KernelLogisticRegression

__all__ = ["KernelLogisticRegression"]
