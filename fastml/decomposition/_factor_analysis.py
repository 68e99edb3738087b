"""Factor analysis."""

from __future__ import annotations

import warnings
from math import log
from typing import Any

import numpy as np
from scipy import linalg
from sklearn import decomposition as stock
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.extmath import fast_logdet
from sklearn.utils.validation import check_is_fitted

from fastml._runtime.callbacks import CallbackSupportMixin, Task, fit_context, fit_task
from fastml._runtime.dispatch import Unsupported, accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.forks import unforked
from fastml._runtime.versioned import Versioned
from fastml._runtime.whole import whole_or_not_at_all
from fastml.decomposition._spectra import (
    Spectrum,
    centred_blocks,
    covariance,
    eigen,
    mean_and_square,
    refuse_infinite,
    times,
)
from fastml.linalg._svd import Rows, randomized_svd
from fastml.preprocessing._matrix import foreign, to_fit, to_transform

StockFactorAnalysis = stock.FactorAnalysis

SMALL = 1e-12  # the least noise, as in scikit-learn
# Smallest part of the largest eigenvalue that a covariance tells to six digits.
TOLD = 1e-10


def _not_native(self: Any, X: Any, y: Any = None) -> Unsupported | None:
    return foreign(X)


@documented_by(StockFactorAnalysis)
class FactorAnalysis(Versioned, CallbackSupportMixin, StockFactorAnalysis):
    """Factor analysis, compiled.

    All that iterations need of data with more rows than columns is its covariance, which is
    computed once: what they cost does not depend on the number of rows. `X` is neither copied nor
    centred in place. With ``svd_method="randomized"`` the random numbers are scikit-learn's, and
    the results are up to rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.decomposition import FactorAnalysis
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(2000, 6))
    >>> model = FactorAnalysis(n_components=2, random_state=0).fit(X)
    >>> bool(np.allclose(np.sqrt(model.noise_variance_), 0.1, atol=0.01))
    True
    >>> model.transform(X).shape
    (2000, 2)
    """

    @documented_by(StockFactorAnalysis.fit)
    @accelerated(unless=_not_native)
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Fit the loadings and the noise by EM."""
        single = getattr(X, "dtype", None) == np.float32
        with whole_or_not_at_all(self):  # of what is refused, not the number of features either
            X = to_fit(self, X, dtypes=np.float32 if single else np.float64)
            psi = self._first_noise(X.shape[1])
            with fit_task(self, self.max_iter, X=X, y=y) as task:
                self._iterate(_Scaled(self, X), psi, task)
                task.attributes = {}
        return self

    def _first_noise(self, d: int) -> np.ndarray:
        given = self.noise_variance_init
        if given is None:
            return np.ones(d)
        if len(given) != d:
            raise ValueError(
                "noise_variance_init dimension does not with number of features : "
                f"{len(given)} != {d}"
            )
        return np.array(given)

    @unforked()
    def _iterate(self, data: _Scaled, psi: np.ndarray, task: Task) -> None:
        n, d = data.X.shape
        k = d if self.n_components is None else self.n_components
        before, losses = -np.inf, []
        for _ in range(self.max_iter):
            with task.subtask("iteration") as step:
                root = np.sqrt(psi) + SMALL
                squares, vectors, total, _ = data.leading(root * np.sqrt(n), k)
                W = np.sqrt(np.maximum(squares - 1, 0))[:, None] * vectors * root
                noise = psi
                found = d * log(2 * np.pi) + k + np.log(squares).sum()
                found += total - squares.sum() + np.log(psi).sum()
                losses.append(-n / 2 * found)
                step.attributes = {}
            done = step.stop or losses[-1] - before < self.tol
            if done:
                break
            before = losses[-1]
            psi = np.maximum(data.variances - np.sum(W**2, axis=0), SMALL)
        else:
            warnings.warn(
                "FactorAnalysis did not converge. You might want to increase the number of "
                "iterations.",
                ConvergenceWarning,
                stacklevel=2,
            )
        W *= data.signs(vectors / (np.sqrt(noise) + SMALL))[:, None]
        self.mean_ = data.mean
        self.components_ = W if self.rotation is None else self._rotate(W)
        self.noise_variance_ = psi
        self.loglike_ = losses
        self.n_iter_ = len(losses)

    @documented_by(StockFactorAnalysis.transform)
    @accelerated(unless=_not_native)
    def transform(self, X):
        """Return the expected factors of each row, in one pass over `X`."""
        X = self._rows(X)
        weighted = self.components_ / self.noise_variance_
        spread = np.eye(len(weighted)) + weighted @ self.components_.T
        found = times(X, linalg.inv(spread).T @ weighted, self.mean_)
        if not np.isfinite(found.sum()) or not found.size:
            refuse_infinite(np.nan, X, type(self).__name__)
        return found

    @documented_by(StockFactorAnalysis.score_samples)
    @accelerated(unless=_not_native)
    def score_samples(self, X):
        """Return the log-likelihood of each row."""
        X = self._rows(X)
        precision = self.get_precision()
        constant = X.shape[1] * log(2 * np.pi) - fast_logdet(precision)
        found = np.empty(len(X))
        for rows, block in centred_blocks(X, self.mean_):
            found[rows] = np.einsum("ij,ij->i", times(block, precision), block)
        refuse_infinite(found, X, type(self).__name__)
        return -0.5 * (found + constant)

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self)
        X = to_transform(self, X, "components_", dtypes="numeric")
        return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


class _Scaled:
    """Centred data, whose columns are divided by this or that."""

    def __init__(self, model: FactorAnalysis, X: np.ndarray) -> None:
        self.X, self.C, self.Z = X, None, None
        self.n_iter = model.iterated_power
        randomized = model.svd_method == "randomized"
        self.random = check_random_state(model.random_state) if randomized else None
        n, d = X.shape
        if n >= d:
            self.mean, self.C = covariance(X, np.float64)
            refuse_infinite(self.C.diagonal(), X, type(model).__name__)
            self.variances = self.C.diagonal() / n
        else:
            self.mean = mean_and_square(X)[0]
            refuse_infinite(self.mean, X, type(model).__name__)
            self.Z = X - self.mean
            self.variances = np.var(self.Z, axis=0)

    def leading(self, scale: np.ndarray, k: int) -> Spectrum:
        """Of the k leading components, or as many as there are; squares add up to the total."""
        total = float(np.sum(self.variances * len(self.X) / scale**2))
        if k == 0:
            return Spectrum(np.empty(0), np.empty((0, len(scale))), total)
        if self.C is None:
            return Spectrum(*self._of_rows(scale, k), total)
        C = self.C / scale / scale[:, None]
        found = eigen(C, k) if self.random is None else _sketched(C, k, self.n_iter, self.random)
        squares, vectors = found[0][:k], found[1][:k]
        if squares[-1] < TOLD * squares[0]:
            squares, vectors = self._of_rows(scale, k)
        return Spectrum(squares, vectors, total)

    def _of_rows(self, scale: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        Z = (self.X - self.mean if self.Z is None else self.Z) / scale
        if self.random is None or k >= min(Z.shape):
            _, s, Vt = linalg.svd(Z, full_matrices=False, overwrite_a=True, check_finite=False)
        else:
            how = {"n_iter": self.n_iter, "random_state": self.random}
            _, s, Vt = randomized_svd(Rows(Z), k, **how)
        return s[:k] ** 2, Vt[:k]

    def signs(self, vectors: np.ndarray) -> np.ndarray:
        """What makes the product of largest magnitude with a row positive, for each vector."""
        products = times(self.X, vectors, self.mean)
        largest = np.take_along_axis(products, abs(products).argmax(axis=0)[None], axis=0)[0]
        return np.where(largest < 0, -1.0, 1.0)


def _sketched(C: np.ndarray, k: int, n_iter: int, random: Any) -> tuple[np.ndarray, np.ndarray]:
    """Squared singular values, and vectors, that scikit-learn's randomized SVD finds of any M
    with M'M = C: those of Nyström's approximation by what powers of C make of random vectors.
    """
    Q = random.normal(size=(len(C), k + 10))
    for _ in range(n_iter):
        Q = linalg.qr(C @ Q, mode="economic", check_finite=False)[0]
    image = C @ Q
    try:
        L = linalg.cholesky(Q.T @ image, lower=True, check_finite=False)
    except linalg.LinAlgError:  # C has not so many dimensions
        return eigen(C, k)
    _, s, Vt = linalg.svd(
        linalg.solve_triangular(L, image.T, lower=True, check_finite=False), full_matrices=False
    )
    return s**2, Vt
