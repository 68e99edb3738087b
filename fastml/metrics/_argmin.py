"""The nearest of the rows of one matrix to every row of another."""

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.metrics import pairwise as stock
from sklearn.metrics._pairwise_distances_reduction import ArgKmin
from sklearn.utils import gen_batches

from fastml._native import pairwise as native
from fastml._runtime.dispatch import Unsupported
from fastml._runtime.sparse import dense_blocks
from fastml.metrics import _metrics
from fastml.metrics._dispatch import pairwise_distances_chunked
from fastml.metrics._distances import from_norms, other_norms, squared_norms
from fastml.metrics._rows import checked, left_sparse, measure_of, replaces, rows_of, threads

# In one pass, without a matrix of distances. True: of sparse rows as they are. Of others few stored
# entries are met one by one; if they are more, dense blocks are made.
ONE_PASS = {
    "euclidean": True,
    "l2": True,
    "sqeuclidean": True,
    "manhattan": True,
    "l1": True,
    "cityblock": True,
    "cosine": True,
    "chebyshev": False,
    "infinity": False,
    "minkowski": False,
    "p": False,
    "haversine": False,
    "canberra": False,
    "braycurtis": False,
    "hamming": False,
    "matching": False,
    "seuclidean": False,
}
NAMES = {
    "l2": "euclidean",
    "l1": "manhattan",
    "cityblock": "manhattan",
    "cosine": "cosine_distance",
    "infinity": "chebyshev",
    "matching": "hamming",
    "braycurtis": "relative",  # as scikit-learn has it here, and not SciPy's
}
NORMS = ("X_norm_squared", "Y_norm_squared")
ONE_BY_ONE = ("chebyshev", "infinity", "minkowski", "p", "canberra", "braycurtis")


def _refusal(
    X: Any, Y: Any, *, axis: Any = 1, metric: Any = "euclidean", metric_kwargs: Any = None
) -> Unsupported | None:
    if callable(metric) or metric not in (*ArgKmin.valid_metrics(), *ONE_PASS):
        return None
    if not isinstance(metric_kwargs, dict | None):
        return None  # an error, which is the checks' to raise
    kwds = metric_kwargs or {}
    if metric not in ONE_PASS:
        return Unsupported("metric", f"{metric} is not compiled for this", "use another metric")
    if metric in ("minkowski", "p", "seuclidean"):
        return _metrics.refusal("minkowski" if metric == "p" else metric, X, kwds)
    if metric == "hamming" and set(kwds) == {"w"}:
        return _metrics.refusal(metric, X, kwds)
    if not ((metric == "euclidean" and kwds.keys() <= {"squared", *NORMS}) or not kwds):
        return Unsupported("metric_kwargs", f"{metric} is compiled without any", "leave them out")
    return None


@replaces(stock.pairwise_distances_argmin_min, unless=_refusal)
def pairwise_distances_argmin_min(X, Y, *, axis=1, metric="euclidean", metric_kwargs=None):
    """The nearest row of Y to every row of X, the first of equals, and how far it is.

    Examples
    --------
    >>> from fastml.metrics.pairwise import pairwise_distances_argmin_min
    >>> index, distance = pairwise_distances_argmin_min([[0, 0], [1, 3]], [[1, 2], [0, 1]])
    >>> index
    array([1, 0])
    >>> distance
    array([1., 1.])
    """
    return _nearest(X, Y, axis, metric, metric_kwargs or {})


@replaces(stock.pairwise_distances_argmin, unless=_refusal)
def pairwise_distances_argmin(X, Y, *, axis=1, metric="euclidean", metric_kwargs=None):
    """The nearest row of Y to every row of X, the first of equals.

    Examples
    --------
    >>> from fastml.metrics.pairwise import pairwise_distances_argmin
    >>> pairwise_distances_argmin([[0, 0], [1, 3]], [[1, 2], [0, 1]])
    array([1, 0])
    """
    return _nearest(X, Y, axis, metric, metric_kwargs or {})[0]


def _nearest(
    X: Any, Y: Any, axis: int, metric: Any, kwds: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    nan = isinstance(metric, str) and metric == "nan_euclidean"
    X, Y = checked(X, Y, ensure_all_finite="allow-nan" if nan else True)
    if axis == 0:
        X, Y = Y, X
    by_norms = isinstance(metric, str) and metric == "euclidean" and not kwds.get("squared")
    if by_norms and not kwds.keys().isdisjoint(NORMS):  # scikit-learn squares without them, too
        wide = (None if kwds.get(name) is None else np.asarray(kwds[name], float) for name in NORMS)
        of_X, of_Y = (other_norms(*args) for args in zip("XY", (X, Y), wide, strict=True))
        if of_X is not None or of_Y is not None:
            return _by_norms(X, Y, of_X, of_Y)
    weighted = isinstance(metric, str) and metric == "hamming" and kwds
    if not callable(metric) and metric in ONE_PASS and not weighted:
        as_they_are = ONE_PASS[metric] or not (issparse(X) or issparse(Y))
        if as_they_are or (metric in ONE_BY_ONE and _are_hollow(X, Y)):
            return _in_one_pass(X, Y, metric, kwds)
        return _indense_blocks(X, Y, metric, kwds)
    with config_context(assume_finite=True):  # it has been checked
        parts = list(pairwise_distances_chunked(X, Y, reduce_func=_least, metric=metric, **kwds))
    index, distance = zip(*parts, strict=True)
    return np.concatenate(index), np.concatenate(distance)


def _by_norms(
    X: Any, Y: Any, of_X: np.ndarray | None, of_Y: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """By norms that are not those of the rows."""
    a = (squared_norms(X) if of_X is None else of_X).ravel()
    b = squared_norms(Y) if of_Y is None else of_Y
    index, distance = np.empty(X.shape[0], np.intp), np.empty(X.shape[0])
    for rows in gen_batches(X.shape[0], max(1, (1 << 22) // Y.shape[0])):
        D = from_norms(X[rows], Y, a[rows], b, squared=False)
        index[rows], distance[rows] = _least(D, rows.start)
    return index, distance


def _least(D: np.ndarray, start: int) -> tuple[np.ndarray, np.ndarray]:
    index = D.argmin(axis=1)
    return index, D[np.arange(len(D)), index]


def _are_hollow(X: Any, Y: Any) -> bool:
    """Whether so few entries are stored that meeting them alone takes less than all in vectors."""
    if not (issparse(X) and issparse(Y)):
        return False
    return X.nnz / X.shape[0] + Y.nnz / Y.shape[0] < X.shape[1] / 32


def _indense_blocks(
    X: Any, Y: Any, metric: str, kwds: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    index = np.empty(X.shape[0], np.intp)
    distance = np.full(X.shape[0], np.inf)
    for rows, block in dense_blocks(X):
        for others, candidates in dense_blocks(Y):
            found, at = _in_one_pass(block, candidates, metric, kwds)
            nearer = at < distance[rows]
            if others.start == 0:
                nearer[:] = True
            index[rows] = np.where(nearer, found + others.start, index[rows])
            distance[rows] = np.where(nearer, at, distance[rows])
    return index, distance


def _in_one_pass(
    X: Any, Y: Any, metric: str, kwds: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    dtype = X.dtype
    params: dict[str, Any] = {}
    given, metric = metric, NAMES.get(metric, metric)
    if metric == "seuclidean" and kwds.get("V") is None:
        raise TypeError("The 'V' parameter is required for the seuclidean metric.")
    if metric in ("minkowski", "p", "seuclidean"):
        resolved = _metrics.resolve(metric, X, Y, kwds)
        assert resolved is not None  # only a VI may have no root
        metric, X, Y, params = resolved
    elif metric == "euclidean":
        metric = "sqeuclidean" if kwds.get("squared") else metric
    elif given == "matching":  # of truth values, as scikit-learn has it here
        X, Y = (X != 0).astype(np.float64), (Y != 0).astype(np.float64)
    elif metric == "haversine" and X.shape[1] != 2:
        raise ValueError("Haversine distance only valid in 2 dimensions")
    elif metric != "cosine_distance":
        X, Y = X.astype(np.float64, copy=False), Y.astype(np.float64, copy=False)
    x, y = map(rows_of, left_sparse(X, Y))
    index, distance = np.empty(x.n, np.int64), np.empty(x.n)
    native.nearest(x, y, measure_of(metric, **params), index, distance, threads())
    if metric == "cosine_distance":
        distance = distance.astype(dtype, copy=False)
    return index.astype(np.intp, copy=False), distance
