"""Factors of a matrix as kernels take them, and what they make of it."""

from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse

from fastml._native import nmf as native
from fastml._native.rows import Rows
from fastml._runtime.aligned import aligned_zeros, in_lines
from fastml._runtime.sparse import with_short_indices
from fastml._runtime.threads import n_threads


class Data:
    """A matrix X, not negative, by its rows and, if it is sparse, by its columns."""

    def __init__(self, X: Any) -> None:
        self.sparse = sparse.issparse(X)
        if self.sparse:
            X = X.tocsr()
            if not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()
            X = with_short_indices(X)
        else:
            X = np.ascontiguousarray(X)
        self.X, self.rows = X, Rows(X)
        self.shape, self.dtype = X.shape, X.dtype

    @cached_property
    def columns(self) -> Rows:
        return Rows(with_short_indices(self.X.T.tocsr()))


class Factor:
    """The (n, k) factor of a matrix, its rows filled up with zeros to whole cache lines."""

    def __init__(self, values: np.ndarray) -> None:
        n, self.k = values.shape
        self.at = aligned_zeros(n, in_lines(self.k, values.dtype), values.dtype)
        self.at[:, : self.k] = values

    @classmethod
    def of(cls, at: np.ndarray, k: int) -> Self:
        """One whose rows are filled up already."""
        factor = cls.__new__(cls)
        factor.at, factor.k = at, k
        return factor

    @property
    def values(self) -> np.ndarray:
        return self.at[:, : self.k].copy()

    def empty(self) -> np.ndarray:
        return aligned_zeros(*self.at.shape, self.at.dtype)

    def empty_gram(self) -> np.ndarray:
        return aligned_zeros(self.at.shape[1], self.at.shape[1], self.at.dtype)

    def gram(self) -> np.ndarray:
        out = self.empty_gram()
        native.gram(self.at, out, n_threads())
        return out


def product(rows: Rows, right: np.ndarray) -> np.ndarray:
    out = aligned_zeros(rows.n, right.shape[1], right.dtype)
    native.times(right, rows, out, n_threads())
    return out


def norm(values: np.ndarray) -> np.float64:
    # Without BLAS, whose sums depend on its threads.
    return np.sqrt(np.sum(np.square(values), dtype=np.float64))


def divergence(X: Data, W: Factor, B: Factor, beta: float) -> float:
    """The beta-divergence of X and W·H, H being the transpose of B."""
    found = native.divergence(W.at, X.rows, B.at, W.k, beta, n_threads())
    if beta == 2:
        if X.sparse:
            of_product = np.sum(W.gram() * B.gram(), dtype=np.float64)
            found = norm(X.X.data) ** 2 + of_product - 2.0 * found
        return float(found) / 2.0
    if beta == 1:
        sums = [factor.at.sum(axis=0, dtype=np.float64) for factor in (W, B)]
        return found + float(np.sum(sums[0] * sums[1]))
    if beta == 0:
        return found - float(np.prod(X.shape))
    return found / (beta * (beta - 1))


def error(X: Data, W: Factor, B: Factor, beta: float) -> np.float64:
    """The root of twice the divergence: for beta 2 the norm of the difference."""
    return np.sqrt(np.float64(2 * max(divergence(X, W, B, beta), 0)))


def reconstruction_error(X: Data, W: Factor, B: Factor, beta: float) -> np.floating:
    """The error as scikit-learn has it: of sparse X its products are in double precision, and of
    Itakura and Saito's loss its sums."""
    is_double = beta == 0 or (X.sparse and beta != 2)
    kind = np.float64 if is_double else X.dtype.type
    return kind(error(X, W, B, beta))


def fitted(B: Factor) -> dict[str, Any]:
    """The model with these components, in scikit-learn's memory order."""
    return {"components_": B.values.T, "n_components_": B.k}
