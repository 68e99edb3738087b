"""Kernels: Gram matrices of all pairs of rows."""

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.metrics import pairwise as stock

from fastml._runtime.dispatch import accelerated
from fastml._runtime.parameters import validate_params
from fastml._runtime.plain import least, least_of_table
from fastml.metrics._rows import checked, pairs, replaces, sparse_product
from fastml.preprocessing._normalizer import normalized

stock_linear_kernel, stock_cosine_similarity = stock.linear_kernel, stock.cosine_similarity


def scale_of(gamma: Any, X: Any) -> float:
    """Gamma as a number; by default one over the number of columns."""
    return 1.0 / X.shape[1] if gamma is None else float(np.asarray(gamma).item())


def _is_array(gamma: Any) -> bool:
    return isinstance(gamma, np.ndarray) and gamma.size != 1


def _exponentials(D: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    """exp(-gamma D) with a gamma for each pair, each row or each column."""
    D *= -gamma
    return np.exp(D, out=D)


def _affine(X: Any, Y: Any, gamma: np.ndarray, coef0: float) -> np.ndarray:
    """gamma x·y + coef0 with a gamma for each pair, each row or each column."""
    K = pairs("linear", X, Y)
    K *= gamma
    K += coef0
    return K


@replaces(stock.linear_kernel)
def linear_kernel(X, Y=None, dense_output=True):
    """Inner products of all pairs of rows.

    Examples
    --------
    >>> from fastml.metrics.pairwise import linear_kernel
    >>> linear_kernel([[0, 0], [1, 1]], [[1, 0], [1, 2]])
    array([[0., 0.],
           [1., 3.]])
    """
    X, Y = checked(X, Y)
    if not dense_output and issparse(X) and issparse(Y):
        return sparse_product(X, Y, like=stock_linear_kernel)
    return pairs("linear", X, Y)


@replaces(stock.polynomial_kernel)
def polynomial_kernel(X, Y=None, degree=3, gamma=None, coef0=1):
    """Powers of inner products; whole ones by multiplication.

    Examples
    --------
    >>> from fastml.metrics.pairwise import polynomial_kernel
    >>> polynomial_kernel([[0, 0], [1, 1]], [[1, 0], [1, 1]], degree=2)
    array([[1.  , 1.  ],
           [2.25, 4.  ]])
    """
    X, Y = checked(X, Y)
    if _is_array(gamma):
        K = _affine(X, Y, gamma, coef0)
        return np.power(K, degree, out=K)
    return pairs("polynomial", X, Y, gamma=scale_of(gamma, X), coef0=coef0, degree=degree)


@replaces(stock.sigmoid_kernel)
def sigmoid_kernel(X, Y=None, gamma=None, coef0=1):
    """Hyperbolic tangents of inner products.

    Examples
    --------
    >>> from fastml.metrics.pairwise import sigmoid_kernel
    >>> sigmoid_kernel([[0, 0], [1, 1]], [[1, 0], [1, 1]]).round(2)
    array([[0.76, 0.76],
           [0.91, 0.96]])
    """
    X, Y = checked(X, Y)
    if _is_array(gamma):
        K = _affine(X, Y, gamma, coef0)
        return np.tanh(K, out=K)
    return pairs("sigmoid", X, Y, gamma=scale_of(gamma, X), coef0=coef0)


@replaces(stock.rbf_kernel)
def rbf_kernel(X, Y=None, gamma=None):
    """Gaussians of the distances of all pairs of rows, in one pass.

    Distances that are small beside the rows' norms are taken from differences of coordinates. The
    result of one matrix is exactly symmetric, with ones on its diagonal.

    Examples
    --------
    >>> from fastml.metrics.pairwise import rbf_kernel
    >>> rbf_kernel([[0, 0], [1, 1]], [[1, 0], [1, 1]]).round(2)
    array([[0.61, 0.37],
           [0.61, 1.  ]])
    """
    X, Y = checked(X, Y)
    if _is_array(gamma):
        return _exponentials(pairs("sqeuclidean", X, Y), gamma)
    return pairs("rbf", X, Y, gamma=scale_of(gamma, X))


@replaces(stock.laplacian_kernel)
def laplacian_kernel(X, Y=None, gamma=None):
    """Exponentials of the L1 distances of all pairs of rows, in one pass and in float64.

    Examples
    --------
    >>> from fastml.metrics.pairwise import laplacian_kernel
    >>> laplacian_kernel([[0, 0], [1, 1]], [[1, 0], [1, 1]]).round(2)
    array([[0.61, 0.37],
           [0.61, 1.  ]])
    """
    X, Y = checked(X, Y)
    if _is_array(gamma):
        return _exponentials(pairs("manhattan", X, Y, double=True), gamma)
    return pairs("laplacian", X, Y, double=True, gamma=scale_of(gamma, X))


def _unit(X: Any) -> Any:
    return normalized(X, "l2", in_place=False, name="X", estimator=None)[0]


@replaces(stock.cosine_similarity)
def cosine_similarity(X, Y=None, dense_output=True):
    """Cosines of the angles between all pairs of rows; a row of zeros has none with any.

    Examples
    --------
    >>> from fastml.metrics.pairwise import cosine_similarity
    >>> cosine_similarity([[0, 0], [1, 1]], [[1, 0], [2, 2]]).round(3)
    array([[0.   , 0.   ],
           [0.707, 1.   ]])
    """
    X, Y = checked(X, Y)
    if not dense_output and issparse(X) and issparse(Y):
        unit = _unit(X)
        return sparse_product(unit, unit if X is Y else _unit(Y), like=stock_cosine_similarity)
    return pairs("cosine", X, Y)


def check_histograms(X: Any, Y: Any, accept_sparse: Any = False) -> tuple[Any, Any]:
    if Y is None and least_of_table(X) >= 0:
        return X, X
    X, Y = checked(X, Y, accept_sparse=accept_sparse)
    _check_counts("X", X)
    if Y is not X:
        _check_counts("Y", Y)
    return X, Y


def _check_counts(name: str, X: Any) -> None:
    values = X.data[None] if issparse(X) else X
    if values.size and least(values) < 0:
        raise ValueError(f"{name} contains negative values.")


@replaces(stock.additive_chi2_kernel)
def additive_chi2_kernel(X, Y=None):
    """Chi-squared distances of all pairs of histograms, negative.

    Examples
    --------
    >>> from fastml.metrics.pairwise import additive_chi2_kernel
    >>> additive_chi2_kernel([[0, 0], [1, 1]], [[1, 0], [1, 3]])
    array([[-1., -4.],
           [-1., -1.]])
    """
    return pairs("additive_chi2", *check_histograms(X, Y))


@replaces(stock.chi2_kernel)
def chi2_kernel(X, Y=None, gamma=1.0):
    """Exponentials of the chi-squared distances of all pairs of histograms, in one pass.

    Examples
    --------
    >>> from fastml.metrics.pairwise import chi2_kernel
    >>> chi2_kernel([[0, 0], [1, 1]], [[1, 0], [1, 1]]).round(3)
    array([[0.368, 0.135],
           [0.368, 1.   ]])
    """
    X, Y = check_histograms(X, Y)
    if _is_array(gamma):
        return _exponentials(-pairs("additive_chi2", X, Y), gamma)
    return pairs("chi2", X, Y, gamma=scale_of(gamma, X))


@accelerated
@validate_params(
    {
        "X": ["array-like", "sparse matrix"],
        "Y": ["array-like", "sparse matrix", None],
        "normalize": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def intersection_kernel(X, Y=None, normalize=False):
    """What all pairs of histograms have in common, ``sum(min(x, y))``.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples_X, n_features)
        Histograms: no value is negative.

    Y : {array-like, sparse matrix} of shape (n_samples_Y, n_features), default=None
        More of them; X if None.

    normalize : bool, default=False
        Whether to divide by ``sqrt(sum(x) * sum(y))``, so that a histogram has 1 in common with
        itself. One of zeros has 0 in common with any.

    Returns
    -------
    kernel : ndarray of shape (n_samples_X, n_samples_Y)
        The Gram matrix.

    Examples
    --------
    >>> from fastml.metrics.pairwise import intersection_kernel
    >>> intersection_kernel([[1, 2], [0, 4]], [[3, 1], [1, 2]])
    array([[2., 3.],
           [1., 2.]])
    """
    X, Y = check_histograms(X, Y, accept_sparse="csr")
    return pairs("normalized_intersection" if normalize else "intersection", X, Y)
