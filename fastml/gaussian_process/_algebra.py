"""Kernels made of a kernel. Sums, products, multiples and powers are scikit-learn's: +, *, **."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel


class UnaryKernel(Kernel):
    """A kernel made of the kernel `kernel`, whose hyperparameters it has."""

    kernel: Kernel

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, those of the inner kernel as `kernel__...`."""
        params = super().get_params(deep)
        if deep:
            inner = self.kernel.get_params()
            params.update((f"kernel__{name}", value) for name, value in inner.items())
        return params

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """The hyperparameters of the inner kernel."""
        return [h._replace(name=f"kernel__{h.name}") for h in self.kernel.hyperparameters]

    @property
    def theta(self) -> np.ndarray:
        """The logarithms of the hyperparameters that are not fixed."""
        return self.kernel.theta

    @theta.setter
    def theta(self, theta: np.ndarray) -> None:
        self.kernel.theta = theta

    @property
    def bounds(self) -> np.ndarray:
        """The bounds of theta."""
        return self.kernel.bounds

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.kernel == other.kernel

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.kernel})"

    def is_stationary(self) -> bool:
        """Whether k(x, y) depends on x - y alone."""
        return self.kernel.is_stationary()

    @property
    def requires_vector_input(self) -> bool:
        """Whether the inner kernel needs vectors."""
        return self.kernel.requires_vector_input


class Exp(UnaryKernel):
    """The exponential of a kernel, exp(k(x, y)).

    A Mercer kernel if k is one.

    Parameters
    ----------
    kernel : Kernel
        The kernel k.

    Examples
    --------
    >>> from fastml.gaussian_process.kernels import Exp, DotProduct
    >>> Exp(DotProduct(sigma_0=0.5))([[1.0], [2.0]])
    array([[ 3.49034296,  9.48773584],
           [ 9.48773584, 70.10541235]])
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        if not eval_gradient:
            return np.exp(self.kernel(X, Y))
        K, gradient = self.kernel(X, Y, eval_gradient=True)
        K = np.exp(K)
        gradient *= K[:, :, None]
        return K, gradient

    def diag(self, X: Any) -> np.ndarray:
        """Return k(x, x) for each x."""
        return np.exp(self.kernel.diag(X))


class Normalized(UnaryKernel):
    """A kernel of vectors of unit length, k(x, y) / √(k(x, x) k(y, y)).

    A Mercer kernel if k is one; its values lie between -1 and 1. Where k(x, x) is zero, so is it.

    Parameters
    ----------
    kernel : Kernel
        The kernel k.

    Examples
    --------
    >>> from fastml.gaussian_process.kernels import NGram, Normalized
    >>> Normalized(NGram(2))(["banana", "bandana", "cabin"]).round(3)
    array([[1.   , 0.825, 0.   ],
           [0.825, 1.   , 0.   ],
           [0.   , 0.   , 1.   ]])
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        if eval_gradient:
            K, gradient = self.kernel(X, Y, eval_gradient=True)
            own = np.diag(K).copy()  # this K divided by another rounding of k(x, x) is not one
        else:
            K = self.kernel(X, Y)
            own = np.diag(K).copy() if Y is None else self.kernel.diag(X)
        other = own if Y is None else self.kernel.diag(Y)
        K = _scale(K, _inverse_root(own), _inverse_root(other))
        if not eval_gradient:
            return K
        gradient = _scale(gradient, *2 * [_inverse_root(own)])
        i = np.arange(len(K))
        half = gradient[i, i] / 2  # the derivatives of log √k(x, x)
        gradient -= K[:, :, None] * (half[:, None] + half[None])
        return K, gradient

    def diag(self, X: Any) -> np.ndarray:
        """Return k(x, x) for each x: 1, or 0 where the inner kernel has 0."""
        return np.where(self.kernel.diag(X) == 0, 0.0, 1.0)


def _inverse_root(diagonal: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # negative, of no Mercer kernel: NaN says it
        root = np.sqrt(diagonal)
    return np.divide(1, root, out=np.zeros_like(root), where=root != 0)


def _scale(K: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    rest = (1,) * (K.ndim - 2)
    K = K * left.reshape(-1, 1, *rest)
    K *= right.reshape(1, -1, *rest)
    return K


class Composed(UnaryKernel):
    """A kernel of features, k(φ(x), φ(y)).

    A Mercer kernel if k is one, whatever φ is.

    Parameters
    ----------
    kernel : Kernel
        The kernel k.

    feature_map : callable or transformer
        What turns an array of x into one of φ(x): a function, or an object that has been fitted
        and has `transform`. Clones share it, so it stays fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.gaussian_process.kernels import Composed, DotProduct
    >>> def absolute(X):
    ...     return np.hstack([X, abs(X)])
    >>> Composed(DotProduct(sigma_0=0.1), absolute)(np.array([[1.0], [-2.0]]))
    array([[2.01, 0.01],
           [0.01, 8.01]])
    """

    def __init__(self, kernel: Kernel, feature_map: Any) -> None:
        self.kernel = kernel
        self.feature_map = feature_map

    def _features(self, X: Any) -> Any:
        return getattr(self.feature_map, "transform", self.feature_map)(X)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        Y = None if Y is None else self._features(Y)
        X = self._features(X)
        return self.kernel(X, Y, eval_gradient=True) if eval_gradient else self.kernel(X, Y)

    def diag(self, X: Any) -> np.ndarray:
        """Return k(x, x) for each x."""
        return self.kernel.diag(self._features(X))

    def is_stationary(self) -> bool:
        """Whether k(x, y) depends on x - y alone."""
        return False

    @property
    def requires_vector_input(self) -> bool:
        """False: what it takes is the business of the feature map."""
        return False

    def __sklearn_clone__(self) -> Composed:
        return type(self)(clone(self.kernel), self.feature_map)

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and self.feature_map is other.feature_map

    def __repr__(self) -> str:
        name = getattr(self.feature_map, "__name__", repr(self.feature_map))
        return f"{type(self).__name__}({self.kernel}, {name})"
