"""Distances of all pairs of rows."""

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.metrics import pairwise as stock
from sklearn.utils import check_array
from sklearn.utils._mask import _get_mask
from sklearn.utils._missing import is_scalar_nan
from sklearn.utils.extmath import row_norms

from fastml._runtime.dispatch import Unsupported
from fastml.metrics._rows import checked, pairs, replaces


def _norms_are_others(
    X: Any,
    Y: Any = None,
    *,
    Y_norm_squared: Any = None,
    squared: Any = False,
    X_norm_squared: Any = None,
) -> Unsupported | None:
    for name, Z, norms in (("X", X, X_norm_squared), ("Y", Y, Y_norm_squared)):
        if getattr(norms, "dtype", None) != np.float64 or Z is None:
            continue  # scikit-learn leaves others unused
        actual = row_norms(Z if issparse(Z) else np.asarray(Z, dtype=np.float64), squared=True)
        if norms.size == actual.size and not np.allclose(norms.ravel(), actual):
            instead = "leave them out: there is no gain in passing them"
            return Unsupported(f"{name}_norm_squared", "they are not the rows' norms", instead)
    return None


@replaces(stock.euclidean_distances, unless=_norms_are_others)
def euclidean_distances(X, Y=None, *, Y_norm_squared=None, squared=False, X_norm_squared=None):
    """Euclidean distances of all pairs of rows.

    Distances that are small beside the rows' norms are taken from differences of coordinates. The
    result of one matrix is exactly symmetric, with zeros on its diagonal. The norms are not needed.

    Examples
    --------
    >>> from fastml.metrics.pairwise import euclidean_distances
    >>> euclidean_distances([[0, 1], [1, 1]], [[0, 0], [4, 5]])
    array([[1.        , 5.65685425],
           [1.41421356, 5.        ]])
    """
    X, Y = checked(X, Y)
    _check_norms("X", X, X_norm_squared)
    _check_norms("Y", Y, Y_norm_squared)
    return pairs("sqeuclidean" if squared else "euclidean", X, Y)


def _check_norms(name: str, X: Any, norms: Any) -> None:
    if norms is None:
        return
    shape = check_array(norms, ensure_2d=False).shape
    if shape not in ((X.shape[0],), (1, X.shape[0]), (X.shape[0], 1)):
        raise ValueError(
            f"Incompatible dimensions for {name} of shape {X.shape} and "
            f"{name}_norm_squared of shape {shape}."
        )


@replaces(stock.nan_euclidean_distances)
def nan_euclidean_distances(X, Y=None, *, squared=False, missing_values=np.nan, copy=True):
    """Euclidean distances over the coordinates that neither row lacks, scaled up to all of them.

    X and Y are never written to, whatever `copy` says.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.metrics.pairwise import nan_euclidean_distances
    >>> nan_euclidean_distances([[3, np.nan], [1, 1]], [[0, 5]])
    array([[4.24264069],
           [4.12310563]])
    """
    finite = "allow-nan" if is_scalar_nan(missing_values) else True
    X, Y = checked(X, Y, accept_sparse=False, ensure_all_finite=finite)
    if finite is True:
        symmetric = X is Y
        X = np.where(_get_mask(X, missing_values), X.dtype.type(np.nan), X)
        Y = X if symmetric else np.where(_get_mask(Y, missing_values), Y.dtype.type(np.nan), Y)
    return pairs("nan_sqeuclidean" if squared else "nan_euclidean", X, Y)


@replaces(stock.manhattan_distances)
def manhattan_distances(X, Y=None):
    """L1 distances of all pairs of rows, in float64. Sparse rows are never written to.

    Examples
    --------
    >>> from fastml.metrics.pairwise import manhattan_distances
    >>> manhattan_distances([[1, 2], [3, 4]], [[1, 2], [0, 3]])
    array([[0., 2.],
           [4., 4.]])
    """
    return pairs("manhattan", *checked(X, Y), double=True)


@replaces(stock.cosine_distances)
def cosine_distances(X, Y=None):
    """One minus the cosines of the angles between all pairs of rows.

    Examples
    --------
    >>> from fastml.metrics.pairwise import cosine_distances
    >>> cosine_distances([[0, 0], [1, 1]], [[1, 0], [1, 1]]).round(3)
    array([[1.   , 1.   ],
           [0.293, 0.   ]])
    """
    return pairs("cosine_distance", *checked(X, Y))


@replaces(stock.haversine_distances)
def haversine_distances(X, Y=None):
    """Angles between points on a sphere, given as latitude and longitude in radians.

    Examples
    --------
    >>> from math import radians
    >>> from fastml.metrics.pairwise import haversine_distances
    >>> ezeiza, paris = [-34.83333, -58.5166646], [49.0083899664, 2.53844117956]
    >>> angles = haversine_distances([[radians(x) for x in ezeiza]], [[radians(x) for x in paris]])
    >>> (angles * 6371).round()  # kilometres
    array([[11100.]])
    """
    X, Y = checked(X, Y, dtype=np.float64)
    if X.shape[1] != 2:
        raise ValueError("Haversine distance only valid in 2 dimensions")
    if issparse(X) or issparse(Y):
        symmetric = X is Y
        X = X.toarray() if issparse(X) else X
        Y = X if symmetric else (Y.toarray() if issparse(Y) else Y)
    return pairs("haversine", X, Y)
