"""The kernel of a kernel machine: by name, object or function, with the rows it is for."""

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.gaussian_process.kernels import Kernel
from sklearn.metrics.pairwise import KERNEL_PARAMS
from sklearn.utils.validation import validate_data

from fastml._runtime.objects import OBJECTS, takes_objects
from fastml._runtime.sparse import with_short_indices
from fastml.jit import ScalarKernel
from fastml.metrics._apply import gram_apply
from fastml.metrics._dispatch import of_kernel_object, pairwise_kernels

BLOCK = 1 << 21  # entries of a Gram matrix of a kernel object that are formed at once


class KernelFunction:
    """A kernel by name, object or function, with its parameters."""

    def __init__(self, kernel: Any, params: dict[str, Any]) -> None:
        self.kernel, self.params = kernel, params
        if isinstance(kernel, str):
            # Each kernel has defaults of its own.
            names = KERNEL_PARAMS.get(kernel, ())
            self.params = {k: v for k, v in params.items() if k in names and v is not None}

    def __call__(self, X: Any, Y: Any) -> np.ndarray:
        if isinstance(self.kernel, Kernel):
            return of_kernel_object(self.kernel, X, Y)
        return pairwise_kernels(X, Y, metric=self.kernel, **self.params)

    def apply(self, X: Any, Y: Any, V: np.ndarray) -> np.ndarray:
        """The Gram matrix of the rows of X and Y, times V."""
        if not isinstance(self.kernel, Kernel):
            return gram_apply(X, Y, V, metric=self.kernel, **self.params)
        rows = max(1, BLOCK // V.shape[0])
        blocks = range(0, X.shape[0], rows)
        return np.concatenate([self(X[i : i + rows], Y) @ V for i in blocks])

    def diagonal(self, X: Any) -> np.ndarray:
        """K(x, x) for the rows of X."""
        # A function in Python is called for every pair; for others a call costs more than a block.
        python = callable(self.kernel) and not isinstance(self.kernel, Kernel | ScalarKernel)
        rows = 1 if python else 64
        blocks = (X[i : i + rows] for i in range(0, X.shape[0], rows))
        return np.concatenate([self(block, block).diagonal() for block in blocks]).astype(float)


def is_precomputed(kernel: Any) -> bool:
    return isinstance(kernel, str) and kernel == "precomputed"


def function_of(estimator: Any) -> KernelFunction:
    """The kernel that the parameters of an estimator describe, in scikit-learn's way."""
    if callable(estimator.kernel):
        return KernelFunction(estimator.kernel, estimator.kernel_params or {})
    names = ("gamma", "degree", "coef0")
    return KernelFunction(estimator.kernel, {name: getattr(estimator, name) for name in names})


def validated(estimator: Any, X: Any, reset: bool, **options: Any) -> Any:
    """The rows as the estimator's kernel takes them, with targets if `options` has any."""
    if takes_objects(estimator.kernel):
        kinds = OBJECTS
    else:
        sparse = False if is_precomputed(estimator.kernel) else "csr"
        kinds = {"accept_sparse": sparse, "dtype": [np.float64, np.float32], "order": "C"} | options
    checked = validate_data(estimator, X, reset=reset, **(options | kinds))
    X, *rest = checked if isinstance(checked, tuple) else (checked,)
    X = with_short_indices(X) if issparse(X) else X
    return (X, *rest) if rest else X


def dtype_of_gram(kernel: Any, X: Any) -> np.dtype:
    """In which scikit-learn has it: of its kernels these alone come in single precision."""
    single = isinstance(kernel, str) and kernel != "laplacian" and X.dtype == np.float32
    return np.dtype(np.float32 if single else np.float64)


def in_precision(X: Any, dtype: np.dtype) -> Any:
    """Rows of numbers in `dtype`; others as they are."""
    numbers = issparse(X) or getattr(X, "dtype", np.dtype(object)).kind in "biuf"
    return X.astype(dtype, copy=False) if numbers else X


def own_gram(estimator: Any, X: Any, dtype: np.dtype) -> np.ndarray:
    """The Gram matrix of the rows, in C order, which nobody else holds."""
    if is_precomputed(estimator.kernel):
        return np.array(X, dtype=dtype, order="C")
    X = in_precision(X, dtype)
    return np.require(function_of(estimator)(X, X), dtype, ["C", "A", "W"])


def expansion(estimator: Any, X: Any, V: np.ndarray) -> np.ndarray:
    """The kernel between the rows of X and those of the fit, `X_fit_`, times V, in double.

    `X_fit_` is None where X is the kernel.
    """
    if estimator.X_fit_ is None:
        return (X @ V).astype(np.float64, copy=False)
    dtype = np.result_type(dtype_of_gram(estimator.kernel, X), estimator.X_fit_.dtype)
    rows, fitted = in_precision(X, dtype), in_precision(estimator.X_fit_, dtype)
    values = function_of(estimator).apply(rows, fitted, np.ascontiguousarray(V))
    return values.astype(np.float64, copy=False)
