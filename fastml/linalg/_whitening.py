"""What makes the covariance of rows the identity."""

import numpy as np

from fastml._runtime.eigen import eigenpairs


def standardized(covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviations and correlations, whose rank the units of the features leave alone."""
    if not np.isfinite(covariance).all():
        raise ValueError(
            "The covariance is out of range: squares of X overflow, or X is not finite. Scale the "
            "features first, for instance by StandardScaler."
        )
    scale = np.sqrt(np.maximum(np.diagonal(covariance), 0))
    unit = np.where(scale > 0, scale, 1)
    return scale, covariance / unit[:, None] / unit


def whitening(covariance: np.ndarray) -> np.ndarray:
    """W with W·Wᵀ a (pseudo-)inverse of a covariance, the identity if that is zero."""
    scale, correlations = standardized(covariance)
    values, vectors = eigenpairs(correlations)
    kept = values > max(values[0], 0) * len(values) * np.finfo(np.float64).eps
    if not kept.any():
        return np.eye(len(values))
    roots = vectors[kept].T / np.sqrt(values[kept])
    return np.ascontiguousarray(roots / np.where(scale > 0, scale, 1)[:, None])
