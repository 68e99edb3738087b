"""Principal component analysis."""

from __future__ import annotations

import warnings
from math import log
from typing import Any, ClassVar

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn import decomposition as stock
from sklearn.decomposition._pca import _infer_dimension
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils._arpack import _init_arpack_v0
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.extmath import fast_logdet, svd_flip
from sklearn.utils.sparsefuncs import mean_variance_axis

from fastml._runtime.callbacks import CallbackSupportMixin, Task, fit_context, fit_task
from fastml._runtime.dispatch import Unsupported, accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.forks import unforked
from fastml._runtime.versioned import Versioned
from fastml._runtime.whole import whole_or_not_at_all
from fastml.decomposition._projection import Projection
from fastml.decomposition._spectra import (
    BLOCK,
    Spectrum,
    centred_blocks,
    covariance,
    mean_and_square,
    of_columns,
    of_covariance,
    refuse_infinite,
    sparse_covariance,
    spectrum,
    times,
)
from fastml.linalg._svd import Rows, power_svd, randomized_svd
from fastml.linalg._units import exponent_of, in_units
from fastml.preprocessing._matrix import foreign, is_sparse, to_fit, without_duplicates

StockPCA = stock.PCA

DTYPES = (np.float64, np.float32)
SPARSE = ("auto", "arpack", "covariance_eigh", "power")
ALL = ("full", "covariance_eigh")  # solvers that find all components
# Up to so many columns of a sparse matrix, their covariance costs less than Lanczos' method.
FEW_COLUMNS = 1000


def _not_native(self: Any, X: Any, y: Any = None) -> Unsupported | None:
    return foreign(X)


@documented_by(StockPCA)
class PCA(Versioned, CallbackSupportMixin, Projection, StockPCA):
    """Principal component analysis, compiled.

    Covariances are centred while the data is read, once: a large mean costs no digits, nor do many
    rows in single precision. ``svd_solver="full"`` has products too, and LAPACK for what they lose:
    singular values and vectors are as exact as those of an SVD. What ``"auto"`` would leave to
    ``"randomized"`` is exact where that costs less. ``svd_solver="power"`` is new, for dense and
    sparse data: block power iteration in a Krylov space, to residuals of `tol` (0: 1e-9, and 1e-5
    in single precision) in ``n_iter_`` passes.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.decomposition import PCA
    >>> X = np.array([[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]])
    >>> pca = PCA(n_components=0.9).fit(X)
    >>> pca.explained_variance_ratio_.round(4)
    array([0.9924])
    >>> pca.transform([[3, 2]]).round(4)
    array([[3.6053]])
    """

    _parameter_constraints: ClassVar[dict] = {
        **StockPCA._parameter_constraints,
        "svd_solver": [
            StrOptions({"auto", "full", "covariance_eigh", "arpack", "randomized", "power"})
        ],
    }

    @documented_by(StockPCA.fit)
    @accelerated(unless=_not_native)
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Find the principal components of `X`."""
        self._fit_to(X)
        return self

    @documented_by(StockPCA.fit_transform)
    @accelerated(unless=_not_native)
    @fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X, y=None):
        """Find the principal components of `X` and project it on them."""
        X, projected = self._fit_to(X)
        if self.whiten and X.shape[0] == 1:  # it is the mean, whatever its variance is
            return np.zeros((1, self.n_components_), dtype=X.dtype)
        if projected is None:
            return self._project(X)
        projected *= np.sqrt(X.shape[0] - 1) if self.whiten else self.singular_values_
        return projected

    def _fit_to(self, X: Any) -> tuple[Any, np.ndarray | None]:
        """X as validated and, if its solver knows more of them than X tells, left vectors."""
        if is_sparse(X) and self.svd_solver not in SPARSE:
            raise TypeError(
                'PCA only support sparse inputs with the "arpack" and "covariance_eigh" solvers,'
                f' while "{self.svd_solver}" was passed; fastml\'s also with "power". See'
                " TruncatedSVD for a possible alternative."
            )
        with whole_or_not_at_all(self):  # of what is refused, not the number of features either
            X = to_fit(self, X, sparse=("csr", "csc"), dtypes=DTYPES)
            X = without_duplicates(X) if is_sparse(X) else X
            steps = None if self.svd_solver == "power" else 0
            with fit_task(self, steps, X=X) as task:
                n_components = self._choose(X)
                self.n_samples_ = X.shape[0]
                U = None
                if self._fit_svd_solver in ALL:
                    self._find_all(X, n_components)
                else:
                    U = self._find_leading(X, n_components, task)
                task.attributes = {}
        return X, U

    def _choose(self, X: Any) -> Any:
        """The solver, as scikit-learn chooses it, and how many components are wanted of it."""
        n, d = X.shape
        solver, k = self.svd_solver, self.n_components
        if solver == "auto" and is_sparse(X):
            solver = "arpack"
        if k is None:
            k = min(n, d) - (solver == "arpack")
        if solver == "auto":
            if d <= 1000 and n >= 10 * d:
                solver = "covariance_eigh"
            elif max(n, d) <= 500 or k == "mle":
                solver = "full"
            else:
                solver = "randomized" if 1 <= k < 0.8 * min(n, d) else "full"
        self._fit_svd_solver = solver
        if solver in ALL:
            if k == "mle":
                if n < d:
                    raise ValueError(
                        "n_components='mle' is only supported if n_samples >= n_features"
                    )
            elif not 0 <= k <= min(n, d):
                raise ValueError(
                    f"n_components={k} must be between 0 and min(n_samples, n_features)="
                    f"{min(n, d)} with svd_solver={solver!r}"
                )
        elif isinstance(k, str):
            raise ValueError(f"n_components={k!r} cannot be a string with svd_solver={solver!r}")
        elif not 1 <= k <= min(n, d):
            raise ValueError(
                f"n_components={k!r} must be between 1 and min(n_samples, n_features)="
                f"{min(n, d)} with svd_solver={solver!r}"
            )
        elif solver == "arpack" and k == min(n, d):
            raise ValueError(
                f"n_components={k!r} must be strictly less than min(n_samples, n_features)="
                f"{min(n, d)} with svd_solver={solver!r}"
            )
        return k

    def _find_all(self, X: Any, wanted: Any) -> None:
        n, d = X.shape
        # A fraction, and "mle", ask for all eigenvalues first.
        k = int(wanted) if not isinstance(wanted, str) and (wanted >= 1 or wanted == 0) else None
        mean, found = self._decompose(X, k or None)
        # Of a covariance scikit-learn takes the mean of all that are left, full rank or not.
        size = d if self._fit_svd_solver == "covariance_eigh" else min(n, d)
        with np.errstate(divide="ignore", invalid="ignore"):  # of one row
            variances = found.squares / (n - 1)
            total = np.float64(found.total) / (n - 1)
            ratios = variances / total
        if wanted == "mle":
            k = _infer_dimension(variances, n)
        elif k is None:
            k = np.searchsorted(np.cumsum(ratios.astype(X.dtype)), wanted, side="right") + 1
        noise = 0.0
        if k < min(n, d):
            left = variances[k:].sum() if len(variances) == min(n, d) else total - variances.sum()
            noise = max(left, 0.0) / (size - k) if np.isfinite(left) else left
        self._keep(X, mean, found, k, total, noise)

    @unforked()
    def _decompose(self, X: Any, k: int | None) -> tuple[np.ndarray, Spectrum]:
        """The mean, and what is asked for of the spectrum: all of it, or the k leading parts."""
        n, d = X.shape
        name = type(self).__name__
        exact = self._fit_svd_solver == "full"
        if is_sparse(X):
            mean, _ = mean_variance_axis(X, axis=0)
            refuse_infinite(mean, X, name)
            C = sparse_covariance(X, mean)
            return mean, of_covariance(C, k, X.dtype)
        if n < d:
            mean, _ = mean_and_square(X)
            refuse_infinite(mean, X, name)
            return mean, spectrum(X, mean, k)
        mean, C = covariance(X, np.float64 if exact else None)
        refuse_infinite(C.diagonal(), X, name)
        if exact:
            return mean, of_columns(X, mean, C, k)
        return mean, of_covariance(C, k, X.dtype)

    def _find_leading(self, X: Any, k: int, task: Task) -> np.ndarray | None:
        n, d = X.shape
        name = type(self).__name__
        if is_sparse(X):
            mean, variance = mean_variance_axis(X, axis=0)
            refuse_infinite(mean, X, name)
            total = variance.sum(dtype=np.float64) * n
        elif not self._is_exact(n, d, k):
            mean, total = mean_and_square(X)
            refuse_infinite(mean, X, name)
        if self._is_exact(n, d, k, is_sparse(X)):
            mean, found = self._decompose(X, k)
            self._keep_leading(X, mean, found, k)
            return None
        if exponent := exponent_of(total, X):  # solvers take squares in the precision of X
            U = self._find_leading(in_units(X, exponent), k, task)
            self.mean_ = np.ldexp(self.mean_, exponent)
            self._be_of_units(exponent)
            return U
        rows = Rows(X.tocsr() if is_sparse(X) else X, mean)
        U, s, vectors = self._solve(rows, k, task)
        kept = vectors if U is None else vectors.copy()
        self._keep_leading(X, mean, Spectrum(s.astype(np.float64) ** 2, kept, total), k)
        if U is not None:
            U *= np.where(np.einsum("ij,ij->i", vectors, self.components_) < 0, -1, 1)
        return U

    @unforked()
    def _solve(self, rows: Rows, k: int, task: Task) -> tuple[Any, np.ndarray, np.ndarray]:
        random = check_random_state(self.random_state)
        if self._fit_svd_solver == "arpack":
            return None, *_lanczos(rows, k, self.tol, random)
        if self._fit_svd_solver == "power":
            return None, *self._iterate(rows, k, random, task)
        return randomized_svd(
            rows,
            k,
            n_oversamples=self.n_oversamples,
            n_iter=self.iterated_power,
            power_iteration_normalizer=self.power_iteration_normalizer,
            random_state=random,
        )

    def _iterate(
        self, rows: Rows, k: int, random: Any, task: Task
    ) -> tuple[np.ndarray, np.ndarray]:
        def progress(n_iter: int, residuals: np.ndarray) -> bool:
            with task.subtask("iteration") as step:
                step.attributes = {}
            return step.stop

        tol = self.tol or (1e-9 if rows.dtype == np.float64 else 1e-5)
        most = 300 if self.iterated_power == "auto" else max(1, self.iterated_power)
        _, s, vectors, self.n_iter_, residuals = power_svd(
            rows, k, tol=tol, max_iter=most, random_state=random, progress=progress
        )
        open_ = residuals > max(tol, 10 * np.finfo(rows.dtype).eps) * s[0] ** 2
        if self.n_iter_ == most and open_.any():
            warnings.warn(
                f"Power iteration did not converge in {most} passes: of {k} components, residuals "
                f"of {open_.sum()} are above tol. Increase iterated_power or tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return s, vectors

    def _is_exact(self, n: int, d: int, k: int, is_sparse: bool = False) -> bool:
        """Whether all components cost no more than the leading ones would, in flops at the rates
        of a large product, of narrow ones and of an eigenproblem."""
        m = min(n, d)
        if is_sparse:
            return self._fit_svd_solver == "arpack" and d <= FEW_COLUMNS
        exact = n * d * m / 2e11 + m**3 / 4e10
        if self._fit_svd_solver == "power":
            return False
        if self._fit_svd_solver == "arpack":
            return m <= 2000 and exact < 50 * n * d / 1e9
        if self.svd_solver != "auto":
            return False
        passes = 16 if k < 0.1 * m else 10
        width = k + self.n_oversamples
        return exact < passes * (2 * n * d * width / 1e11 + (n + d) * width**2 / 2e10)

    def _keep_leading(self, X: Any, mean: np.ndarray, found: Spectrum, k: int) -> None:
        n, d = X.shape
        total = found.total / (n - 1)
        noise = 0.0
        if k < min(n, d):
            noise = (total - found.squares[:k].sum() / (n - 1)) / (min(n, d) - k)
        self._keep(X, mean, found, k, total, noise)

    def _keep(
        self, X: Any, mean: np.ndarray, found: Spectrum, k: int, total: float, noise: float
    ) -> None:
        """Keep the leading k, whose vectors are turned where they are."""
        n = X.shape[0]
        # What is kept of fewer would keep all.
        vectors = found.vectors[:k].astype(X.dtype, copy=k < len(found.vectors))
        for rows in gen_batches(k, max(1, BLOCK // X.shape[1])):  # in cache
            _, vectors[rows] = svd_flip(None, vectors[rows], u_based_decision=False)
        with np.errstate(divide="ignore", invalid="ignore"):
            variances = found.squares[:k] / (n - 1)
            ratios = variances / total
        self.mean_ = mean.astype(X.dtype)
        self.n_components_ = k
        self.components_ = vectors
        self.explained_variance_ = variances.astype(X.dtype)
        self.explained_variance_ratio_ = ratios.astype(X.dtype)
        self.singular_values_ = np.sqrt(found.squares[:k]).astype(X.dtype)
        self.noise_variance_ = X.dtype.type(noise) if k < min(X.shape) else 0.0
        if found.exponent:
            self._be_of_units(found.exponent)

    def _be_of_units(self, exponent: int) -> None:
        """From what was kept of X over 2**exponent to what is of X."""
        self.singular_values_ = np.ldexp(self.singular_values_, exponent)
        self.explained_variance_ = np.ldexp(self.explained_variance_, 2 * exponent)
        self.noise_variance_ = np.ldexp(self.noise_variance_, 2 * exponent)

    @documented_by(StockPCA.score_samples)
    @accelerated(unless=_not_native)
    def score_samples(self, X):
        """Return the log-likelihood of each row."""
        X = self._rows(X, sparse=False)
        precision = self.get_precision()
        constant = X.shape[1] * log(2 * np.pi) - fast_logdet(precision)
        found = np.empty(X.shape[0])
        for rows, block in centred_blocks(X, self.mean_):
            found[rows] = np.einsum("ij,ij->i", times(block, precision), block)
        refuse_infinite(found, X, type(self).__name__)
        return (-0.5 * (found + constant)).astype(np.result_type(X, self.components_), copy=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.svd_solver in SPARSE
        return tags

    def __to_sklearn_state__(self, state: dict[str, Any]) -> dict[str, Any]:
        if state["svd_solver"] != "power":
            return state
        return {
            name: "arpack" if name in ("svd_solver", "_fit_svd_solver") else value
            for name, value in state.items()
            if name != "n_iter_"
        }


def _lanczos(rows: Rows, k: int, tol: float, random: Any) -> tuple[np.ndarray, np.ndarray]:
    """Singular values and right singular vectors by ARPACK, from the smaller of two products."""
    n, d = rows.shape
    m = min(n, d)

    def product(v: np.ndarray) -> np.ndarray:
        v = v.reshape(m, 1).astype(rows.dtype, copy=False)
        found = rows.gram(v) if d <= n else rows.times(rows.transposed(v))
        return found[:, 0]

    v0 = _init_arpack_v0(m, random)
    operator = LinearOperator((m, m), matvec=product, dtype=rows.dtype)
    _, vectors = eigsh(operator, k=k, tol=tol**2, v0=v0)
    # Squares are not what is taken the root of: the SVD of what the vectors span is as exact as
    # they are.
    vectors = linalg.qr(vectors, mode="economic", check_finite=False)[0]
    if n < d:
        _, s, Vt = linalg.svd(rows.transposed(vectors).T, full_matrices=False, check_finite=False)
        return s, Vt
    _, s, turn = linalg.svd(rows.times(vectors), full_matrices=False, check_finite=False)
    return s, turn @ vectors.T
