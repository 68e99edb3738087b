"""Singular values and right singular vectors of centred data, from products of its columns or rows.

Products are had at the speed of a matrix multiplication and read the data once, but they square
it: of a singular value below the root of `TRUSTED` of the largest, and of its vector, they lose
more digits than are given away here. Those few are computed again by LAPACK, from what the data is
in the space that they span: the others are gone from it, and so is the loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from scipy import linalg
from sklearn.utils import assert_all_finite, gen_batches

from fastml._native import scaling
from fastml._native.covariance import products, sparse_products
from fastml._native.gemm import gemm
from fastml._runtime.blas import product
from fastml._runtime.eigen import Tridiagonal
from fastml._runtime.sparse import with_short_indices
from fastml._runtime.threads import n_threads
from fastml.linalg._units import exponent_of, in_units
from fastml.preprocessing._matrix import readable

# Smallest part of the largest eigenvalue that products of doubles tell to twelve digits.
TRUSTED = 1e-4
# The same where numbers of single precision are multiplied in double: to all they have.
TRUSTED_OF_SINGLE = 1e-12
# Data less than so many times as long as wide is sooner decomposed as it is than by its products
# and then for what these lose, if that is more than half of the spectrum.
NEARLY_SQUARE = 3
# Data more than so many times as wide as long is sooner decomposed by products of rows, though
# those of columns have its vectors at once.
WIDE = 8 / 7
# Values of a block that is centred on its way.
BLOCK = 1 << 17
# Up to so many values are sooner copied into rows than their product needs to begin.
FEW = 1 << 16
# Of so many coefficients BLAS keeps in cache what is needed next: it is for large products.
MANY = 1 << 20
# A matrix of so few values OpenBLAS multiplies with vectors on one thread. Those that it wakes for
# more wait busily for a tenth of a second, in the way of those that have to work next.
ALONE = 1 << 13


class Spectrum(NamedTuple):
    """Of the centred X: all that there are, or the leading ones, in descending order.

    squares: of singular values.
    vectors: right singular vectors, a row each.
    total: sum of all squares.
    exponent: all are of X over 2**exponent, whose squares are numbers.
    """

    squares: np.ndarray
    vectors: np.ndarray
    total: float
    exponent: int = 0


def covariance(X: np.ndarray, dtype: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """The mean of the columns of X and (X - mean)'(X - mean), both in double.

    X is read once, less the mean of some of its rows; what that is off by is known afterwards, and
    its product is subtracted. If rows were so unlike the others that digits went with it, X is read
    again.
    """
    n, d = X.shape
    X, dtype = readable(X), np.dtype(dtype or X.dtype)
    eps = np.finfo(dtype).eps
    C, sums = np.empty((d, d)), np.empty(d)
    some = np.ascontiguousarray(X[:: max(1, n // 64)])
    shift = some.mean(axis=0, dtype=np.float64).astype(dtype)
    for _ in range(2):
        products(X, shift, False, True, sums, C, n_threads())
        off = sums / n
        taken = n * off**2
        if not (taken > np.maximum(16 * C.diagonal(), n * (8 * eps * shift) ** 2)).any():
            break
        shift = (shift + off).astype(dtype)
    return shift + off, C


def sparse_covariance(X: Any, mean: np.ndarray) -> np.ndarray:
    """(X - mean)'(X - mean) of a CSR or CSC matrix, which is never formed less its mean."""
    X = with_short_indices(X.tocsr())
    C = np.empty((X.shape[1], X.shape[1]))
    sparse_products(X.data, X.indices, X.indptr, C, n_threads())
    C -= X.shape[0] * np.outer(mean, mean)
    return C


def refuse_infinite(values: Any, X: Any, name: str) -> None:
    """Raise scikit-learn's error for infinity or NaN in X, which leave their mark on `values`."""
    if not np.isfinite(values).all():
        data = X if isinstance(X, np.ndarray) else X.data
        assert_all_finite(data, estimator_name=name, input_name="X")


def eigen(C: np.ndarray, k: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of C in descending order, not negative, and vectors in rows: k, or all."""
    form = Tridiagonal(C)
    return _not_negative(*(form.eigenpairs() if k is None else form.leading(k)))


def of_covariance(C: np.ndarray, k: int | None, dtype: Any) -> Spectrum:
    """From C = (X - mean)'(X - mean) alone: k, or all where k do not tell how much is left.

    dtype: of X, and so of the vectors.
    """
    total, form = C.trace(), Tridiagonal(C)
    if k is not None and k < len(C):
        squares, vectors = _not_negative(*form.leading(k, dtype))
        if total - squares.sum() >= TRUSTED * total:
            return Spectrum(squares, vectors, total)
    return Spectrum(*_not_negative(*form.eigenpairs(dtype=dtype)), total)


def _not_negative(values: np.ndarray, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.maximum(values, 0), vectors


def times(X: np.ndarray, V: np.ndarray, mean: np.ndarray | None = None) -> np.ndarray:
    """(X - mean) V' in one pass over X, (n, k)."""
    dtype = np.result_type(X, V)
    V = np.ascontiguousarray(V, dtype=dtype)
    start = None if mean is None else -(V @ mean.astype(np.float64)).astype(dtype)
    if X.size < FEW:
        X = np.require(X, requirements="CA")
    rows = X.flags.c_contiguous and X.flags.aligned and X.dtype == dtype
    if rows and len(X) and 0 < V.size <= MANY:
        out = np.empty((len(X), len(V)), dtype)
        gemm(X, V, out, n_threads(), start)
        return out
    out = X @ V.T
    if start is not None:
        out += start
    return out


def mean_and_square(X: np.ndarray) -> tuple[np.ndarray, float]:
    """The mean of the columns, NaN if not all are finite, and the sum of squared deviations."""
    count, mean, square = np.empty((3, X.shape[1]))
    infinite = scaling.moments(readable(X), None, count, mean, square, n_threads())
    if infinite or (count < len(X)).any():
        mean[:] = np.nan
    return mean, square.sum()


def centred_blocks(X: np.ndarray, mean: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """X - mean in double, some rows at a time; `mean` is one row, or as many as X has."""
    for rows in gen_batches(len(X), max(1, BLOCK // X.shape[1])):
        less = np.asarray(mean if mean.ndim == 1 else mean[rows], dtype=np.float64)
        yield rows, np.subtract(X[rows], less, order="C" if mean.ndim == 1 else "K")


def spectrum(X: np.ndarray, mean: np.ndarray, k: int | None = None) -> Spectrum:
    """As an SVD of X - mean has them, all min(n, d) or k, from the cheaper of two products."""
    n, d = X.shape
    if d > WIDE * n:
        return _of_rows(X, mean, k)
    C = np.empty((d, d))
    products(readable(X), mean.astype(np.float64), False, False, np.empty(d), C, n_threads())
    return of_columns(X, mean, C, k)


def _wants_svd(form: Tridiagonal, X: np.ndarray, k: int | None) -> bool:
    """Whether most of the spectrum of X, near to square, is lost in its product."""
    few, many = sorted(X.shape)
    nearly_all = k is None or 3 * k > few
    if not (X.dtype == np.float64 and nearly_all and few >= 500 and many < NEARLY_SQUARE * few):
        return False
    return 2 * (form.count_below(TRUSTED) - (form.n - few)) > few


def _by_svd(X: np.ndarray, mean: np.ndarray) -> Spectrum:
    _, s, vectors = linalg.svd(
        X - mean.astype(X.dtype), full_matrices=False, overwrite_a=True, check_finite=False
    )
    return Spectrum(s**2, vectors, (s**2).sum())


def of_columns(X: np.ndarray, mean: np.ndarray, C: np.ndarray, k: int | None) -> Spectrum:
    """From C = (X - mean)'(X - mean). Vectors have the precision of X, as those of its SVD have."""
    if exponent := exponent_of(C.trace(), X):
        unit = in_units(X, exponent), np.ldexp(mean, -exponent)
        return spectrum(*unit, k)._replace(exponent=exponent)
    form = Tridiagonal(C)
    if _wants_svd(form, X, k):
        return _by_svd(X, mean)
    trusted = TRUSTED if X.dtype == np.float64 else TRUSTED_OF_SINGLE
    total = C.trace()
    if _are_few(k, len(C)):
        squares, vectors = _not_negative(*form.leading(k, X.dtype))
        if not _is_lost(squares, total, trusted):
            return Spectrum(squares, vectors, total)
    most = min(X.shape)
    squares, vectors = _not_negative(*form.eigenpairs(most, X.dtype))
    squares = squares[:most]
    if k is not None and not _is_lost(squares[:k], total, trusted):
        return Spectrum(squares[:k], vectors[:k], total)
    safe = _safe(squares, trusted)
    if safe < len(squares):
        lost = vectors[safe:].astype(np.float64, copy=False)
        rest = np.empty((len(X), len(lost)))
        for rows, block in centred_blocks(X, mean):
            _times_rows(block, lost, rest[rows])
        _, s, turn = linalg.svd(_triangle(rest), check_finite=False)
        squares[safe:] = s**2
        _times_rows(np.ascontiguousarray(turn), lost.T.copy(), lost)
        vectors[safe:] = lost
    return Spectrum(squares, vectors, total)


def _times_rows(A: np.ndarray, B: np.ndarray, out: np.ndarray) -> None:
    """A B' to `out`, all in C order: by BLAS only if it is large."""
    if B.size <= MANY:
        gemm(A, B, out, n_threads())
    else:
        out[:] = product(A, B.T)


def _triangle(A: np.ndarray) -> np.ndarray:
    """R of A = QR; of few columns strip by strip, so that LAPACK wakes no threads."""
    n, d = A.shape
    R, step = np.empty((0, d)), ALONE // d - d
    for rows in gen_batches(n, step if step >= d else n):
        strip = np.vstack([R, A[rows]])
        R = linalg.qr(strip, mode="r", overwrite_a=True, check_finite=False)[0][:d]
    return R


def _of_rows(X: np.ndarray, mean: np.ndarray, k: int | None) -> Spectrum:
    n = len(X)
    G = np.empty((n, n))
    products(readable(X), mean.astype(np.float64), True, False, np.empty(n), G, n_threads())
    if exponent := exponent_of(G.trace(), X):
        unit = in_units(X, exponent), np.ldexp(mean, -exponent)
        return spectrum(*unit, k)._replace(exponent=exponent)
    form = Tridiagonal(G)
    if _wants_svd(form, X, k):
        return _by_svd(X, mean)
    total = G.trace()
    squares = None
    if _are_few(k, n):
        squares, U = _not_negative(*form.leading(k))
    if squares is None or _is_lost(squares, total, TRUSTED):
        squares, U = _not_negative(*form.eigenpairs())
        if k is not None and not _is_lost(squares[:k], total, TRUSTED):
            squares, U = squares[:k], U[:k]
    if squares[0] == 0:
        return Spectrum(squares, np.eye(len(U), X.shape[1]), total)
    safe = _safe(squares, TRUSTED)
    vectors = np.empty((len(U), X.shape[1]))
    U[:safe] /= np.sqrt(squares[:safe, None])
    for columns, block in centred_blocks(X.T, mean[:, None]):
        some = np.empty((len(U), len(block)))
        gemm(U, np.ascontiguousarray(block), some, n_threads())
        vectors[:, columns] = some
    if safe < len(U):
        squares[safe:], vectors[safe:] = _again(vectors[safe:], vectors[:safe], squares[0])
    return Spectrum(squares, vectors, total)


def _again(rest: np.ndarray, found: np.ndarray, largest: float) -> tuple[np.ndarray, np.ndarray]:
    """Squared singular values and vectors of `rest`, orthogonal to those found."""
    # Rows that are zero have directions too: any that are left.
    tiny = np.finfo(rest.dtype).eps * np.sqrt(largest / rest.shape[1])
    rest = rest + tiny * np.random.default_rng(0).standard_normal(rest.shape)
    for _ in range(2):
        rest -= product(product(rest, found.T), found)
    _, s, vectors = linalg.svd(rest, full_matrices=False, overwrite_a=True, check_finite=False)
    # Vectors of what is next to nothing are told by rounding alone, which may be along those found.
    vectors -= product(product(vectors, found.T), found)
    Q, R = linalg.qr(vectors.T, mode="economic", overwrite_a=True, check_finite=False)
    return s**2, (Q * np.sign(R.diagonal())).T


def _are_few(k: int | None, m: int) -> TypeGuard[int]:
    """Or all vectors cost little more, and are there if those do not tell enough."""
    return k is not None and m >= 150 and 3 * k <= m


def _safe(squares: np.ndarray, trusted: float) -> int:
    return (
        int(np.count_nonzero(squares >= trusted * squares[0])) if squares[0] > 0 else len(squares)
    )


def _is_lost(squares: np.ndarray, total: float, trusted: float) -> bool:
    """Whether the leading squares do not tell what is left, or are not to be trusted themselves."""
    return squares[-1] < trusted * squares[0] or total - squares.sum() < trusted * total
