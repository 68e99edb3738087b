"""The kernels of machines: by name, as a matrix, and as functions and objects."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from fastml._native import pairwise as native
from fastml._native import smo
from fastml._runtime.threads import n_threads
from fastml.jit import ScalarKernel
from fastml.metrics._rows import rows_of

BLOCK = 1 << 21  # entries of a matrix of kernel values that are formed at once
FEW_ROWS = 400  # whose Gram matrix costs the linear kernel nothing
FEW_ENTRIES = 1 << 18  # of a sparse matrix that takes no more time or memory as a dense one


class Named(NamedTuple):
    """A kernel by name, with what scikit-learn makes of its parameters."""

    name: str
    gamma: float
    coef0: float
    degree: float

    def measure(self) -> Any:
        name = "polynomial" if self.name == "poly" else self.name
        return native.Measure(name, self.gamma, self.coef0, self.degree)


def named(model: Any) -> Named:
    """The kernel of a model, which is one of four that have names."""
    name, degree = model.kernel, model.degree
    if name == "poly" and degree == 0:
        return Named("rbf", 0.0, 0.0, 1.0)  # 1, of whatever rows
    return Named(name, float(model._gamma), float(model.coef0), float(degree))


def by_rows(kernel: Any) -> bool:
    """Whether values for some rows can be had without those of all."""
    return isinstance(kernel, (Kernel, ScalarKernel))


def as_array(K: Any) -> np.ndarray:
    """Kernel values as scikit-learn takes them from a function."""
    if issparse(K):
        K = K.toarray()
    return np.asarray(K, dtype=np.float64, order="C")


class Values:
    """The kernel of the rows of a fit: for the solver, and for products of parts of it."""

    def __init__(self, rows: smo.Rows) -> None:
        self.rows = rows

    def apply(self, left: np.ndarray, right: np.ndarray, v: np.ndarray) -> np.ndarray:
        """K[left, right] v."""
        raise NotImplementedError


class OfNamed(Values):
    def __init__(self, kernel: Named, X: Any) -> None:
        if issparse(X) and X.shape[0] * X.shape[1] <= FEW_ENTRIES:
            X = X.toarray()  # one way for both: to the same solution, to the last digit
        self.kernel, self.X = kernel, X
        super().__init__(
            smo.Rows(
                X,
                kernel.name,
                gamma=kernel.gamma,
                coef0=kernel.coef0,
                degree=kernel.degree,
                n_threads=n_threads(),
            )
        )

    def apply(self, left, right, v):
        out = np.zeros((len(left), 1))
        if len(left) and len(right):
            V = np.ascontiguousarray(v[:, np.newaxis], dtype=self.X.dtype)
            x, y = rows_of(self.X[left]), rows_of(self.X[right])
            native.gram_apply(x, y, self.kernel.measure(), V, out, n_threads())
        return out[:, 0]


class OfMatrix(Values):
    def __init__(self, K: np.ndarray) -> None:
        self.K = K
        super().__init__(smo.Rows.of_gram(K, n_threads()))

    def apply(self, left, right, v):
        return self.K[np.ix_(left, right)] @ v


class OfFunction(Values):
    """A kernel whose matrix takes more memory than there may be."""

    def __init__(self, kernel: Any, X: Any) -> None:
        self.kernel, self.X = kernel, X
        n = _num_samples(X)
        diagonal = kernel.diag(X) if isinstance(kernel, Kernel) else [kernel(x, x) for x in X]
        diagonal = np.asarray(diagonal, dtype=np.float64)
        super().__init__(smo.Rows.of_function(n, self._of, diagonal, n_threads()))

    def _of(self, index: np.ndarray) -> np.ndarray:
        return as_array(self.kernel(_safe_indexing(self.X, index), self.X))

    def apply(self, left, right, v):
        Y = _safe_indexing(self.X, right)
        step = max(1, BLOCK // max(1, len(right)))
        parts = [left[i : i + step] for i in range(0, len(left), step)]
        products = [as_array(self.kernel(_safe_indexing(self.X, p), Y)) @ v for p in parts]
        return np.concatenate([np.zeros(0), *products])


def values_of(model: Any, X: Any) -> Values:
    """The kernel of a model over the rows of its fit."""
    kernel = model.kernel
    if by_rows(kernel) and _num_samples(X) ** 2 * 8 > model.cache_size * 2**20:
        return OfFunction(kernel, X)
    if callable(kernel):
        K = model._compute_kernel(X)
        if K.shape[0] != K.shape[1]:
            raise ValueError("X.shape[0] should be equal to X.shape[1]")
        n = _num_samples(X)
        if len(K) != n:  # scikit-learn says so in predict
            padded = np.zeros((n, n))
            padded[: len(K), : len(K)] = K[:n, :n]
            K = padded
        return OfMatrix(K)
    if kernel == "linear" and X.shape[0] <= FEW_ROWS:
        X = X.toarray() if issparse(X) else X
        return OfMatrix(X @ X.T)  # to the solution that is found for such a matrix
    return OfMatrix(X) if kernel == "precomputed" else OfNamed(named(model), X)
