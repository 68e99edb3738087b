"""Metrics by name, beyond those that are functions of scikit-learn's: which are compiled, and how.

Some are the Euclidean distance of other rows: scaled, whitened or normalised ones. Those of truth
values count bits.
"""

from typing import Any, NamedTuple

import numpy as np

from fastml._native import pairwise as native
from fastml._runtime.dispatch import Unsupported
from fastml.metrics._rows import threads

# Their parameters; those beside `p`, `w`, `V` and `VI` have none that is compiled.
COMPILED = {
    "braycurtis": ("w",),
    "canberra": (),
    "chebyshev": ("w",),
    "correlation": ("w",),
    "dice": (),
    "hamming": (),
    "jaccard": (),
    "mahalanobis": ("VI",),
    "matching": (),
    "minkowski": ("p", "w"),
    "rogerstanimoto": (),
    "russellrao": (),
    "seuclidean": ("V",),
    "sokalmichener": (),
    "sokalsneath": (),
    "sqeuclidean": ("w",),
    "yule": (),
}
# Of truth values, and what they are called where they are compiled.
BOOLEAN = {name: name for name in native.Agreement.__members__} | {
    "sokalmichener": "rogerstanimoto"
}


class Resolved(NamedTuple):
    """A compiled measure with its parameters, and the rows to apply it to."""

    metric: str
    X: np.ndarray
    Y: np.ndarray
    params: dict[str, Any]


def refusal(metric: str, X: Any, Y: Any, ensure_all_finite: Any, kwds: dict) -> Unsupported | None:
    """Why SciPy has to compute one of its metrics, or to say what is wrong with its parameters."""
    if metric not in COMPILED:
        return Unsupported("metric", f"{metric} is not compiled", "use a metric that is")
    if ensure_all_finite is not True and _treats_nan(metric, kwds) and not _is_finite(X, Y):
        instead = "impute, or use nan_euclidean"
        return Unsupported("X", f"what {metric} makes of NaN and infinity is SciPy's", instead)
    unknown = sorted(set(kwds) - set(COMPILED[metric]))
    if unknown:
        return Unsupported(unknown[0], f"{metric} is compiled without it", "leave it out")
    if not _parameters_are_plain(kwds):
        return Unsupported(next(iter(kwds)), "its values are not of the usual kind", "see SciPy's")
    return None


def _treats_nan(metric: str, kwds: dict) -> bool:
    """Whether a row with NaN or infinity needs more than what the formula makes of it."""
    if metric == "minkowski":
        return kwds.get("p", 2) in (2, np.inf)  # by dot products, or a maximum
    return metric not in ("braycurtis", "canberra", *BOOLEAN)


def _is_finite(*matrices: Any) -> bool:
    try:
        return all(np.isfinite(np.asarray(Z, float).sum()) for Z in matrices if Z is not None)
    except (TypeError, ValueError):
        return False


def _parameters_are_plain(kwds: dict) -> bool:
    p, w, V, VI = (kwds.get(name) for name in ("p", "w", "V", "VI"))
    try:
        return (
            (p is None or float(p) > 0)
            and (w is None or bool(np.all(np.asarray(w, float) >= 0) and np.ndim(w) == 1))
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
    rows = [np.asarray(Z, dtype=np.float64) for Z in rows]
    params: dict[str, Any] = {}
    if metric in ("minkowski", "p"):
        p = float(kwds.get("p", 2))
        metric = {1.0: "manhattan", 2.0: "euclidean", np.inf: "chebyshev"}.get(p, "minkowski")
        if metric == "minkowski":
            params["degree"] = p
        if kwds.get("w") is not None and p != np.inf:
            rows = [Z * np.asarray(kwds["w"], float) ** (1 / p) for Z in rows]
    if metric == "chebyshev" and kwds.get("w") is not None:
        rows = [Z[:, np.asarray(kwds["w"], float) > 0] for Z in rows]
    elif metric == "matching":
        metric = "hamming"
    elif metric in ("braycurtis", "sqeuclidean") and kwds.get("w") is not None:
        w = np.asarray(kwds["w"], float)
        rows = [Z * (w if metric == "braycurtis" else np.sqrt(w)) for Z in rows]
    elif metric == "seuclidean":
        metric, rows = "euclidean", [Z / np.sqrt(np.asarray(kwds["V"], float)) for Z in rows]
    elif metric == "mahalanobis":
        metric, middle, W = "euclidean", rows[-1].mean(axis=0), _whitening(kwds["VI"])
        if W is None:
            return None
        rows = [(Z - middle) @ W for Z in rows]
    elif metric == "correlation":
        metric = "cosine_distance"
        w = np.ones(X.shape[1]) if kwds.get("w") is None else np.asarray(kwds["w"], float)
        rows = [(Z - np.average(Z, axis=1, weights=w)[:, None]) * np.sqrt(w) for Z in rows]
    return Resolved(metric, rows[0], rows[-1], params)


def of_truth_values(metric: str, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Distances of all pairs of rows of bools."""
    x = _packed(X)
    y = x if X is Y else _packed(Y)
    D = np.empty((len(X), len(Y)))
    native.boolean_distances(x, y, X.shape[1], BOOLEAN[metric], D, threads())
    return D


def _packed(X: np.ndarray) -> np.ndarray:
    """Rows of bits, in whole words."""
    words = np.zeros((len(X), -(-X.shape[1] // 64)), np.uint64)
    packed = np.packbits(X, axis=1)
    words.view(np.uint8)[:, : packed.shape[1]] = packed
    return words
