"""Kernels of vectors, as objects with hyperparameters and gradients.

Gram matrices come from `fastml.metrics.pairwise`: dense or sparse rows, in their own precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.gaussian_process.kernels import (
    Hyperparameter,
    Kernel,
    NormalizedKernelMixin,
    StationaryKernelMixin,
)

from fastml.metrics import pairwise


def rows(X: Any) -> Any:
    return X if issparse(X) else np.atleast_2d(X)


def log_derivative(evaluate: Callable[[float], np.ndarray], value: float) -> np.ndarray:
    """The derivative of a matrix by the logarithm of a parameter, by a central difference."""
    # The cube root of the precision, at which its error is least.
    step = float(np.finfo(np.float64).eps ** (1 / 3))
    up, down = evaluate(value * np.exp(step)), evaluate(value * np.exp(-step))
    return (up - down) / (2 * step)


def row_dots(X: Any, Y: Any) -> np.ndarray:
    """The product of each row of X with that of Y."""
    if issparse(X):
        return np.asarray(X.multiply(Y).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, Y)


def row_sums(X: Any) -> np.ndarray:
    return np.asarray(X.sum(axis=1)).ravel()


class VectorKernel(Kernel):
    """What kernels of vectors, and of strings, have in common.

    Subclasses give `_rows(X)`, which validates, `_gram(X, Y)` for what that returns, and
    `_gradient(X, K)`: the derivatives of K by the logarithms of the hyperparameters, by name and
    as functions, so that none is computed for a fixed one.
    """

    def __init__(self) -> None:
        """Without parameters; scikit-learn reads their names from here."""

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        if eval_gradient and Y is not None:
            raise ValueError("Gradient can only be evaluated when Y is None.")
        X = self._rows(X)
        K = self._gram(X, None if Y is None else self._rows(Y))
        if not eval_gradient:
            return K
        free = [h.name for h in self.hyperparameters if not h.fixed]
        gradient = np.empty((*K.shape, len(free)))
        by_name = self._gradient(X, K) if free else {}
        for k, name in enumerate(free):
            gradient[:, :, k] = by_name[name]()
        return K, gradient

    def _rows(self, X: Any) -> Any:
        return rows(X)

    def _gram(self, X: Any, Y: Any) -> np.ndarray:
        raise NotImplementedError

    def _gradient(self, X: Any, K: np.ndarray) -> dict[str, Any]:
        return {}

    def is_stationary(self) -> bool:
        """Whether k(x, y) depends on x - y alone."""
        return False

    def __repr__(self) -> str:
        params = ", ".join(f"{name}={_short(value)}" for name, value in self._shown().items())
        return f"{type(self).__name__}({params})"

    def _shown(self) -> dict[str, Any]:
        return {k: v for k, v in self.get_params().items() if not k.endswith("_bounds")}


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else repr(value)


class Exponential(NormalizedKernelMixin, VectorKernel):
    """exp(-gamma · something): what its heirs have in common."""

    def __init__(self, gamma: float = 1.0, gamma_bounds: Any = (1e-5, 1e5)) -> None:
        self.gamma = gamma
        self.gamma_bounds = gamma_bounds

    @property
    def hyperparameter_gamma(self) -> Hyperparameter:
        return Hyperparameter("gamma", "numeric", self.gamma_bounds)


class Laplacian(StationaryKernelMixin, Exponential):
    """The Laplacian kernel, exp(-gamma · ‖x - y‖₁).

    Parameters
    ----------
    gamma : float, default=1.0
        How fast the kernel falls.

    gamma_bounds : pair of floats > 0 or "fixed", default=(1e-5, 1e5)
        Where to look for gamma when it is tuned.

    Examples
    --------
    >>> from fastml.gaussian_process.kernels import Laplacian
    >>> Laplacian(gamma=0.5)([[0.0, 0.0], [1.0, 1.0]])
    array([[1.        , 0.36787944],
           [0.36787944, 1.        ]])
    """

    def _gram(self, X: Any, Y: Any) -> np.ndarray:
        return pairwise.laplacian_kernel(X, Y, gamma=self.gamma)

    def _gradient(self, X: Any, K: np.ndarray) -> dict[str, Any]:
        return {"gamma": lambda: -self.gamma * pairwise.manhattan_distances(X) * K}


class Polynomial(VectorKernel):
    """The polynomial kernel, (gamma · x·y + coef0)^degree.

    A Mercer kernel if the degree is a whole number and coef0 is not negative.

    Parameters
    ----------
    degree : float, default=3
        The degree. It is not tuned.

    gamma : float, default=1.0
        The scale of the products.

    coef0 : float, default=1.0
        What is added to them. With 0, it must be fixed.

    gamma_bounds, coef0_bounds : pair of floats > 0 or "fixed", default=(1e-5, 1e5)
        Where to look for them when they are tuned.

    Examples
    --------
    >>> from fastml.gaussian_process.kernels import Polynomial
    >>> Polynomial(degree=2)([[1.0, 0.0], [1.0, 1.0]])
    array([[4., 4.],
           [4., 9.]])
    """

    def __init__(
        self,
        degree: float = 3,
        gamma: float = 1.0,
        coef0: float = 1.0,
        gamma_bounds: Any = (1e-5, 1e5),
        coef0_bounds: Any = (1e-5, 1e5),
    ) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.gamma_bounds = gamma_bounds
        self.coef0_bounds = coef0_bounds

    @property
    def hyperparameter_gamma(self) -> Hyperparameter:
        return Hyperparameter("gamma", "numeric", self.gamma_bounds)

    @property
    def hyperparameter_coef0(self) -> Hyperparameter:
        return Hyperparameter("coef0", "numeric", self.coef0_bounds)

    def _gram(self, X: Any, Y: Any) -> np.ndarray:
        return pairwise.polynomial_kernel(
            X, Y, degree=self.degree, gamma=self.gamma, coef0=self.coef0
        )

    def _gradient(self, X: Any, K: np.ndarray) -> dict[str, Any]:
        products = self.gamma * pairwise.linear_kernel(X)
        outer = self.degree * (products + self.coef0) ** (self.degree - 1)
        return {"gamma": lambda: outer * products, "coef0": lambda: outer * self.coef0}

    def diag(self, X: Any) -> np.ndarray:
        """Return k(x, x) for each x."""
        X = rows(X)
        return (self.gamma * row_dots(X, X) + self.coef0) ** self.degree


class Sigmoid(VectorKernel):
    """The sigmoid kernel, tanh(gamma · x·y + coef0).

    Not a Mercer kernel: Gram matrices may have negative eigenvalues, whatever the parameters.

    Parameters
    ----------
    gamma : float, default=1.0
        The scale of the products.

    coef0 : float, default=1.0
        What is added to them. If it is not positive, it must be fixed.

    gamma_bounds, coef0_bounds : pair of floats > 0 or "fixed", default=(1e-5, 1e5)
        Where to look for them when they are tuned.

    Examples
    --------
    >>> from fastml.gaussian_process.kernels import Sigmoid
    >>> Sigmoid(gamma=0.5, coef0=0.0, coef0_bounds="fixed")([[1.0, 0.0], [1.0, 1.0]])
    array([[0.46211716, 0.46211716],
           [0.46211716, 0.76159416]])
    """

    def __init__(
        self,
        gamma: float = 1.0,
        coef0: float = 1.0,
        gamma_bounds: Any = (1e-5, 1e5),
        coef0_bounds: Any = (1e-5, 1e5),
    ) -> None:
        self.gamma = gamma
        self.coef0 = coef0
        self.gamma_bounds = gamma_bounds
        self.coef0_bounds = coef0_bounds

    @property
    def hyperparameter_gamma(self) -> Hyperparameter:
        return Hyperparameter("gamma", "numeric", self.gamma_bounds)

    @property
    def hyperparameter_coef0(self) -> Hyperparameter:
        return Hyperparameter("coef0", "numeric", self.coef0_bounds)

    def _gram(self, X: Any, Y: Any) -> np.ndarray:
        return pairwise.sigmoid_kernel(X, Y, gamma=self.gamma, coef0=self.coef0)

    def _gradient(self, X: Any, K: np.ndarray) -> dict[str, Any]:
        slope = 1 - K**2
        return {
            "gamma": lambda: slope * (self.gamma * pairwise.linear_kernel(X)),
            "coef0": lambda: slope * self.coef0,
        }

    def diag(self, X: Any) -> np.ndarray:
        """Return k(x, x) for each x."""
        X = rows(X)
        return np.tanh(self.gamma * row_dots(X, X) + self.coef0)


class Intersection(VectorKernel):
    """The intersection of histograms, Σ min(xₖ, yₖ), for values that are not negative.

    Parameters
    ----------
    normalize : bool, default=False
        Whether to divide by √(Σ xₖ · Σ yₖ), so that k(x, x) = 1.

    Examples
    --------
    >>> from fastml.gaussian_process.kernels import Intersection
    >>> Intersection()([[3.0, 1.0], [2.0, 5.0]])
    array([[4., 3.],
           [3., 7.]])
    """

    def __init__(self, normalize: bool = False) -> None:
        self.normalize = normalize

    def _gram(self, X: Any, Y: Any) -> np.ndarray:
        return pairwise.intersection_kernel(X, Y, normalize=self.normalize)

    def diag(self, X: Any) -> np.ndarray:
        """Return k(x, x) for each x."""
        sums = row_sums(rows(X))
        return np.where(sums > 0, 1.0, 0.0) if self.normalize else sums


class ChiSquared(Exponential):
    """The exponential χ² kernel, exp(-gamma · Σ (xₖ - yₖ)² / (xₖ + yₖ)).

    For values that are not negative, such as histograms; 0/0 counts as 0.

    Parameters
    ----------
    gamma : float, default=1.0
        How fast the kernel falls.

    gamma_bounds : pair of floats > 0 or "fixed", default=(1e-5, 1e5)
        Where to look for gamma when it is tuned.

    Examples
    --------
    >>> from fastml.gaussian_process.kernels import ChiSquared
    >>> ChiSquared(gamma=0.5)([[3.0, 1.0], [1.0, 1.0]])
    array([[1.        , 0.60653066],
           [0.60653066, 1.        ]])
    """

    def _gram(self, X: Any, Y: Any) -> np.ndarray:
        return pairwise.chi2_kernel(X, Y, gamma=self.gamma)

    def _gradient(self, X: Any, K: np.ndarray) -> dict[str, Any]:
        return {"gamma": lambda: self.gamma * pairwise.additive_chi2_kernel(X) * K}


class AdditiveChiSquared(VectorKernel):
    """The additive χ² kernel in its Mercer form, Σ 2 xₖ yₖ / (xₖ + yₖ).

    For values that are not negative; 0/0 counts as 0. This is the kernel whose features
    `AdditiveChi2Sampler` approximates. The function `additive_chi2_kernel` has another form,
    -Σ (xₖ - yₖ)² / (xₖ + yₖ), which is 2 k(x, y) - k(x, x) - k(y, y) and no Mercer kernel.

    Examples
    --------
    >>> from fastml.gaussian_process.kernels import AdditiveChiSquared
    >>> AdditiveChiSquared()([[3.0, 1.0], [1.0, 1.0]])
    array([[4. , 2.5],
           [2.5, 2. ]])
    """

    def _gram(self, X: Any, Y: Any) -> np.ndarray:
        K = pairwise.additive_chi2_kernel(X, Y)
        K += row_sums(X)[:, None]
        K += row_sums(X if Y is None else Y)
        K /= 2
        return K

    def diag(self, X: Any) -> np.ndarray:
        """Return k(x, x) for each x."""
        return row_sums(rows(X))


class QuadraticForm(VectorKernel):
    """The kernel xᵀA y of a given matrix.

    A Mercer kernel if A is symmetric, which is not checked, and has no negative eigenvalue.

    Parameters
    ----------
    A : array-like of shape (d, d) or (d,)
        The matrix, or the diagonal of one.

    Examples
    --------
    >>> from fastml.gaussian_process.kernels import QuadraticForm
    >>> QuadraticForm([[2.0, 1.0], [1.0, 2.0]])([[1.0, 0.0], [1.0, 1.0]])
    array([[2., 3.],
           [3., 6.]])
    """

    def __init__(self, A: Any) -> None:
        self.A = A

    def _times(self, X: Any) -> Any:
        """A applied to the rows of X from the right."""
        A, d = np.asarray(self.A), X.shape[1]
        if A.ndim not in (1, 2) or (A.ndim == 2 and A.shape[0] != A.shape[1]):
            raise ValueError(f"A has the shape {A.shape}; give a square matrix or a diagonal")
        if len(A) != d:
            raise ValueError(f"X has {d} features, but A is for {len(A)}")
        if A.ndim == 2:
            return X @ A
        return X.multiply(A).tocsr() if issparse(X) else X * A

    def _gram(self, X: Any, Y: Any) -> np.ndarray:
        # Not linear_kernel(X, X) for a factor of A: A may have negative eigenvalues.
        return pairwise.linear_kernel(self._times(X), X if Y is None else Y)

    def diag(self, X: Any) -> np.ndarray:
        """Return k(x, x) for each x."""
        X = rows(X)
        return row_dots(X, self._times(X))
