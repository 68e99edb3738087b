"""Metrics as the compiled search takes them: one of its own, on rows that may be mapped first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from sklearn.metrics import DistanceMetric

_OWN = {
    "euclidean": "euclidean",
    "l2": "euclidean",
    "sqeuclidean": "sqeuclidean",
    "manhattan": "manhattan",
    "cityblock": "manhattan",
    "l1": "manhattan",
    "chebyshev": "chebyshev",
    "infinity": "chebyshev",
    "cosine": "cosine",
}


class Space(NamedTuple):
    """A compiled metric, and what it has to be given instead of the rows (None: nothing)."""

    metric: str
    map_rows: Callable[[np.ndarray], np.ndarray] | None = None

    def rows(self, X: Any) -> np.ndarray:
        """The rows of `X` for the kernel: C-contiguous, in float32 if `X` is, else float64."""
        X = as_floats(X)
        return X if self.map_rows is None else np.ascontiguousarray(self.map_rows(X))


def as_floats(X: Any) -> np.ndarray:
    dtype = np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
    return np.require(X, dtype, requirements="CA")


def space_of(metric: Any, params: dict[str, Any]) -> Space | None:
    """The space of an effective metric, or None if it is not one that the kernels know."""
    if isinstance(metric, DistanceMetric):
        metric = type(metric).__name__.removesuffix("32").removesuffix("Distance").lower()
        return Space(_OWN[metric]) if metric in ("euclidean", "manhattan", "chebyshev") else None
    if not isinstance(metric, str):
        return None
    if metric in ("minkowski", "p"):
        return _minkowski(**params)
    if metric == "seuclidean":
        return _scaled("euclidean", params.get("V"), lambda V: 1 / np.sqrt(V))
    if metric == "mahalanobis":
        return _mahalanobis(**params)
    if metric not in _OWN or params:
        return None
    return Space(_OWN[metric], _normalised if metric == "cosine" else None)


def _minkowski(p: float = 2, w: Any = None) -> Space | None:
    own = {1: "manhattan", 2: "euclidean", np.inf: "chebyshev"}.get(p)
    if own is None or w is None:
        return None if own is None else Space(own)
    return None if p == np.inf else _scaled(own, w, lambda w: np.asarray(w) ** (1 / p))


def _scaled(metric: str, weights: Any, factors: Callable[[np.ndarray], np.ndarray]) -> Space | None:
    if weights is None:
        return None
    with np.errstate(all="ignore"):
        scale = factors(np.asarray(weights, dtype=np.float64))
    if scale.ndim != 1 or not np.isfinite(scale).all():
        return None
    return Space(metric, lambda X: X * scale)


def _mahalanobis(V: Any = None, VI: Any = None) -> Space | None:
    """Whitening: with VI = L·Lᵀ, the distance of x and y is that of x·L and y·L."""
    if (V is None) == (VI is None):
        return None
    try:
        inverse = np.linalg.inv(V) if VI is None else np.asarray(VI, dtype=np.float64)
        root = cholesky(inverse, lower=True)
    except (LinAlgError, ValueError):
        return None
    if not np.allclose(inverse, inverse.T):
        return None
    return Space("euclidean", lambda X: X @ root)


def _normalised(X: np.ndarray) -> np.ndarray:
    X = X.astype(np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", X, X))
    norms[norms == 0] = 1
    X /= norms[:, None]
    return X
