"""Metrics by name, beyond those that are functions of scikit-learn's: which are compiled, and how.

Some are the Euclidean distance of other rows: scaled, whitened or normalised ones.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from fastml._runtime.dispatch import Unsupported

# Their parameters.
COMPILED = {
    "braycurtis": ("w",),
    "canberra": ("w",),
    "chebyshev": ("w",),
    "correlation": ("w",),
    "dice": ("w",),
    "hamming": ("w",),
    "jaccard": ("w",),
    "mahalanobis": ("VI",),
    "matching": ("w",),
    "minkowski": ("p", "w"),
    "rogerstanimoto": ("w",),
    "russellrao": ("w",),
    "seuclidean": ("V",),
    "sokalmichener": ("w",),
    "sokalsneath": ("w",),
    "sqeuclidean": ("w",),
    "yule": ("w",),
}


class Resolved(NamedTuple):
    """A compiled measure with its parameters, and the rows to apply it to."""

    metric: str
    X: np.ndarray
    Y: np.ndarray
    params: dict[str, Any]


def refusal(metric: str, X: Any, kwds: dict) -> Unsupported | None:
    """Why SciPy has to compute one of its metrics, or to say what is wrong with its parameters."""
    if metric not in COMPILED:  # and it is unknown to SciPy too: an error, to be raised
        return None
    unknown = sorted(set(kwds) - set(COMPILED[metric]))
    if unknown:
        return Unsupported(unknown[0], f"{metric} is compiled without it", "leave it out")
    if not _parameters_are_plain(kwds, np.shape(X)[-1]):
        return Unsupported(next(iter(kwds)), "its values are not of the usual kind", "see SciPy's")
    return None


def _with_squares(X: np.ndarray) -> np.ndarray:
    """Multiples of the rows whose squares neither vanish nor are infinite."""
    largest = np.abs(X).max(axis=1, initial=0, keepdims=True)
    _, exponents = np.frexp(np.where(np.isfinite(largest), largest, 1))
    return np.ldexp(X, -exponents)


def is_finite(*matrices: Any) -> bool:
    try:
        with np.errstate(all="ignore"):
            return all(np.isfinite(np.asarray(Z, float).sum()) for Z in matrices if Z is not None)
    except (TypeError, ValueError):
        return False


def _parameters_are_plain(kwds: dict, d: int) -> bool:
    p, w, V, VI = (kwds.get(name) for name in ("p", "w", "V", "VI"))
    try:
        return (
            (p is None or float(p) > 0)
            and (w is None or bool(np.all(np.asarray(w, float) >= 0) and np.shape(w) == (d,)))
            and (V is None or bool(np.all(np.asarray(V, float) > 0) and np.ndim(V) == 1))
            and (VI is None or _whitening(VI) is not None)
        )
    except (TypeError, ValueError):
        return False


def _whitening(VI: Any) -> np.ndarray | None:
    """W with (x - y)ᵀ VI (x - y) = |Wᵀ(x - y)|², unless VI is indefinite or singular."""
    VI = np.asarray(VI, dtype=np.float64)
    try:
        return np.linalg.cholesky((VI + VI.T) / 2)
    except np.linalg.LinAlgError:
        return None


def resolve(metric: str, X: np.ndarray, Y: np.ndarray, kwds: dict) -> Resolved | None:
    """In float64, as SciPy computes; X is Y in the result if it is. None if VI has no root."""
    rows = [X] if X is Y else [X, Y]
    rows = [Z.astype(float) if issparse(Z) else np.asarray(Z, np.float64) for Z in rows]
    params: dict[str, Any] = {}
    if metric in ("minkowski", "p"):
        p = float(kwds.get("p", 2))
        metric = {1.0: "manhattan", 2.0: "euclidean", np.inf: "chebyshev"}.get(p, "minkowski")
        if metric == "minkowski":
            params["degree"] = p
        if kwds.get("w") is not None and p != np.inf:
            rows = [_by_columns(Z, np.asarray(kwds["w"], float) ** (1 / p)) for Z in rows]
    if metric == "chebyshev" and kwds.get("w") is not None:
        rows = [Z[:, np.asarray(kwds["w"], float) > 0] for Z in rows]
    elif metric in ("canberra", "hamming", "matching"):
        metric = "hamming" if metric == "matching" else metric
        if kwds.get("w") is not None:
            params["weights"] = np.require(kwds["w"], np.float64, "CA")
    elif metric in ("braycurtis", "sqeuclidean") and kwds.get("w") is not None:
        w = np.asarray(kwds["w"], float)
        rows = [Z * (w if metric == "braycurtis" else np.sqrt(w)) for Z in rows]
    elif metric == "seuclidean":
        metric, rows = "euclidean", [Z / np.sqrt(np.asarray(kwds["V"], float)) for Z in rows]
    elif metric == "mahalanobis":
        metric, W = "euclidean", _whitening(kwds["VI"])
        if W is None:
            return None
        finite = [Z[np.isfinite(Z).all(axis=1)] for Z in rows]
        middle = finite[-1].mean(axis=0) if finite[-1].size else 0.0
        with np.errstate(invalid="ignore"):
            rows = [(Z - middle) @ W for Z in rows]
    elif metric == "correlation":
        metric = "cosine_distance"
        w = np.ones(X.shape[1]) if kwds.get("w") is None else np.asarray(kwds["w"], float)
        rows = [(Z - np.average(Z, axis=1, weights=w)[:, None]) * np.sqrt(w) for Z in rows]
        rows = [_with_squares(Z) for Z in rows]
    if metric in ("euclidean", "sqeuclidean") and not is_finite(*rows):
        params["by_differences"] = True
    return Resolved(metric, rows[0], rows[-1], params)


def _by_columns(X: Any, factors: np.ndarray) -> Any:
    return X.multiply(factors).tocsr() if issparse(X) else X * factors


def correct_infinite(D: np.ndarray, X: np.ndarray, Y: np.ndarray, VI: Any) -> None:
    """Mahalanobis distances of rows that are not finite: they have no whitened form."""
    VI = np.asarray(VI, np.float64)
    with np.errstate(invalid="ignore"):
        for rows, others, to in ((X, Y, D), (Y, X, D.T)):
            for i in np.flatnonzero(~np.isfinite(rows).all(axis=1)):
                apart = rows[i].astype(np.float64) - others
                to[i] = np.sqrt(((apart @ VI) * apart).sum(axis=1))
    if X is Y:
        np.fill_diagonal(D, 0)
