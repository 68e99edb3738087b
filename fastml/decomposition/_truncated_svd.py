"""Truncated singular value decomposition."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator, svds
from sklearn import decomposition as stock
from sklearn.utils import check_random_state
from sklearn.utils._arpack import _init_arpack_v0
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import check_is_fitted, validate_data

from fastml._runtime.callbacks import CallbackSupportMixin, Task, fit_context, fit_task
from fastml._runtime.dispatch import Unsupported, accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.plain import is_plain, is_plain_for, note_columns
from fastml._runtime.versioned import Versioned
from fastml.linalg._svd import Rows, power_svd, randomized_svd
from fastml.linalg._units import exponent_of, in_units, total_square

StockTruncatedSVD = stock.TruncatedSVD

_FORMATS = ["csr", "csc"]


def _not_native(self: Any, X: Any, y: Any = None) -> Unsupported | None:
    if issparse(X) and max(X.nnz, *X.shape) > np.iinfo(np.int32).max:
        return Unsupported("X", "64-bit indices are not compiled for", "use a part of the rows")
    return None


@documented_by(StockTruncatedSVD)
class TruncatedSVD(Versioned, CallbackSupportMixin, StockTruncatedSVD):
    """Dimensionality reduction by truncated singular value decomposition, compiled.

    The same random draws as scikit-learn's and the same result up to rounding. Products with a
    sparse matrix run on all threads, and a dense one is read once an iteration.

    `algorithm="power"` is new: block Krylov iterations that stop once every component satisfies
    the singular value equation to `tol`, relative to the largest squared singular value, or to
    rounding where `tol` is 0. The error that is left is on the model as `residuals_`.

    Examples
    --------
    >>> from scipy import sparse
    >>> from fastml.decomposition import TruncatedSVD
    >>> X = sparse.random_array((1000, 300), density=0.02, rng=0, format="csr")
    >>> svd = TruncatedSVD(n_components=5, algorithm="power", tol=1e-6, random_state=0).fit(X)
    >>> svd.transform(X).shape
    (1000, 5)
    >>> bool((svd.residuals_ < 1e-6 * svd.singular_values_[0] ** 2).all())
    True

    Attributes
    ----------
    residuals_ : ndarray of shape (n_components,)
        For `algorithm="power"`: the norm of X'Xv - s^2 v of each component (of XX'u - s^2 u where X
        has more columns than rows). An eigenvalue of X'X is that near to s^2.
    """

    _parameter_constraints: ClassVar[dict] = {
        **StockTruncatedSVD._parameter_constraints,
        "algorithm": [StrOptions({"arpack", "randomized", "power"})],
    }

    @documented_by(StockTruncatedSVD.fit)
    @accelerated(unless=_not_native)
    def fit(self, X, y=None):
        """Fit the components to `X`."""
        self.fit_transform(X)
        return self

    @documented_by(StockTruncatedSVD.fit_transform)
    @accelerated(unless=_not_native)
    @fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X, y=None):
        """Fit the components to `X` and return it in their coordinates."""
        if is_plain(X) and X.shape[1] > 1:
            note_columns(self, X)
        else:
            X = validate_data(self, X, accept_sparse=_FORMATS, ensure_min_features=2)
        d = X.shape[1]
        if self.n_components > d and self.algorithm != "arpack":
            raise ValueError(f"n_components({self.n_components}) must be <= n_features({d}).")
        with fit_task(self, None, X=X) as fit:
            given = _floating(X)
            exponent = exponent_of(total_square(given), given)
            rows = Rows(in_units(given, exponent))
            U, s, Vt = self._decompose(rows, fit)
        V = np.ascontiguousarray(Vt.T)
        signs = _signs(V)
        U, V = U * signs, V * signs
        # Features first in memory, as products with new rows want them.
        self.components_ = V.T
        exact = self.algorithm == "power" or (self.algorithm == "arpack" and self.tol == 0)
        scores = U * s if exact else rows.times(V)
        with np.errstate(over="ignore"):  # which squares may
            self.explained_variance_ = np.ldexp(np.var(scores, axis=0), 2 * exponent)
            if self.algorithm == "power":
                self.residuals_ = np.ldexp(self.residuals_, 2 * exponent)
        variances = mean_variance_axis(X, axis=0)[1] if issparse(X) else np.var(X, axis=0)
        self.explained_variance_ratio_ = self.explained_variance_ / variances.sum()
        self.singular_values_ = np.ldexp(s, exponent)
        return np.ldexp(scores, exponent)

    def _decompose(self, rows: Rows, fit: Task) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        random_state = check_random_state(self.random_state)

        def progress(n_iter: int, residuals: np.ndarray | None) -> bool:
            with fit.subtask("iteration") as step:
                pass
            return step.stop

        if self.algorithm == "randomized":
            return randomized_svd(
                rows,
                self.n_components,
                n_oversamples=self.n_oversamples,
                n_iter=self.n_iter,
                power_iteration_normalizer=self.power_iteration_normalizer,
                random_state=random_state,
                progress=progress,
            )
        if self.algorithm == "power":
            U, s, Vt, _, self.residuals_ = power_svd(
                rows,
                min(self.n_components, *rows.shape),
                tol=self.tol,
                random_state=random_state,
                progress=progress,
            )
            return U, s, Vt
        v0 = _init_arpack_v0(min(rows.shape), random_state)
        U, s, Vt = svds(_operator(rows), k=self.n_components, tol=self.tol, v0=v0)
        return U[:, ::-1], s[::-1], Vt[::-1]

    @documented_by(StockTruncatedSVD.transform)
    @accelerated(unless=_not_native)
    def transform(self, X):
        """Return `X` in the coordinates of the components."""
        check_is_fitted(self)
        if not is_plain_for(self, X):
            X = validate_data(self, X, accept_sparse=_FORMATS, reset=False)
        V = self.components_.T
        dtype = np.float32 if X.dtype == V.dtype == np.float32 else np.float64
        return Rows(X.astype(dtype, copy=False)).times(V)

    def __to_sklearn_state__(self, state: dict[str, Any]) -> dict[str, Any]:
        kept = {name: value for name, value in state.items() if name != "residuals_"}
        return kept | ({"algorithm": "arpack"} if state["algorithm"] == "power" else {})


def _floating(X: Any) -> Any:
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _signs(V: np.ndarray) -> np.ndarray:
    """What makes the entry of largest magnitude of each column positive, as svd_flip does."""
    high, low = V.max(axis=0), V.min(axis=0)
    signs = np.where(high > -low, V.dtype.type(1), V.dtype.type(-1))
    for j in np.flatnonzero(high == -low):  # the first of them
        signs[j] = np.sign(V[np.argmax(abs(V[:, j])), j])
    return signs


def _operator(rows: Rows) -> LinearOperator:
    """What ARPACK multiplies by."""

    def times(V: np.ndarray) -> np.ndarray:
        return rows.times(V.reshape(len(V), -1)).reshape(-1, *V.shape[1:])

    def transposed(U: np.ndarray) -> np.ndarray:
        return rows.transposed(U.reshape(len(U), -1)).reshape(-1, *U.shape[1:])

    return LinearOperator(
        shape=rows.shape,
        dtype=rows.dtype,
        matvec=times,
        rmatvec=transposed,
        matmat=times,
        rmatmat=transposed,
    )
