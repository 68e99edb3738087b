"""A user's function of two vectors as a kernel object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from fastml.gaussian_process._vectors import log_derivative
from fastml.jit import ScalarKernel, kernel


class UserKernel(Kernel):
    """A function f(x, y) of two vectors as a kernel, compiled (see `fastml.jit.kernel`).

    Parameters
    ----------
    f : callable
        ``f(x, y, **params)``, of two vectors, to a real number.

    params : dict, default=None
        The function's parameters.

    params_bounds : dict, default=None
        For each parameter that is to be tuned, a positive number, where to look for it: a pair of
        numbers. Gradients are central differences, of two more Gram matrices each.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.gaussian_process import GaussianProcessRegressor
    >>> from fastml.gaussian_process.kernels import UserKernel, WhiteKernel
    >>> def cauchy(x, y, gamma=1.0):
    ...     return 1 / (1 + gamma * np.sum((x - y) ** 2))
    >>> k = UserKernel(cauchy, {"gamma": 1.0}, {"gamma": (1e-3, 1e3)})
    >>> k([[0.0], [1.0]])
    array([[1. , 0.5],
           [0.5, 1. ]])
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> gp = GaussianProcessRegressor(k + WhiteKernel(1e-3, "fixed")).fit(X, np.sin(X[:, 0]))
    >>> gp.score(X, np.sin(X[:, 0])) > 0.99
    True
    """

    def __init__(
        self,
        f: Callable[..., float],
        params: Mapping[str, Any] | None = None,
        params_bounds: Mapping[str, Any] | None = None,
    ) -> None:
        self.f = f
        self.params = params
        self.params_bounds = params_bounds

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """The parameters that have bounds."""
        bounds = self.params_bounds or {}
        return [Hyperparameter(name, "numeric", bounds[name]) for name in bounds]

    @property
    def theta(self) -> np.ndarray:
        """The logarithms of the parameters that have bounds and are not fixed."""
        return np.log([float((self.params or {})[name]) for name in self._free()])

    @theta.setter
    def theta(self, theta: np.ndarray) -> None:
        values = zip(self._free(), np.exp(theta), strict=True)
        self.params = dict(self.params or {}) | {name: float(value) for name, value in values}

    def _free(self) -> list[str]:
        names, params = [h.name for h in self.hyperparameters if not h.fixed], self.params or {}
        for name in names:
            if name not in params:
                raise ValueError(f"{name!r} has bounds, but no value: add it to params")
            if not params[name] > 0:
                raise ValueError(
                    f"{name!r} is {params[name]}, but what is tuned is its logarithm: give it a "
                    'positive value, or "fixed" for bounds'
                )
        return names

    def _function(self) -> ScalarKernel:
        return self.f if isinstance(self.f, ScalarKernel) else kernel(self.f)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        if eval_gradient and Y is not None:
            raise ValueError("Gradient can only be evaluated when Y is None.")
        X, f, params = np.atleast_2d(X), self._function(), dict(self.params or {})
        K = f(X, None if Y is None else np.atleast_2d(Y), **params)
        if not eval_gradient:
            return K
        gradient = np.empty((*K.shape, self.n_dims))
        for k, name in enumerate(self._free()):

            def at(value: float, name: str = name) -> Any:
                return f(X, **(params | {name: value}))

            gradient[:, :, k] = log_derivative(at, params[name])
        return K, gradient

    def diag(self, X: Any) -> np.ndarray:
        """Return f(x, x) for each x."""
        f, params = self._function(), dict(self.params or {})
        return np.array([f(x, x, **params) for x in np.atleast_2d(X)], dtype=np.float64)

    def is_stationary(self) -> bool:
        """False: it is not known."""
        return False

    def __repr__(self) -> str:
        params = "".join(f", {name}={value!r}" for name, value in (self.params or {}).items())
        return f"UserKernel({self._function().function.name}{params})"
