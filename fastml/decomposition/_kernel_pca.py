"""Principal components in the space of a kernel."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import linalg
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn import decomposition as stock
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, check_pairwise_arrays
from sklearn.preprocessing import KernelCenterer
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.extmath import _randomized_eigsh
from sklearn.utils.validation import _check_psd_eigenvalues, check_is_fitted, validate_data

from fastml._runtime.beside import beside
from fastml._runtime.callbacks import CallbackSupportMixin, Task, fit_context, fit_task
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.eigen import Tridiagonal, few_pairs
from fastml._runtime.objects import rows_for, takes_objects
from fastml._runtime.plain import is_plain_for, is_table, note_columns
from fastml._runtime.versioned import Versioned
from fastml.decomposition._centred_gram import FactoredGram, KeptGram, StreamedGram
from fastml.decomposition._lanczos import largest
from fastml.decomposition._projector import Projector
from fastml.kernel_ridge._cholesky import factorise, panels, solve
from fastml.metrics._kernel_function import (
    KernelFunction,
    dtype_of_gram,
    in_precision,
    is_precomputed,
)
from fastml.metrics._rows import jobs

StockKernelPCA = stock.KernelPCA

# Rows of which all of a Gram matrix tells the means, and where eigenvalues are equal vectors are
# scikit-learn's as well.
FEW = 200
# Rows of which Lanczos' method with a kept matrix finds few pairs sooner than any other: so many,
# so many more for each component, and at most. Of the linear kernel rows are sooner multiplied.
SOME, EACH, MANY, MANY_LINEAR = 80, 12, 1500, 700
# Of so many rows, and so many more for each component, the tridiagonal form is there as soon as the
# products of block Lanczos are made.
DENSE, MORE = 250, 18

OURS = {"max_gram_mb": 4096}  # parameters that scikit-learn's class does not have


@documented_by(StockKernelPCA)
class KernelPCA(Versioned, CallbackSupportMixin, StockKernelPCA):
    """Principal components in the space of a kernel, compiled.

    The Gram matrix is made in one pass, and not centred but multiplied as if it were. Few
    components come from products with blocks of vectors (block Lanczos), whatever their number
    and up to rounding; many, and those of few rows, from the tridiagonal form. A Gram matrix that
    is larger than `max_gram_mb` is never formed: each product computes it again, tile by tile.
    Neither does `transform` form any.

    Parameters
    ----------
    kernel : str, kernel object or callable, default="linear"
        Besides scikit-learn's, every name that `pairwise_kernels` knows, kernels of
        `gaussian_process.kernels` and functions made by `fastml.jit.kernel`.

    eigen_solver : {"auto", "dense", "arpack", "randomized", "power"}, default="auto"
        "power": block Lanczos until residuals are below `tol` times the largest eigenvalue, 0
        being 500 units of rounding. "auto": for few components of 80 to 1,500 rows Lanczos'
        method from two vectors, to rounding or `tol`; where that does not end soon, and of other
        rows, "dense" for at most 250 rows and 18 more for each component that is wanted, else
        "power". The others are scikit-learn's.

    max_gram_mb : float, default=4096
        The most memory for the Gram matrix, in MiB, that "auto" and "power" take. None: any.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.decomposition import KernelPCA
    >>> angle = np.linspace(0, 2 * np.pi, 300, endpoint=False)
    >>> circles = np.array([np.cos(angle), np.sin(angle)]).T * np.repeat([1, 3], 150)[:, None]
    >>> Z = KernelPCA(2, kernel="rbf", gamma=0.5).fit_transform(circles)
    >>> Z.shape
    (300, 2)
    """

    _parameter_constraints: ClassVar[dict] = {
        **StockKernelPCA._parameter_constraints,
        "kernel": [StrOptions({*PAIRWISE_KERNEL_FUNCTIONS, "precomputed"}), callable],
        "eigen_solver": [StrOptions({"auto", "dense", "arpack", "randomized", "power"})],
        "max_gram_mb": [Interval(Real, 0, None, closed="left"), None],
    }

    def __init__(
        self,
        n_components=None,
        *,
        kernel="linear",
        gamma=None,
        degree=3,
        coef0=1,
        kernel_params=None,
        alpha=1.0,
        fit_inverse_transform=False,
        eigen_solver="auto",
        tol=0,
        max_iter=None,
        iterated_power="auto",
        remove_zero_eig=False,
        random_state=None,
        copy_X=True,
        n_jobs=None,
        max_gram_mb=4096,
    ):
        super().__init__(
            n_components,
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            kernel_params=kernel_params,
            alpha=alpha,
            fit_inverse_transform=fit_inverse_transform,
            eigen_solver=eigen_solver,
            tol=tol,
            max_iter=max_iter,
            iterated_power=iterated_power,
            remove_zero_eig=remove_zero_eig,
            random_state=random_state,
            copy_X=copy_X,
            n_jobs=n_jobs,
        )
        self.max_gram_mb = max_gram_mb

    @documented_by(StockKernelPCA.fit)
    @accelerated
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Find the components."""
        if self.fit_inverse_transform and is_precomputed(self.kernel):
            raise ValueError("Cannot fit_inverse_transform with a precomputed kernel.")
        if self.fit_inverse_transform and takes_objects(self.kernel):
            raise ValueError("Cannot fit_inverse_transform to rows that are no vectors.")
        X = self._rows(X)
        self.gamma_ = 1 / X.shape[1] if self.gamma is None and X.ndim == 2 else self.gamma
        n = X.shape[0]
        k = n if self.n_components is None else min(n, self.n_components)
        solver = self._solver(n, k)
        with jobs(self.n_jobs), fit_task(self, None, X=X, y=y) as task:
            gram = self._gram(X, streamed=solver == "power")
            self._centerer = _centerer(gram.means)
            values, vectors = self._pairs(gram, k, solver, task)
            self._keep(values, vectors)
            if self.fit_inverse_transform:
                self._learn_inverse(self.eigenvectors_ * np.sqrt(self.eigenvalues_), X, task)
        self.X_fit_ = X
        return self

    @documented_by(StockKernelPCA.fit_transform)
    @accelerated
    def fit_transform(self, X, y=None, **params):
        """Find the components, and the rows' coordinates in them."""
        self.fit(X, **params)
        return self.eigenvectors_ * np.sqrt(self.eigenvalues_)

    @documented_by(StockKernelPCA.transform)
    @accelerated
    def transform(self, X):
        """Coordinates of new rows."""
        check_is_fitted(self)
        if not is_plain_for(self, X):
            X = validate_data(self, X, reset=False, **rows_for(self.kernel))
        parts = (self.X_fit_, self.eigenvalues_, self.eigenvectors_, self._centerer)
        stamp = (self.gamma_, self.degree, self.coef0, self.kernel)
        with jobs(self.n_jobs):
            return beside(self, parts, self._projector, stamp)(X)

    @documented_by(StockKernelPCA.inverse_transform)
    @accelerated
    def inverse_transform(self, X):
        """Rows that are near in the space of the kernel."""
        if not self.fit_inverse_transform:
            raise NotFittedError(
                "The fit_inverse_transform parameter was not set to True when instantiating and "
                "hence the inverse transform is not available."
            )
        with jobs(self.n_jobs):
            return self._function().apply(X, self.X_transformed_fit_, self.dual_coef_)

    def __to_sklearn_state__(self, state: dict[str, Any]) -> dict[str, Any]:
        state = {key: value for key, value in state.items() if key not in OURS}
        return state | {"eigen_solver": "auto"} if self.eigen_solver == "power" else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(OURS | state)  # a model of scikit-learn's lacks them

    def _rows(self, X: Any) -> Any:
        """Rows to fit, validated; of a table scikit-learn's checks would find nothing."""
        if not is_table(X) or takes_objects(self.kernel):
            return validate_data(self, X, copy=self.copy_X, **rows_for(self.kernel))
        note_columns(self, X)
        return X.copy(order="K") if self.copy_X else X

    def _function(self) -> KernelFunction:
        if callable(self.kernel):
            return KernelFunction(self.kernel, self.kernel_params or {})
        params = {"gamma": self.gamma_, "degree": self.degree, "coef0": self.coef0}
        return KernelFunction("polynomial" if self.kernel == "poly" else self.kernel, params)

    def _projector(self) -> Projector:
        return Projector(self, None if is_precomputed(self.kernel) else self._function())

    def _solver(self, n: int, k: int) -> str:
        if self.eigen_solver != "auto":
            return self.eigen_solver
        fits = self.max_gram_mb is None or 8 * n * n <= self.max_gram_mb * 2**20
        linear = isinstance(self.kernel, str) and self.kernel == "linear"
        most = MANY_LINEAR if linear else MANY
        if fits and self.max_iter is None and SOME + EACH * k <= n <= most:
            return "few"
        return _sure_solver(n, k)

    def _gram(self, X: Any, streamed: bool) -> KeptGram:
        if is_precomputed(self.kernel):
            if issparse(X) or X.shape[0] != X.shape[1]:  # these say what is wrong
                check_pairwise_arrays(X, None, precomputed=True)
                KernelCenterer().fit(X)
            K = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
            return KeptGram(K if K.flags.writeable else K.copy())
        dtype = dtype_of_gram(self.kernel, X)
        held = X.nnz if issparse(X) else X.size
        linear = isinstance(self.kernel, str) and self.kernel == "linear"
        if streamed and linear and 4 * held < X.shape[0] ** 2:
            return FactoredGram(X.astype(dtype, copy=False))
        size = X.shape[0] ** 2 * dtype.itemsize
        if streamed and self.max_gram_mb is not None and size > self.max_gram_mb * 2**20:
            return StreamedGram(self._function(), in_precision(X, dtype), dtype)
        K = self._function()(X, X)
        K = np.require(K, dtype_of_values(K), ["C", "A", "W"])
        return KeptGram(K, symmetric=isinstance(self.kernel, str) and len(K) > FEW)

    def _pairs(self, gram: Any, k: int, solver: str, task: Task) -> tuple[np.ndarray, np.ndarray]:
        if is_precomputed(self.kernel):
            gram.K = np.ascontiguousarray(gram.centre())  # which its owner sees, as scikit-learn's
        n = gram.shape[0]
        if solver == "few":
            found = few_pairs(self._half(gram.centre()), k, self.tol)
            if found is not None and not _told_by_chance(found[0], n):
                return found[0], found[1].T
            solver = _sure_solver(n, k)
        if solver == "dense":
            return self._all_pairs(gram.centre(), k)
        rng = check_random_state(self.random_state)
        if solver == "arpack":
            operator = LinearOperator(gram.shape, gram.times_one, dtype=gram.dtype)
            if k >= n:  # more than ARPACK can find: of an array SciPy asks LAPACK, and warns
                operator = gram.centre()
            v0 = rng.uniform(-1, 1, n)
            options = {"tol": self.tol, "maxiter": self.max_iter, "v0": v0}
            return eigsh(operator, k, which="LA", **options)
        if solver == "randomized":
            power = {"n_iter": self.iterated_power, "random_state": self.random_state}
            return _randomized_eigsh(gram.centre(), k, selection="module", **power)
        width = 64 // gram.dtype.itemsize
        block = width * -(-k // (3 * width))
        start = rng.uniform(-1, 1, (n, block)).astype(gram.dtype)
        rounding = np.finfo(gram.dtype).eps
        rounding *= 500 if gram.dtype == np.float64 else 5
        max_iter = self.max_iter or 1000
        tol = self.tol or rounding
        found = largest(gram.times, start, k, tol=tol, max_iter=max_iter, task=task)
        if not found.converged:
            warnings.warn(
                f"Residuals of the components are up to {found.residuals.max():.2g} after "
                f"{found.n_iter} products. Increase max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return found.values.astype(gram.dtype), found.vectors

    def _half(self, K: np.ndarray) -> np.ndarray:
        """K, or its transpose: if it is not symmetric, scikit-learn's half counts."""
        unequal = callable(self.kernel) or is_precomputed(self.kernel)
        return np.ascontiguousarray(K.T) if unequal else K

    def _all_pairs(self, K: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        n = len(K)
        if n > FEW or K.dtype == np.float64:
            values, vectors = Tridiagonal(self._half(K)).leading(k)
            if not np.isfinite(values).all():
                raise ValueError("array must not contain infs or NaNs")  # as scipy.linalg says it
            if not _told_by_chance(values, n):
                return values, vectors.T
        # Few rows: LAPACK finds the vectors that scikit-learn's has where eigenvalues coincide, and
        # leaves of zeros in single precision the same rounding, which decides what is a component.
        return linalg.eigh(K, subset_by_index=(n - k, n - 1), overwrite_a=True)

    def _keep(self, values: np.ndarray, vectors: np.ndarray) -> None:
        values = _check_psd_eigenvalues(values, enable_warnings=False)
        # As scikit-learn's svd_flip does it: the entry of each that is the largest is positive.
        largest = np.abs(vectors).argmax(axis=0)
        vectors *= np.sign(vectors[largest, np.arange(len(values))])
        order = values.argsort()[::-1]
        if self.remove_zero_eig or self.n_components is None:
            order = order[values[order] > 0]
        self.eigenvalues_, self.eigenvectors_ = values[order], vectors[:, order]

    def _learn_inverse(self, Z: np.ndarray, X: Any, task: Task) -> None:
        if issparse(X):
            raise NotImplementedError("Inverse transform not implemented for sparse matrices!")
        K = self._function()(Z, Z)
        dtype = np.result_type(dtype_of_values(K), X.dtype)
        dtype = dtype if dtype in (np.float32, np.float64) else np.dtype(np.float64)
        R = np.array(K, dtype, order="C")
        R.flat[:: len(R) + 1] += self.alpha
        with task.subtask("inverse", len(panels(len(R)))) as inverse:
            if factorise(R, inverse):
                self.dual_coef_ = solve(R, X.astype(dtype, copy=False))
            else:
                K.flat[:: len(K) + 1] += self.alpha
                self.dual_coef_ = linalg.solve(K, X, assume_a="pos", overwrite_a=True)
        self.X_transformed_fit_ = Z


def _sure_solver(n: int, k: int) -> str:
    """One that finds k components of n rows whatever their eigenvalues are."""
    return "dense" if n <= DENSE + MORE * k else "power"


def _told_by_chance(values: np.ndarray, n: int) -> bool:
    """Whether of few rows eigenvalues, more than rounding, coincide: their vectors are any."""
    if n > FEW:
        return False
    eps, most = np.finfo(values.dtype).eps, values.max(initial=0)
    same = values[:-1] - values[1:] < 20 * eps * most
    return bool((same & (values[1:] > eps**0.5 * most)).any())


def dtype_of_values(K: np.ndarray) -> np.dtype:
    return np.dtype(np.float32 if K.dtype == np.float32 else np.float64)


def _centerer(means: np.ndarray) -> KernelCenterer:
    """That of the Gram matrix whose columns have these means."""
    centerer = KernelCenterer().set_output(transform="default")
    centerer.n_features_in_ = len(means)
    centerer.K_fit_rows_ = means
    centerer.K_fit_all_ = means.sum() / len(means)
    return centerer
