"""Gaussian processes: scikit-learn's, and kernels of fastml's own in `kernels`."""

from fastml._runtime.modules import fall_through
from fastml.gaussian_process import kernels  # noqa: F401  (scikit-learn's would answer for it)

__all__: list[str] = []

fall_through(__name__)
