"""What a matrix of moderate size spans: bases, rank, definiteness, pseudo-inverse."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from sklearn.utils import check_array

from fastml._runtime.eigen import eigenpairs

_PANEL = 32


class Basis(NamedTuple):
    """What Gram-Schmidt makes of a matrix.

    Attributes
    ----------
    Q : ndarray of shape (n, r)
        Orthonormal columns.

    R : ndarray of shape (r, k)
        Upper trapezoidal, such that Q R is the matrix.

    columns : ndarray of shape (r,)
        Which columns of the matrix brought something new.
    """

    Q: np.ndarray
    R: np.ndarray
    columns: np.ndarray


class Definiteness(NamedTuple):
    """What the eigenvalues of a symmetric matrix say of x'Ax.

    Attributes
    ----------
    kind : str
        "positive definite", "positive semidefinite", "negative definite", "negative semidefinite",
        "indefinite" or "zero".

    least, greatest : float
        The extreme eigenvalues.

    vectors : ndarray of shape (n, 2)
        Their eigenvectors: x'Ax is `least` for the first, and `greatest` for the second.

    reason : str
        The same in words.
    """

    kind: str
    least: float
    greatest: float
    vectors: np.ndarray
    reason: str


def orthonormalize(X: Any, *, tol: float | None = None) -> Basis:
    """Make the columns of a matrix orthonormal, one after another, and drop those that depend.

    Gram-Schmidt, whose plain form loses orthogonality as the square of the condition: each column
    is projected twice, which keeps it to rounding whatever the condition. The first columns of Q
    span what the first columns of X span.

    Parameters
    ----------
    X : array-like of shape (n, k)
        The columns.

    tol : float, default=None
        A column is dropped if what is new in it is no more than `tol` times its norm. By default
        max(n, k) times the rounding unit of its dtype.

    Returns
    -------
    Basis
        Q (n, r), R (r, k) with Q R = X, and the columns (r,) that were kept.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.linalg import orthonormalize
    >>> found = orthonormalize([[1.0, 2.0, 0.0], [0.0, 0.0, 3.0], [1.0, 2.0, 0.0]])
    >>> found.columns
    array([0, 2])
    >>> (found.Q.T @ found.Q).round(12)
    array([[1., 0.],
           [0., 1.]])
    """
    X = check_array(X, dtype=(np.float64, np.float32))
    n, k = X.shape
    tol = max(n, k) * np.finfo(X.dtype).eps if tol is None else tol
    Q = np.empty((n, min(n, k)), X.dtype, order="F")
    R = np.zeros((min(n, k), k), X.dtype)
    columns: list[int] = []
    for begin in range(0, k, _PANEL):
        panel = np.array(X[:, begin : begin + _PANEL], order="F")
        norms = np.linalg.norm(panel, axis=0)
        old = len(columns)
        # Against what came before the panel all at once, as a product of matrices.
        for _ in range(2):
            part = Q[:, :old].T @ panel
            panel -= Q[:, :old] @ part
            R[:old, begin : begin + panel.shape[1]] += part
        for j in range(panel.shape[1]):
            r, x = len(columns), panel[:, j]
            for _ in range(2):
                part = Q[:, old:r].T @ x
                x -= Q[:, old:r] @ part
                R[old:r, begin + j] += part
            size = np.linalg.norm(x)
            if r < n and size > tol * norms[j]:
                # Once more against all: what cancels leaves rounding that is not orthogonal.
                x /= size
                x -= Q[:, :r] @ (Q[:, :r].T @ x)
                Q[:, r] = x / np.linalg.norm(x)
                R[r, begin + j] = size
                columns.append(begin + j)
    r = len(columns)
    return Basis(Q[:, :r], R[:r], np.array(columns, dtype=np.intp))


def rank(A: Any, *, tol: float | None = None) -> int:
    """Count the singular values that rounding cannot explain.

    Parameters
    ----------
    A : array-like of shape (n, d)
        The matrix.

    tol : float, default=None
        A singular value counts if it is above `tol` times the largest. By default max(n, d) times
        the rounding unit of the dtype.

    Returns
    -------
    int
        The rank.

    Examples
    --------
    >>> from fastml.linalg import rank
    >>> rank([[1.0, 2.0], [2.0, 4.0], [0.0, 0.0]])
    1
    """
    A = check_array(A, dtype=(np.float64, np.float32))
    return _significant(A, linalg.svdvals(_square(A), check_finite=False), tol)


def null_space(A: Any, *, tol: float | None = None) -> np.ndarray:
    """Find an orthonormal basis of what a matrix takes to zero.

    Parameters
    ----------
    A : array-like of shape (n, d)
        The matrix.

    tol : float, default=None
        As for `rank`.

    Returns
    -------
    ndarray of shape (d, d - rank)
        Orthonormal columns Z, all of A Z = 0.

    Examples
    --------
    >>> from fastml.linalg import null_space
    >>> abs(null_space([[1.0, 1.0], [2.0, 2.0]]).round(4))
    array([[0.7071],
           [0.7071]])
    """
    A = check_array(A, dtype=(np.float64, np.float32))
    R = linalg.qr(A, mode="r", check_finite=False)[0][: A.shape[1]] if _is_tall(A) else A
    _, s, Vt = linalg.svd(R, check_finite=False)
    return Vt[_significant(A, s, tol) :].T


def column_space(A: Any, *, tol: float | None = None) -> np.ndarray:
    """Find an orthonormal basis of the columns of a matrix.

    Parameters
    ----------
    A : array-like of shape (n, d)
        The matrix.

    tol : float, default=None
        As for `rank`.

    Returns
    -------
    ndarray of shape (n, rank)
        Left singular vectors, that of the largest singular value first.

    Examples
    --------
    >>> from fastml.linalg import column_space
    >>> abs(column_space([[3.0, 3.0], [4.0, 4.0]]).round(4))
    array([[0.6],
           [0.8]])
    """
    U, _, _ = _significant_svd(A, tol)
    return U


def pseudo_inverse(A: Any, *, tol: float | None = None) -> np.ndarray:
    """Invert a matrix where it can be inverted: the inverse of Moore and Penrose.

    Parameters
    ----------
    A : array-like of shape (n, d)
        The matrix.

    tol : float, default=None
        As for `rank`: smaller singular values are taken for zero.

    Returns
    -------
    ndarray of shape (d, n)
        P such that P b is the shortest of the x for which Ax is nearest to b.

    Examples
    --------
    >>> from fastml.linalg import pseudo_inverse
    >>> pseudo_inverse([[2.0, 0.0], [0.0, 0.0]])
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    U, s, Vt = _significant_svd(A, tol)
    return (Vt.T / s) @ U.T + 0.0  # no negative zeros


def definiteness(A: Any, *, tol: float | None = None) -> Definiteness:
    """Say whether x'Ax is positive, negative or both, and why.

    By eigenvalues: neither the determinant nor the diagonal tells (both are positive for the
    indefinite diag(-1, -1, 1) and [[1, 2], [2, 1]] respectively).

    Parameters
    ----------
    A : array-like of shape (n, n)
        A symmetric matrix.

    tol : float, default=None
        Eigenvalues within `tol` times the one of largest magnitude are taken for zero. By default n
        times the rounding unit of the dtype.

    Returns
    -------
    Definiteness
        kind, least and greatest eigenvalue, their vectors, reason.

    Examples
    --------
    >>> from fastml.linalg import definiteness
    >>> found = definiteness([[1.0, 2.0], [2.0, 1.0]])
    >>> found.kind
    'indefinite'
    >>> print(found.reason)
    eigenvalues from -1 to 3: x'Ax < 0 along the first vector, and > 0 along the second
    """
    A = check_array(A, dtype=(np.float64, np.float32))
    n = len(A)
    if A.shape != (n, n) or not np.allclose(A, A.T, rtol=0, atol=_unit(A) * abs(A).max()):
        raise ValueError("the matrix is not symmetric: x'Ax is that of (A + A.T) / 2")
    values, vectors = eigenpairs(A)
    least, greatest = float(values[-1]), float(values[0])
    zero = (_unit(A) if tol is None else tol) * max(abs(least), abs(greatest))
    kind, why = _kind(least, greatest, zero)
    reason = f"eigenvalues from {least:.4g} to {greatest:.4g}: {why}"
    return Definiteness(kind, least, greatest, vectors[[-1, 0]].T, reason)


def _kind(least: float, greatest: float, zero: float) -> tuple[str, str]:
    if max(abs(least), abs(greatest)) <= zero:
        return "zero", "x'Ax = 0 for all x"
    if least < -zero and greatest > zero:
        along = "x'Ax < 0 along the first vector, and > 0 along the second"
        return "indefinite", along
    sign, relation, near = (
        ("positive", ">", least) if greatest > zero else ("negative", "<", greatest)
    )
    if abs(near) <= zero:
        which = "first" if sign == "positive" else "second"
        return f"{sign} semidefinite", f"x'Ax {relation}= 0, and 0 along the {which} vector"
    return f"{sign} definite", f"x'Ax {relation} 0 for all x but 0"


def _unit(A: np.ndarray) -> float:
    return float(max(A.shape) * np.finfo(A.dtype).eps)


def _is_tall(A: np.ndarray) -> bool:
    return A.shape[0] > 2 * A.shape[1]


def _square(A: np.ndarray) -> np.ndarray:
    """Something smaller with the singular values of A."""
    A = A if A.shape[0] >= A.shape[1] else A.T
    return linalg.qr(A, mode="r", check_finite=False)[0][: A.shape[1]] if _is_tall(A) else A


def _significant(A: np.ndarray, s: np.ndarray, tol: float | None) -> int:
    return int((s > (_unit(A) if tol is None else tol) * s.max()).sum())


def _significant_svd(A: Any, tol: float | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    A = check_array(A, dtype=(np.float64, np.float32))
    U, s, Vt = linalg.svd(A, full_matrices=False, check_finite=False)
    r = _significant(A, s, tol)
    return U[:, :r], s[:r], Vt[:r]
