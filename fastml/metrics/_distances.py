"""Distances of all pairs of rows."""

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.metrics import pairwise as stock
from sklearn.utils import check_array
from sklearn.utils._mask import _get_mask
from sklearn.utils._missing import is_scalar_nan
from sklearn.utils.extmath import row_norms

from fastml.metrics._rows import checked, pairs, replaces


@replaces(stock.euclidean_distances)
def euclidean_distances(X, Y=None, *, Y_norm_squared=None, squared=False, X_norm_squared=None):
    """Euclidean distances of all pairs of rows.

    Distances that are small beside the rows' norms are taken from differences of coordinates. The
    result of one matrix is exactly symmetric, with zeros on its diagonal. The norms are not needed;
    others than those of the rows are taken at their word.

    Examples
    --------
    >>> from fastml.metrics.pairwise import euclidean_distances
    >>> euclidean_distances([[0, 1], [1, 1]], [[0, 0], [4, 5]])
    array([[1.        , 5.65685425],
           [1.41421356, 5.        ]])
    """
    X, Y = checked(X, Y)
    of_X, of_Y = other_norms("X", X, X_norm_squared), other_norms("Y", Y, Y_norm_squared)
    if of_X is not None or (of_Y is not None and Y is not X):
        return from_norms(X, Y, of_X, of_Y, squared)
    return pairs("sqeuclidean" if squared else "euclidean", X, Y)


def other_norms(name: str, X: Any, norms: Any) -> np.ndarray | None:
    """Norms as they were given, if they are not those of the rows; scikit-learn uses no float32."""
    if norms is None:
        return None
    norms = check_array(norms, ensure_2d=False)
    if norms.shape not in ((X.shape[0],), (1, X.shape[0]), (X.shape[0], 1)):
        raise ValueError(
            f"Incompatible dimensions for {name} of shape {X.shape} and "
            f"{name}_norm_squared of shape {norms.shape}."
        )
    if norms.dtype == np.float32 or np.allclose(norms.ravel(), squared_norms(X)):
        return None
    return norms


def squared_norms(X: Any) -> np.ndarray:
    return row_norms(X.astype(np.float64, copy=False), squared=True)


def from_norms(X: Any, Y: Any, of_X: Any, of_Y: Any, squared: bool) -> np.ndarray:
    """|x|² + |y|² - 2 x·y with the norms that are given, in double."""
    a = squared_norms(X) if of_X is None else of_X
    b = squared_norms(Y) if of_Y is None else of_Y
    D = pairs("linear", X, Y, double=True)
    D *= -2
    D += a.reshape(-1, 1)
    D += (a if Y is X else b).reshape(1, -1)
    np.maximum(D, 0, out=D)
    if Y is X:
        np.fill_diagonal(D, 0)
    return (D if squared else np.sqrt(D, out=D)).astype(X.dtype, copy=False)


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
