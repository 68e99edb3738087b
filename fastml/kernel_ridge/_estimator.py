"""Kernel ridge regression by Cholesky's factorisation, or by products with the kernel alone."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import LinAlgWarning, lstsq
from sklearn import kernel_ridge as stock
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from fastml._runtime.callbacks import CallbackSupportMixin, Task, fit_context, fit_task
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.versioned import Versioned
from fastml.kernel_ridge._cholesky import factorise, panels, restore, solve
from fastml.kernel_ridge._iterative import descend
from fastml.kernel_ridge._low_rank import Deflation, pivoted_cholesky
from fastml.metrics._dispatch import KERNEL
from fastml.metrics._kernel_function import (
    dtype_of_gram,
    function_of,
    in_precision,
    is_precomputed,
    own_gram,
    validated,
)

StockKernelRidge = stock.KernelRidge

RANK = 512  # of what stands for the Gram matrix in the preconditioner

# What scikit-learn's class does not have.
OURS = {"solver": "auto", "tol": 1e-6, "max_iter": 1000, "max_gram_mb": 4096}


class Problem(NamedTuple):
    """(K + alpha_j / w) C_j = Y_j, for every column j."""

    X: Any
    Y: np.ndarray
    alpha: np.ndarray
    w: np.ndarray


class KernelRidge(Versioned, CallbackSupportMixin, StockKernelRidge):
    """Kernel ridge regression, compiled.

    The Gram matrix is made in one pass and factorised where it is, so that there is one of them.
    One that is larger than `max_gram_mb` is never formed: conjugate gradients take its products
    with vectors, a block at a time. Predictions never form the matrix either.

    Parameters
    ----------
    alpha : float or array-like of shape (n_targets,), default=1
        The strength of the regularisation; one for all targets, or one for each.

    kernel : str, kernel object or callable, default="linear"
        A name that `sklearn.metrics.pairwise.pairwise_kernels` knows; "precomputed", if `X` is
        the Gram matrix (`predict` then takes the kernel between new rows and those of the fit);
        a kernel of `gaussian_process.kernels`; a function made by `fastml.jit.kernel`; or a
        function of two rows.

    gamma : float, default=None
        Gamma of the rbf, laplacian, polynomial, sigmoid and chi2 kernels. None: the kernel's
        default.

    degree : float, default=3
        The degree of the polynomial kernel.

    coef0 : float, default=1
        The constant of the polynomial and sigmoid kernels.

    kernel_params : dict, default=None
        Further arguments of a kernel that is a function.

    solver : {"auto", "cholesky", "cg", "gradient"}, default="auto"
        "cholesky": factorise the Gram matrix. "cg": conjugate gradients, preconditioned by a
        matrix of low rank, without forming the matrix. "gradient": steepest descent likewise.
        "auto": "cholesky" if the Gram matrix fits `max_gram_mb` or is given, else "cg".

    tol : float, default=1e-6
        "cg" and "gradient" stop when the residual of each target, in float64, is below this
        part of the target. So far, at most, are the predictions at the rows of the fit off.

    max_iter : int, default=1000
        The most iterations of "cg" and "gradient".

    max_gram_mb : float, default=4096
        The most memory for the Gram matrix, in MiB, that "auto" takes. None: any.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        The weight of each row of the fit in the predictions, for each target.

    X_fit_ : {ndarray, sparse matrix} of shape (n_samples, n_features)
        The rows of the fit; the Gram matrix if the kernel is precomputed.

    n_iter_ : int
        The number of iterations; 1 for "cholesky".

    n_features_in_ : int
        The number of features.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        The names of the features, if all of them are strings.

    See Also
    --------
    sklearn.gaussian_process.GaussianProcessRegressor : Tunes the kernel, and tells variances.
    sklearn.linear_model.Ridge : The same for the linear kernel.
    sklearn.svm.SVR : Predictions from few rows, by another loss.

    Notes
    -----
    The matrix is factorised in the precision that `X` and `y` have in common, as scikit-learn
    does; "cg" and "gradient" compute in float64 and serve positive definite kernels. A matrix
    that is singular to rounding gets the least-squares solution, with a warning.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.kernel_ridge import KernelRidge
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> model = KernelRidge(alpha=1e-3, kernel="rbf", gamma=1.0).fit(X, np.sin(X[:, 0]))
    >>> model.predict([[np.pi / 2]]).round(2)
    array([1.])
    >>> streamed = KernelRidge(alpha=1e-3, kernel="rbf", gamma=1.0, solver="cg")
    >>> bool(np.allclose(streamed.fit(X, np.sin(X[:, 0])).predict(X), model.predict(X), atol=1e-5))
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **StockKernelRidge._parameter_constraints,
        "kernel": KERNEL,
        "solver": [StrOptions({"auto", "cholesky", "cg", "gradient"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_gram_mb": [Interval(Real, 0, None, closed="left"), None],
    }

    def __init__(
        self,
        alpha=1,
        *,
        kernel="linear",
        gamma=None,
        degree=3,
        coef0=1,
        kernel_params=None,
        solver="auto",
        tol=1e-6,
        max_iter=1000,
        max_gram_mb=4096,
    ):
        super().__init__(
            alpha,
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            kernel_params=kernel_params,
        )
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_gram_mb = max_gram_mb

    @documented_by(StockKernelRidge.fit)
    @accelerated
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Solve for the dual coefficients."""
        X, y = validated(
            self, X, reset=True, dtype="numeric", y=y, multi_output=True, y_numeric=True
        )
        if is_precomputed(self.kernel) and X.shape[0] != X.shape[1]:
            raise ValueError(f"Precomputed kernel must be a square matrix; got {X.shape}.")
        w, y_weight = self._weights(sample_weight, X)
        Y = y.reshape(len(y), -1)
        alpha = np.atleast_1d(self.alpha).astype(np.float64)
        if (alpha == alpha[0]).all():
            alpha = np.full(Y.shape[1], alpha[0])
        if len(alpha) != Y.shape[1]:
            raise ValueError(f"There are {Y.shape[1]} targets but {len(alpha)} values of alpha.")
        kernel_dtype = dtype_of_gram(self.kernel, X)
        dtype = np.result_type(kernel_dtype, y.dtype, y_weight)
        # As scikit-learn's, which stores what it solves for each target in an array of K's dtype.
        dual_dtype = dtype if (alpha == alpha[0]).all() else kernel_dtype
        kept = np.flatnonzero(w > 0)  # other rows have no coefficients
        problem = Problem(_part(X, kept, self.kernel), Y[kept].astype(dtype), alpha, w[kept])
        direct = self._is_direct(len(kept), dtype)
        metadata = {"sample_weight": sample_weight}
        steps = len(panels(len(kept))) * len(np.unique(alpha)) if direct else None
        with fit_task(self, steps, X=X, y=y, metadata=metadata) as task:

            def attributes(C: np.ndarray) -> dict[str, Any]:
                dual = np.zeros(Y.shape, dual_dtype)
                dual[kept] = C
                return {"dual_coef_": dual.reshape(y.shape), "X_fit_": X}

            if not len(kept):
                C, n_iter = problem.Y, 1
            elif direct:
                C, n_iter = self._factorised(problem, dtype, task), 1
            else:
                C, n_iter = self._iterated(problem, task, attributes)
        vars(self).update(attributes(C), n_iter_=n_iter)
        return self

    @documented_by(StockKernelRidge.predict)
    @accelerated
    def predict(self, X):
        """Weigh the kernel between `X` and the rows of the fit by the dual coefficients."""
        check_is_fitted(self)
        X = validated(self, X, reset=False, dtype="numeric")
        if is_precomputed(self.kernel):
            return X @ self.dual_coef_
        dtype = self.dual_coef_.dtype
        rows, fitted = in_precision(X, dtype), in_precision(self.X_fit_, dtype)
        return function_of(self).apply(rows, fitted, self.dual_coef_)

    def __to_sklearn_state__(self, state: dict[str, Any]) -> dict[str, Any]:
        if isinstance(self.kernel, str) and self.kernel.endswith("intersection"):
            raise TypeError(f"scikit-learn has no kernel {self.kernel!r}")
        return {key: v for key, v in state.items() if key not in OURS and key != "n_iter_"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(OURS | state)  # a model of scikit-learn's lacks them

    @staticmethod
    def _weights(sample_weight: Any, X: Any) -> tuple[np.ndarray, np.dtype]:
        """A weight for each row, and the dtype in which scikit-learn weighs targets."""
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        if sample_weight is None:
            return np.ones(n), np.dtype(np.float32)
        if isinstance(sample_weight, float):
            w = np.full(n, sample_weight)
        else:
            w = _check_sample_weight(sample_weight, X)
        if not (w >= 0).all():
            raise ValueError("Negative values in data passed to `sample_weight`")
        return w.astype(np.float64), w.dtype

    def _is_direct(self, n: int, dtype: np.dtype) -> bool:
        if self.solver != "auto" or is_precomputed(self.kernel) or self.max_gram_mb is None:
            return self.solver in ("auto", "cholesky") or is_precomputed(self.kernel)
        return n**2 * dtype.itemsize <= self.max_gram_mb * 2**20

    def _factorised(self, problem: Problem, dtype: np.dtype, task: Task) -> np.ndarray:
        K = own_gram(self, problem.X, dtype)
        diagonal, C = K.diagonal().copy(), np.empty_like(problem.Y)
        for i, alpha in enumerate(np.unique(problem.alpha)):
            columns = np.flatnonzero(problem.alpha == alpha)
            if i:
                restore(K, diagonal)
            K.flat[:: len(K) + 1] = diagonal + alpha / problem.w
            scale = K.diagonal().max(initial=0)
            if factorise(K, task):
                C[:, columns] = solve(K, problem.Y[:, columns])
                _warn_if_ill_conditioned(K, scale)
                if np.isfinite(C[:, columns]).all():
                    continue
            restore(K, diagonal)
            if not np.isfinite(K).all():
                raise ValueError("array must not contain infs or NaNs")
            if (problem.alpha != alpha).any():
                raise np.linalg.LinAlgError("Matrix is singular.")
            return self._least_squares(K, problem, alpha)
        return C

    @staticmethod
    def _least_squares(K: np.ndarray, problem: Problem, alpha: float) -> np.ndarray:
        warnings.warn(
            "Singular matrix in solving dual problem. Using least-squares solution instead.",
            stacklevel=5,
        )
        root = np.sqrt(problem.w).astype(K.dtype)
        K *= root[:, None]
        K *= root
        K.flat[:: len(K) + 1] += alpha
        return root[:, None] * lstsq(K, root[:, None] * problem.Y)[0]

    def _iterated(self, problem: Problem, task: Task, attributes: Any) -> tuple[np.ndarray, int]:
        X, function = in_precision(problem.X, np.dtype(np.float64)), function_of(self)
        root = np.sqrt(problem.w)[:, None]
        F = root * pivoted_cholesky(lambda i: function(X[i], X), function.diagonal(X), RANK)
        U, n_iter = descend(
            lambda V: root * function.apply(X, X, root * V),
            root * problem.Y,
            problem.alpha,
            Deflation(F),
            conjugate=self.solver != "gradient",
            tol=self.tol,
            max_iter=self.max_iter,
            task=task,
            attributes=lambda U: attributes(root * U),
        )
        return root * U, n_iter


def _part(X: Any, kept: np.ndarray, kernel: Any) -> Any:
    if len(kept) == (X.shape[0] if hasattr(X, "shape") else len(X)):
        return X
    return X[np.ix_(kept, kept)] if is_precomputed(kernel) else X[kept]


def _warn_if_ill_conditioned(R: np.ndarray, scale: float) -> None:
    least = float((R.diagonal() ** 2).min(initial=np.inf))
    if least <= len(R) * np.finfo(R.dtype).eps * scale:
        warnings.warn(
            f"Ill-conditioned matrix (rcond={least / scale:.3g}): result may not be accurate. "
            "Increase alpha.",
            LinAlgWarning,
            stacklevel=5,
        )
